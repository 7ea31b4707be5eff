"""The environment in which models work on multi-turn entries: BFCL's classes, in a process that can be killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure, UnknownName, UsageError
from callwright.tools.spec import ToolSpec
from callwright_plugins.bfcl.multi_turn.calls import call_with
from callwright_plugins.bfcl.multi_turn.classes import OfficialClasses
from callwright_plugins.bfcl.multi_turn.entries import Entry

_RAISED = "Error during execution: "


class ClassesEnvironment(Environment):
    """The functions of all classes of a version; the scenario of a session is the id of an entry.

    A call executes whatever its arguments are, as in the official harness: what a function says of bad ones is its
    result, and only what it raises is a failure. Without ``classes`` the tasks can be looked at, not executed.
    """

    __slots__ = ("_classes", "_entries", "_name", "_tools")
    pure: bool = True
    takes_anything: Literal[True] = True
    out_of_process: Literal[True] = True
    keeps_time: Literal[True] = True

    def __init__(
        self, version: str, tools: Mapping[str, ToolSpec], entries: Mapping[str, Entry], classes: OfficialClasses | None
    ) -> None:
        self._name = f"bfcl-{version}-multi-turn"
        self._tools, self._entries, self._classes = tools, entries, classes

    @property
    def name(self) -> str:
        """``bfcl-v3-multi-turn`` or ``bfcl-v4-multi-turn``."""
        return self._name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every function that the documents of the classes tell of."""
        return self._tools

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """The state in which an entry begins. Nothing is drawn: the seed plays no part.

        Raises :class:`callwright.errors.UnknownName` for an entry that is not there, and
        :class:`callwright.UsageError` without the classes.
        """
        entry = self._entries.get(scenario)
        if entry is None:
            raise UnknownName("multi-turn entry of BFCL", scenario, self._entries)
        if self._classes is None:
            raise UsageError(NEEDS_CLASSES)
        return _EntrySession(self._classes, entry, self._tools)


NEEDS_CLASSES = (
    "the multi-turn categories of BFCL are executed by the classes of the pinned wheel: name it with --package (the "
    "wheel, or the folder in which it was unpacked)"
)


class _EntrySession(Session):
    __slots__ = ("_classes", "_digest", "_methods", "_number", "_tools")

    def __init__(self, classes: OfficialClasses, entry: Entry, tools: Mapping[str, ToolSpec]) -> None:
        self._classes, self._methods, self._tools = classes, classes.methods(entry), tools
        self._number: int | None
        self._number, self._digest = classes.begin(entry)

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call. Raises :class:`callwright.InfrastructureFailure` where the process was lost."""
        if self._number is None:
            raise InfrastructureFailure("the session was closed")
        if tool not in self._tools or tool not in self._methods:
            return Outcome("unknown_tool", None, "unknown_tool", f"the classes of the entry have no function {tool!r}")
        result, self._digest = self._classes.call(self._number, call_with(tool, arguments, self._methods))
        if result.startswith(_RAISED):
            return Outcome("execution_error", None, "raised", result.removeprefix(_RAISED))
        return Outcome("ok", _value(result))

    def digest(self) -> str:
        """A hash of the state of all instances."""
        return self._digest

    def __reduce__(self) -> Any:
        raise UsageError(
            "a session of BFCL's classes lives in a process of this one, so it cannot be copied or sent to another; "
            "send the environment, and open a session there"
        )

    def close(self) -> None:
        """Forget the instances. Closing twice is allowed."""
        number, self._number = self._number, None
        if number is not None:
            try:
                self._classes.end(number)
            except (InfrastructureFailure, UsageError):
                return  # the process is gone, and the instances with it


def _value(result: str) -> Any:
    """What the model reads: the object that a function returned, or the text that the official harness makes of it."""
    if result[:1] in "{[":
        try:
            found = json.loads(result)
        except (ValueError, RecursionError):
            return result
        return found if _is_json(found) else result
    return result


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return value == value and value not in (float("inf"), float("-inf"))
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    return all(map(_is_json, value)) if isinstance(value, list) else True
