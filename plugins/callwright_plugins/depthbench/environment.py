"""The environment: sessions that open in a microsecond and answer calls from data that never change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from callwright.environments.calling import ReadyTool, call_tool, ready
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UsageError
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright_plugins.depthbench.mended.edits import read, written
from callwright_plugins.depthbench.specifications import specifications
from callwright_plugins.depthbench.world import (
    CONTEXTS,
    FIRST,
    V1,
    V1_1,
    VERSIONS,
    Context,
    Version,
    World,
    at_hand,
    context,
    edited_world,
    within,
)

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

    __slots__ = ("_context", "_digest", "_world")
    bounds_results = True

    def __init__(self, context: Context, world: World, digest: str) -> None:
        self._context, self._world, self._digest = context, world, digest

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Run one tool; the codes of ``execution_error`` are :data:`.toolkit.CODES`."""
        if tool not in _ready:
            _prepare(tool)
        if self._world is FIRST:  # nearly always
            return call_tool(_ready, tool, arguments, self._context)
        before = at_hand.set(self._world)
        try:
            if self._world.version.lenient:
                arguments = _folded(arguments, self._world)
            return call_tool(_ready, tool, arguments, self._context)
        finally:
            at_hand.reset(before)

    def digest(self) -> str:
        """SHA-256 of the environment's name, the context's key and the edits."""
        return self._digest

    def close(self) -> None:
        """Nothing to give back."""


def _folded(arguments: dict[str, Any], world: World) -> dict[str, Any]:
    from callwright_plugins.depthbench.mended.spellings import folded  # needs the tools, which are not read before

    return folded(arguments, world.version)


#: So many scenarios are remembered.
_KEPT: Final = 20_000


class DepthBench(Environment):
    """The environment of a version, ``depthbench-v1`` if nothing else is said.

    Its data are made once per process, when first asked for, and shared. Several versions, and several worlds of each,
    live in one process side by side.
    """

    def __init__(self, version: str = V1.name) -> None:
        if version not in VERSIONS:
            raise UsageError(f"DepthBench has no version {version!r}; there are: {', '.join(VERSIONS)}")
        self._version = VERSIONS[version]
        self._scenarios: dict[str, tuple[Context, World, str]] = {}

    def __reduce__(self) -> Any:
        return made_by(self, DepthBench, self._version.name)

    @property
    def name(self) -> str:
        return self._version.name

    @property
    def version(self) -> Version:
        """What is fixed of all worlds of the environment."""
        return self._version

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The 163 tools by name."""
        return specifications(margins=self._version.margins)

    @property
    def pure(self) -> bool:
        """True: tools read, and what they hand out is never changed afterwards."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> DepthBenchSession:
        """A session of ``user-0000`` to ``user-1023``; without a scenario the seed chooses.

        ``user-0042@7`` is user 42 of world 7 (:class:`.world.World`), whose data are others of the same kinds; without
        a number it is world 0, in which the tasks of the corpus play. Edits may follow (:mod:`.mended.edits`).

        What a user's place, day and habits are is not to be read off the scenario: the tools tell. Raises
        :class:`callwright.UsageError` for another text.
        """
        scenario = scenario or f"user-{seed % CONTEXTS:04d}"
        found = self._scenarios.get(scenario)
        if found is None:
            if len(self._scenarios) > _KEPT:
                self._scenarios.clear()
            found = self._scenarios[scenario] = self._read(scenario)
        return DepthBenchSession(*found)

    def _read(self, scenario: str) -> tuple[Context, World, str]:
        """Whose session it is, in which world, and the digest of both."""
        user, number, edits = read(scenario, self.name)
        chosen = edited_world(number, self._version, edits)
        with within(chosen):
            whose = context(user)
        told = f"{self.name}|{written(whose.key, edits)}"
        return whose, chosen, hashlib.sha256(told.encode()).hexdigest()


class DepthBenchV11(DepthBench):
    """The environment ``depthbench-v1.1``: filters add no columns, and names are known in any case."""

    def __init__(self) -> None:
        super().__init__(V1_1.name)

    def __reduce__(self) -> Any:
        return made_by(self, DepthBenchV11)


def made(version: Version) -> DepthBench:
    """The environment of a version."""
    return DepthBench() if version is V1 else DepthBenchV11()
