"""Parts of a composed session: the session of each environment, opened when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from callwright.capability import has
from callwright.environments.capabilities import Charges, Forks, HasEvents, HasWorld, MeetsPeople
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.money.charges import Item
from callwright.environments.people.person import People
from callwright.environments.protocol import BoundsResults, Environment, Session, SharesClock, declares
from callwright.environments.sessions import open_session
from callwright.environments.world import World

#: When the next event of a part falls due has to be asked.
UNKNOWN: Final = -1
#: Nothing but what calls take by themselves.
_NO_TIME: Final = ClockPolicy(call=0, user_turn=0)


class Part:
    """One environment of a composed session.

    A part that is not open is in the first state of its scenario. One whose state is that again contributes nothing
    to the digest of the whole, so that it does not show whether it was opened.
    """

    __slots__ = (
        "_first",
        "at",
        "bounded",
        "charges",
        "due",
        "environment",
        "handed",
        "mark",
        "opens",
        "posted",
        "session",
        "shares_clock",
        "stale",
        "takes_time",
        "world_now",
    )

    def __init__(self, environment: Environment, opens: tuple[str, int]) -> None:
        self.environment, self.opens = environment, opens
        self.session: Any = None
        #: By which rows the person pays there, and what of it is posted to the bank.
        self.charges: Any = environment.charges if has(environment, Charges) else None
        self.posted: dict[Item, int] = {}
        #: The time of its session; :data:`UNKNOWN` before it is opened.
        self.at = UNKNOWN
        #: When its next event falls due: a time, ``None`` for never, or :data:`UNKNOWN`.
        self.due: int | None = UNKNOWN
        #: The digest of its state without the clock; empty if it is the first one.
        self.mark = ""
        self._first = ""
        #: Whether :attr:`mark` has to be found again.
        self.stale = False
        #: Whether somebody else has the session, who may change it at any time.
        self.handed = False
        self.shares_clock = self.bounded = False
        #: Whether latencies and lost time of its calls have passed in it when they are over.
        self.takes_time = False
        #: Whether its time can be read here.
        self.world_now = False

    @property
    def name(self) -> str:
        """The name of its environment."""
        return self.environment.name

    @property
    def lives(self) -> bool:
        """Whether anything can fall due in it."""
        return has(self.environment, HasEvents) and bool(self.environment.events)

    def open(self, now: int, people: People | None = None) -> Any:
        """Its session, opened if it is not, with these people, at the time ``now``."""
        session: Any = self.session
        if session is None:
            session = open_session(self.environment, *self.opens)
            if people is not None and has(session, MeetsPeople):
                session.introduce(people)
            self.shares_clock = has(session, SharesClock)
            self.bounded = declares(session, BoundsResults)
            self.world_now = has(session, HasWorld) and isinstance(session.world, World)
            if self.shares_clock:
                session.keep_time(None)  # the whole keeps it
            self.session = session
            self._first = self._digest()
        if self.shares_clock and self.at != now:
            session.wait_until(now)
            self.at = now
        return session

    def keep_time(self, moves: bool, careful: bool) -> None:
        """The whole keeps the time. Where it moves and calls meet hazards, the part sees to what these take of it."""
        if self.shares_clock:
            self.takes_time = moves and (careful or bool(getattr(self.session, "hazards", None)))
            self.session.keep_time(_NO_TIME if self.takes_time else None)

    def next_due(self, opened: Callable[[Part], Any]) -> int | None:
        """When something falls due in it next; ``None``: never. ``opened`` gives its session."""
        if self.due == UNKNOWN or self.handed:
            session = self.session or opened(self)
            self.due = session.next_due() if self.shares_clock else None
        return self.due

    def live_until(self, moment: int) -> tuple[str, ...]:
        """Let time pass in it, and everything happen that falls due."""
        told: tuple[str, ...] = tuple(self.session.live_until(moment))
        self.at = moment
        return told

    def measured(self) -> str:
        """:attr:`mark`, found again if it has to be."""
        if self.session is not None and (self.stale or self.handed):
            found = self._digest()
            self.mark, self.stale = "" if found == self._first else found, False
        return self.mark

    def _digest(self) -> str:
        found: str = self.session.timeless_digest() if self.shares_clock else self.session.digest()
        return found

    def fork(self) -> Part:
        """The same, which goes its own way."""
        other = Part(self.environment, self.opens)
        for name in ("_first", "at", "bounded", "due", "mark", "shares_clock", "stale", "takes_time", "world_now"):
            setattr(other, name, getattr(self, name))
        other.posted = dict(self.posted)
        if self.session is not None:
            forked: Session = self.session.fork() if has(self.session, Forks) else deepcopy(self.session)
            other.session = forked
            other.stale = self.stale or self.handed
        return other

    def close(self) -> None:
        """Give the session back."""
        if self.session is not None:
            self.session.close()
