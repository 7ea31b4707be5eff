"""A line at a door: calls of several threads and coroutines go in one at a time, in the order in which they came.

Frameworks run the parallel calls of one message in threads, so that they arrive in any order. A call that knows which
calls stand before it in its message waits for these; since one of them may never come (the framework answered it
itself), it does not wait for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from attrs import define, field

from callwright.errors import SessionInUse

#: Seconds for which a call waits for those that were written before it.
PATIENCE: Final = 5.0


@define(eq=False)
class Ticket:
    """A place in the line. ``after`` are ids of calls that go first, until ``patience_ends`` (monotonic seconds)."""

    after: frozenset[str] = frozenset()
    patience_ends: float = 0.0
    #: Those that were waited for in vain.
    missed: frozenset[str] = field(default=frozenset())


class Line:
    """Who waits, and who is inside. ``patience`` is in seconds."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._changed = threading.Condition()
        self._waiting: list[Ticket] = []
        self._inside: int | None = None
        self._done: set[str] = set()

    def join(self, after: Iterable[str] = ()) -> Ticket:
        """Take the last place: at once, so that the order is that in which callers came."""
        with self._changed:
            ticket = Ticket(frozenset(after) - self._done, time.monotonic() + self._patience)
            self._waiting.append(ticket)
            return ticket

    @property
    def busy(self) -> bool:
        """Whether somebody is inside or waits."""
        with self._changed:
            return self._inside is not None or bool(self._waiting)

    @contextmanager
    def inside(self, ticket: Ticket, call_id: str = "") -> Iterator[bool]:
        """Wait for one's turn, and let the next one in afterwards; false for a place that was given up meanwhile.

        Raises :class:`callwright.errors.SessionInUse` for a caller that is inside already: a tool that calls a tool.
        """
        me = threading.get_ident()
        with self._changed:
            if self._inside == me:
                self._waiting.remove(ticket)
                raise SessionInUse(
                    "a tool of this log called another one from inside: the session is in the middle of a call. Let "
                    "the agent call both"
                )
            while ticket in self._waiting and not self._may_enter(ticket):
                self._changed.wait(timeout=max(ticket.patience_ends - time.monotonic(), 0.0) if ticket.after else None)
            stands = ticket in self._waiting
            if stands:
                self._waiting.remove(ticket)
                self._inside = me
        if not stands:
            yield False
            return
        try:
            yield True
        finally:
            with self._changed:
                self._inside = None
                if call_id:
                    self._done.add(call_id)
                self._changed.notify_all()

    def leave(self, ticket: Ticket) -> None:
        """Give up a place: whoever it was for will not come."""
        with self._changed:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def _may_enter(self, ticket: Ticket) -> bool:
        """Whether nobody is inside and this is the first in the line of those who wait for nobody else."""
        return self._inside is None and next(filter(self._ready, self._waiting), None) is ticket

    def _ready(self, ticket: Ticket) -> bool:
        missing = ticket.after - self._done
        if missing and time.monotonic() >= ticket.patience_ends:
            ticket.missed, ticket.after = frozenset(missing), frozenset()
            self._changed.notify_all()
            return True
        return not missing
