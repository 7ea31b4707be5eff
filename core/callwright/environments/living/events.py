"""Kinds of events: when the next one falls due, what it does, and whom it tells in which words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from callwright.environments.world import World

#: A time (seconds of the Unix clock) and which event of its kind falls due then. Keys of one kind can be compared.
Moment: TypeAlias = tuple[int, Any]


class _Last:
    """A key after all others."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self


LAST: Final = _Last()
#: Whom a notice is for, if it is the person whose session it is. Anybody else is named by an id.
SIGNED_IN: Final = "signed-in"


@frozen
class Notice:
    """Words for somebody. A session hands on those for the person who is signed in, with the next outcome."""

    words: str
    to: str = SIGNED_IN


def _nothing(world: World, key: Any) -> None:
    """What an event does whose effect follows from the clock alone."""


@frozen
class EventKind:
    """A kind of event, such as ``delivered``.

    ``due(world, since)`` is the next moment: the first after ``since`` where events follow from rows and the clock, or
    what the rows say is next, in which case ``since`` is of no interest and :attr:`run` moves it on. It reads only.
    ``run(world, key)`` does what happens then; ``world.now`` is that moment. ``tells(world, key, came)`` says whom it
    is told, once it has happened; ``came`` is what ``run`` returned. ``summary`` says so in a sentence, for people.
    """

    name: str
    summary: str
    due: Callable[[World, Moment], Moment | None] = field(repr=False)
    tells: Callable[[World, Any, Any], Iterable[Notice]] = field(repr=False)
    run: Callable[[World, Any], Any] = field(default=_nothing, repr=False)


def after(moments: Sequence[Moment], since: Moment) -> Sequence[Moment]:
    """Those of sorted moments that come after one."""
    return moments[bisect_right(moments, since) :]
