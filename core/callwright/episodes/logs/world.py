"""The world of a recorded log of which nothing is known but its tools."""

from __future__ import annotations

from collections.abc import Mapping

from callwright.environments.protocol import Environment, Session
from callwright.errors import InfrastructureFailure
from callwright.tools.spec import ToolSpec


class UnknownWorld(Environment):
    """An environment that cannot be opened: whatever would have to be executed in it masks, and is never 0."""

    def __init__(self, tools: Mapping[str, ToolSpec], name: str = "unknown-world") -> None:
        self._tools, self._name = dict(tools), name

    @property
    def name(self) -> str:
        return self._name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools that the log states, or that were given for it."""
        return self._tools

    @property
    def pure(self) -> bool:
        """True: nothing is ever executed."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """Always raises :class:`callwright.InfrastructureFailure`: the log does not hold its world."""
        raise InfrastructureFailure("the log does not hold the world that it is of, so nothing can be executed in it")
