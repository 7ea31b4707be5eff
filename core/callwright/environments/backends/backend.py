"""What the state of a session offers that lives outside of Python: in a database, behind a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

#: The state as tables: rows of JSON by the name of their table.
Tables = Mapping[str, Sequence[Mapping[str, Any]]]


@runtime_checkable
class Backend(Protocol):
    """A state that is made for one session and closed with it."""

    def tables(self) -> Tables:
        """The whole state, in an order that hangs on nothing but itself: digest, diff and snapshot are made of it.

        What is not in tables is one table of one row.
        """

    def close(self) -> None:
        """Give back what is held: connections, processes. Closing twice is allowed."""


@runtime_checkable
class Transacts(Backend, Protocol):
    """A state that can take back what a call did. Without it a failed call leaves what it had done by then."""

    def begin(self, read_only: bool) -> None:
        """A call begins. One that is ``read_only`` changes nothing, and is kept from it where that is possible."""

    def commit(self) -> None:
        """What the call did stays."""

    def rollback(self) -> None:
        """The state is again as it was when the call began."""


@runtime_checkable
class Forkable(Backend, Protocol):
    """A state that can be copied: for exploring, gates, ``:undo`` of the shell, and replay from the middle."""

    def fork(self) -> Self:
        """Another one with the same content, apart from this one from now on."""


@runtime_checkable
class Loads(Backend, Protocol):
    """A state that can be put back from its tables: ``callwright env call --state FILE`` goes on from one."""

    def load(self, tables: Tables) -> None:
        """Have this content. Raises :class:`callwright.errors.DataError` for tables that are not its own."""
