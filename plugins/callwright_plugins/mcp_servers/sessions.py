"""Open sessions by id: bounded, the least recently used closed first, none reopened unnoticed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from attrs import define, field

from callwright.environments.protocol import Session
from callwright.errors import CallwrightError, InfrastructureFailure, UsageError

#: How many ids of sessions that were closed for want of room or use are remembered.
_REMEMBERED: Final = 65_536
#: A scenario and a seed.
World = tuple[str, int]


class SessionGone(InfrastructureFailure):
    """The session was closed by this side. Its state is lost, and an empty one under its id would be a lie."""


@define(eq=False)
class Held:
    """An open session, what it was opened with, and how many calls are in it."""

    id: str
    session: Session
    scenario: str
    seed: int
    used: float
    busy: int = 0
    #: What a server keeps beside it, such as a lock.
    extra: dict[str, Any] = field(factory=dict)


class SessionStore:
    """Sessions by id.

    ``capacity`` bounds them; where one more is wanted, the least recently used that is not in a call is closed.
    ``idle`` closes those that nobody used for so many seconds. An id whose session was closed in one of these ways is
    refused afterwards (:class:`SessionGone`): its state is lost, and nobody should go on without noticing.
    """

    def __init__(
        self, *, capacity: int = 4096, idle: float | None = 1800.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if capacity < 1:
            raise UsageError(f"the number of sessions must be at least 1, not {capacity}")
        self.capacity, self.idle, self._clock = capacity, idle, clock
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._gone: OrderedDict[str, str] = OrderedDict()
        self._lock: Final = threading.RLock()
        self.opened = self.evicted = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, id: object) -> bool:
        return id in self._held

    @property
    def ids(self) -> list[str]:
        """The ids of the open sessions, the least recently used first."""
        return list(self._held)

    def get(self, id: str) -> Held | None:
        """The session of this id, or ``None``. Raises :class:`SessionGone`."""
        with self._lock:
            if self.idle is not None:
                self._close_idle()
            held = self._held.get(id)
            if held is not None:
                held.used = self._clock()
                self._held.move_to_end(id)
            elif id in self._gone:
                raise SessionGone(f"the session {id!r} is gone: {self._gone[id]}. Open another one, under another id")
            return held

    def peek(self, id: str) -> Held | None:
        """The session of this id, or ``None``; that does not count as use."""
        return self._held.get(id)

    def add(self, id: str, session: Session, *, scenario: str = "", seed: int = 0) -> Held:
        """Keep an open session. Raises :class:`callwright.InfrastructureFailure` if there is no room, and closes it."""
        with self._lock:
            if id in self._held:
                raise UsageError(f"there is a session {id!r} already")
            try:
                self._make_room()
            except CallwrightError:
                _close(session)
                raise
            held = self._held[id] = Held(id, session, scenario, seed, self._clock())
            self._gone.pop(id, None)
            self.opened += 1
            return held

    def obtain(
        self, id: str, open: Callable[[str, int], Session], scenario: str | None, seed: int | None, default: World
    ) -> Held:
        """The session of this id, opened if there is none yet; ``default`` is what it is opened with unless told.

        Raises :class:`callwright.UsageError` if it was opened with another scenario or seed, :class:`SessionGone`, and
        what ``open`` raises.
        """
        held = self.get(id)
        if held is None:
            wanted = (default[0] if scenario is None else scenario, default[1] if seed is None else seed)
            session = open(*wanted)  # may take long, so others are not kept waiting
            with self._lock:
                held = self._held.get(id)
                if held is None:
                    return self.add(id, session, scenario=wanted[0], seed=wanted[1])
            _close(session)
        for name, asked, found in (("scenario", scenario, held.scenario), ("seed", seed, held.seed)):
            if asked is not None and asked != found:
                raise UsageError(f"the session {id!r} was opened with {name} {found!r}; it cannot go on with {asked!r}")
        return held

    @contextmanager
    def using(self, held: Held) -> Iterator[None]:
        """While a call is in a session it is not closed to make room."""
        with self._lock:
            held.busy += 1
        try:
            yield
        finally:
            with self._lock:
                held.busy -= 1
                held.used = self._clock()

    def close(self, id: str, *, gone: str = "") -> bool:
        """Close a session; ``False`` if there is none. ``gone`` is why its id is refused from now on, if it is."""
        with self._lock:
            held = self._held.pop(id, None)
            if gone and held is not None:
                self._forget(id, gone)
        if held is None:
            return False
        _close(held.session)
        return True

    def close_all(self) -> None:
        """Close every session."""
        for id in self.ids:
            self.close(id)

    def close_idle(self) -> int:
        """Close what nobody used for too long; how many that were."""
        with self._lock:
            before = len(self._held)
            if self.idle is not None:
                self._close_idle()
            return before - len(self._held)

    def _close_idle(self) -> None:
        assert self.idle is not None
        limit = self._clock() - self.idle
        while self._held:
            held = next(iter(self._held.values()))
            if held.used > limit:
                return
            if held.busy:
                held.used = self._clock()
                self._held.move_to_end(held.id)
                continue
            self._evict(held, f"nobody used it for {self.idle:g} s")

    def _make_room(self) -> None:
        while len(self._held) >= self.capacity:
            oldest = next((held for held in self._held.values() if not held.busy), None)
            if oldest is None:
                raise InfrastructureFailure(f"all {self.capacity} sessions are in use; none can be closed to make room")
            self._evict(oldest, f"it was closed to make room ({self.capacity} sessions are the limit)")

    def _evict(self, held: Held, reason: str) -> None:
        del self._held[held.id]
        self._forget(held.id, reason)
        self.evicted += 1
        _close(held.session)

    def _forget(self, id: str, reason: str) -> None:
        self._gone[id] = reason
        while len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)


def _close(session: Session) -> None:
    with suppress(InfrastructureFailure):
        session.close()
