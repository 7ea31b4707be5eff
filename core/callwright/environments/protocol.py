"""Environments, sessions and outcomes: where calls are executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from attrs import frozen

from callwright.errors import Abstention
from callwright.tools.spec import ToolSpec

OutcomeKind = Literal[
    "ok", "empty", "partial", "unknown_tool", "schema_error", "execution_error", "infrastructure_error", "unknown"
]
#: The kinds that count as a call that executed. ``empty`` and ``partial`` are results; an environment that lets a
#: documented error be the right answer of a task reports it as ``ok`` with the error as its value.
EXECUTED: frozenset[str] = frozenset({"ok", "empty", "partial"})


@frozen
class Outcome:
    """What one call came to: a kind, the value (JSON), and for failures a stable code and a sentence."""

    kind: OutcomeKind
    value: Any = None
    code: str = ""
    message: str = ""

    @property
    def executed(self) -> bool:
        """Whether the call ran and returned a result.

        Raises :class:`callwright.errors.Abstention` for the kind ``unknown``: neither answer would be true.
        """
        if self.kind == "unknown":
            raise Abstention(f"whether this call executed is not known: {self.message or 'there is no record of it'}")
        return self.kind in EXECUTED


@runtime_checkable
class Session(Protocol):
    """One isolated world, opened from a scenario and a seed. A failed call leaves it unchanged."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call. Bad arguments are an outcome, not an exception.

        Raising :class:`callwright.InfrastructureFailure` masks the sample; any other exception is taken as the tool's
        own failure (``execution_error``).
        """

    def digest(self) -> str:
        """A hash of the whole state: equal states have equal digests, on every machine."""

    def close(self) -> None:
        """Give back what the session holds. Closing twice is allowed."""


@runtime_checkable
class Environment(Protocol):
    """Tools, and sessions in which they run."""

    @property
    def name(self) -> str:
        """The registered, versioned name."""

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool by name."""

    @property
    def pure(self) -> bool:
        """True if no tool changes its arguments or hands out a value that it changes later.

        Execution then passes values without copying them.
        """

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """A fresh session. The same scenario and seed always give the same digest."""
