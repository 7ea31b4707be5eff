"""A small environment for these tests, with every kind of outcome; as a script it is a server, as a module a plugin."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import callwright as cw
from callwright.digests import digest_of
from callwright.errors import UnknownName
from callwright.tools.validation import check_arguments

PUT = cw.ToolSpec(
    "put",
    "Put something on the shelf.",
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
        "required": ["name"],
    },
    {"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}, "required": ["name"]},
    result_field="count",
    destructive=True,
    idempotent=True,
)
LIST = cw.ToolSpec(
    "list",
    "What is on the shelf.",
    {"type": "object", "properties": {}},
    {"type": "array", "items": {"type": "string"}},
    read_only=True,
    discovery=True,
)
TAKE = cw.ToolSpec("take", "Take something.", {"type": "object", "properties": {"name": {"type": "string"}}})
PUT_ALL = cw.ToolSpec(
    "put_all",
    "Put several things; those with an empty name are left out.",
    {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}, "required": ["names"]},
)
ODD = cw.ToolSpec("odd", "Unusual values.", {"type": "object", "properties": {}}, read_only=True)
SECRET = cw.ToolSpec("secret", "Not for agents.", hidden=True)
NOISY = cw.ToolSpec("noisy", "Prints.", read_only=True)
BREAK = cw.ToolSpec("break_down", "The machine fails.")
RAISE = cw.ToolSpec("raise_error", "A bug.")
STUCK = cw.ToolSpec("stuck", "Never ends.")
BAD_VALUE = cw.ToolSpec("bad_value", "Gives something that is not JSON.")
SPECS = {spec.name: spec for spec in (PUT, LIST, TAKE, PUT_ALL, ODD, SECRET, NOISY, BREAK, RAISE, STUCK, BAD_VALUE)}
ODD_VALUE = {"none": None, "float": 1.0, "big": 10**22, "text": 'æ\u2028"\\', "empty": {}, "list": [None, [], "x"]}
HELPERS = {"_wipe": cw.ToolSpec("_wipe", "Empty the shelf.", hidden=True)}


class Shelf:
    """A session: things by name."""

    def __init__(self, things: dict[str, int]) -> None:
        self.first, self.things, self.closed = dict(things), things, False

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        spec = SPECS.get(tool)
        if spec is None or spec.hidden:
            return cw.Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
        problems = check_arguments(spec, arguments)
        if problems:
            return cw.Outcome("schema_error", None, problems[0].kind, problems[0].sentence)
        return getattr(self, f"_{tool}")(**arguments)

    def _put(self, name: str, count: int = 1) -> cw.Outcome:
        self.things[name] = self.things.get(name, 0) + count
        return cw.Outcome("ok", {"name": name, "count": self.things[name]})

    def _list(self) -> cw.Outcome:
        return cw.Outcome("ok" if self.things else "empty", sorted(self.things))

    def _take(self, name: str = "") -> cw.Outcome:
        if name not in self.things:
            return cw.Outcome("execution_error", None, "NOT_THERE", f"there is no {name!r} on the shelf")
        del self.things[name]
        return cw.Outcome("ok", None)

    def _put_all(self, names: list[str]) -> cw.Outcome:
        good = [name for name in names if name]
        for name in good:
            self.things[name] = 1
        if len(good) < len(names):
            return cw.Outcome("partial", good, "SOME_LEFT_OUT", f"{len(names) - len(good)} left out")
        return cw.Outcome("ok", good)

    def _odd(self) -> cw.Outcome:
        return cw.Outcome("ok", copy.deepcopy(ODD_VALUE))

    def _noisy(self) -> cw.Outcome:
        print("this must not reach the client")
        return cw.Outcome("ok", "said")

    def _break_down(self) -> cw.Outcome:
        raise cw.InfrastructureFailure("the shelf fell off the wall")

    def _raise_error(self) -> cw.Outcome:
        raise RuntimeError("a bug of the tool")

    def _stuck(self) -> cw.Outcome:
        threading.Event().wait()
        raise AssertionError("nobody sets it")

    def _bad_value(self) -> cw.Outcome:
        return cw.Outcome("ok", {"set": {1}})

    def digest(self) -> str:
        return digest_of(self.things)

    def diff(self) -> dict[str, Any]:
        return {"before": self.first, "after": self.things}

    def fork(self) -> Shelf:
        return Shelf(dict(self.things))

    def reset(self) -> None:
        self.things = dict(self.first)

    def helper(self, name: str, arguments: Mapping[str, Any]) -> cw.Outcome:
        assert name == "_wipe"
        self.things = {}
        return cw.Outcome("ok", {"wiped": True})

    def close(self) -> None:
        self.closed = True


class ShelfWorld:
    """An environment that holds shelves; ``pure`` says whether calls run in threads when it is served."""

    name = "shelf"
    tools = SPECS
    helpers = HELPERS

    def __init__(self, pure: bool = True) -> None:
        self.pure = pure
        self.opened: list[Shelf] = []

    def open(self, scenario: str = "", seed: int = 0) -> Shelf:
        if scenario not in ("", "full"):
            raise UnknownName("scenario", scenario, ("", "full"))
        shelf = Shelf({"vase": seed + 1} if scenario == "full" else {})
        self.opened.append(shelf)
        return shelf


@cw.hookimpl
def callwright_environments() -> Iterator[cw.Lazy]:
    yield cw.Lazy("shelf", ShelfWorld, "things on a shelf")


if __name__ == "__main__":
    import os

    from callwright_plugins.mcp_servers.serving.service import Service
    from callwright_plugins.mcp_servers.serving.transports import serve_stdio

    options: dict[str, Any] = {"helpers": True} if "helpers" in sys.argv else {}
    if "impatient" in sys.argv:
        options["time_limit"] = 0.3
    if serve_stdio(Service(ShelfWorld(), **options)) is not None:
        os._exit(0)
