"""The environment: sessions that open in a microsecond and answer calls from data that never change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.environments.calling import ReadyTool, call_tool, ready
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UsageError
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright_plugins.depthbench import NAME
from callwright_plugins.depthbench.specifications import specifications
from callwright_plugins.depthbench.world import CONTEXTS, FIRST, WORLDS, Context, World, context, within, world

_ready: dict[str, ReadyTool] = {}
_TAKEN: Final = frozenset({"context"})


def _prepare(tool: str) -> None:
    """Make a tool ready at its first call; the tools are imported then, so that reading the corpus is quick."""
    from callwright_plugins.depthbench.tools import TOOLS

    described = TOOLS.get(tool)
    if described is None:
        return
    function, code = described.function, described.function.__code__
    takes_context = code.co_posonlyargcount == 1 and code.co_varnames[0] in _TAKEN
    _ready[tool] = ready(specifications()[tool], function, "state" if takes_context else "arguments")


class DepthBenchSession(Session):
    """One user's view of the world. No tool changes anything, so the state is the context."""

    __slots__ = ("_context", "_world")
    bounds_results = True

    def __init__(self, context: Context, world: World = FIRST) -> None:
        self._context, self._world = context, world

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Run one tool; the codes of ``execution_error`` are :data:`.toolkit.CODES`."""
        if tool not in _ready:
            _prepare(tool)
        if self._world is FIRST:  # nearly always
            return call_tool(_ready, tool, arguments, self._context)
        with within(self._world):
            return call_tool(_ready, tool, arguments, self._context)

    def digest(self) -> str:
        """SHA-256 of the world's name and the context's key."""
        key = self._context.key
        digest = _digests.get(key)
        if digest is None:
            digest = _digests[key] = hashlib.sha256(f"{NAME}|{key}".encode()).hexdigest()
        return digest

    def close(self) -> None:
        """Nothing to give back."""


_digests: Final[dict[str, str]] = {}


class DepthBench(Environment):
    """The environment ``depthbench-v1``. Its data are made once per process, when first asked for, and shared."""

    def __init__(self) -> None:
        self._contexts: dict[str, tuple[Context, int]] = {}

    def __reduce__(self) -> Any:
        return made_by(self, DepthBench)

    @property
    def name(self) -> str:
        """``depthbench-v1``."""
        return NAME

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The 163 tools by name."""
        return specifications()

    @property
    def pure(self) -> bool:
        """True: tools read, and what they hand out is never changed afterwards."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> DepthBenchSession:
        """A session of ``user-0000`` to ``user-1023``; without a scenario the seed chooses.

        ``user-0042@7`` is user 42 of world 7 (:class:`.world.World`), whose data are others of the same kinds; without
        a number it is world 0, in which the tasks of the corpus play.

        What a user's place, day and habits are is not to be read off the scenario: the tools tell. Raises
        :class:`callwright.UsageError` for another text.
        """
        found = self._contexts.get(scenario)
        if found is None:
            if not scenario:
                return DepthBenchSession(context(seed % CONTEXTS))
            found = self._contexts[scenario] = _read(scenario)
        known, number = found
        return DepthBenchSession(known, world(number))


_SCENARIO: Final = re.compile("user-([0-9]{4})(?:@([1-9][0-9]{0,4}))?", re.ASCII)


def _read(scenario: str) -> tuple[Context, int]:
    """The context of a scenario and the number of its world."""
    found = _SCENARIO.fullmatch(scenario)
    if found is None or int(found[1]) >= CONTEXTS:
        last = f"user-{CONTEXTS - 1:04d}"
        raise UsageError(
            f"{scenario[:80]!r} is no scenario of {NAME}; they are user-0000 to {last}, and in other worlds "
            f"user-0000@1 to {last}@{WORLDS - 1}"
        )
    number = int(found[2] or 0)
    with within(world(number)):
        return context(int(found[1])), number
