"""The passing of time: the clock goes from event to event, and each happens at its moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from callwright.environments.living.events import LAST, SIGNED_IN, EventKind, Moment
from callwright.environments.undeclared import account_of
from callwright.environments.world import World
from callwright.errors import CallwrightError, ComponentError

#: More events than this in one stretch of time are a bug: something falls due again and again.
MOST_EVENTS: Final = 100_000
#: What an outcome tells at most. Of more, the latest are told.
MOST_NOTICES: Final = 20


def pass_time(world: World, kinds: Sequence[EventKind], seconds: int) -> list[str]:
    """Let time pass in a world between calls, and everything happen that falls due; what the signed-in person is told.

    The order is that of the times, at one time that of ``kinds``, of one kind that of the keys. What was due before
    happens first, at the time that it is. An event that raises leaves the world as it was before this stretch of time:
    :class:`callwright.errors.ComponentError`.
    """
    world.begin(False)
    try:
        told = _pass(world, kinds, world.now + seconds)
    except BaseException:
        world.undo()
        raise
    world.end()
    return told


def _pass(world: World, kinds: Sequence[EventKind], end: int) -> list[str]:
    told: list[str] = []
    stands: list[Moment] = [(world.now, LAST)] * len(kinds)
    before: tuple[int, Moment] | None = None
    for _ in range(MOST_EVENTS):
        following: tuple[int, Moment] | None = None
        for place, kind in enumerate(kinds):
            moment = kind.due(world, stands[place])
            if moment is not None and moment[0] <= end and (following is None or moment[0] < following[1][0]):
                following = place, moment
        if following is None:
            world.advance(end - world.now)
            return told
        place, moment = following
        kind = kinds[place]
        if following == before:
            raise ComponentError(
                f"the event {kind.name!r} is due again at once ({moment!r:.80}): its run must move it on"
            )
        at, key = moment
        if at > world.now:
            world.advance(at - world.now)
        stands[place], before = moment, following
        try:
            came = kind.run(world, key)
            told += [notice.words for notice in kind.tells(world, key, came) if notice.to == SIGNED_IN]
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(f"{account_of(kind.name, error)}\nThis is a bug of the event {kind.name!r}") from error
    raise ComponentError(f"more than {MOST_EVENTS} events happen until {end}: one of {[kind.name for kind in kinds]}")


def most_told(notices: Sequence[str]) -> tuple[str, ...]:
    """The latest of many notices, and how many came before them."""
    left = len(notices) - MOST_NOTICES + 1
    if left <= 1:
        return tuple(notices)
    return f"{left} earlier notices are not shown", *notices[left:]
