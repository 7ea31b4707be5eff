"""What must be set up before it is used and closed after it: a client, a process, a model in memory.

Whoever has one defines ``setup()`` and ``close()``, each an ordinary function or an ``async`` one. It is set up once in
a process, by whoever needs it first. :func:`hold` says that it is going to be needed for a while, :func:`release` that
it is not any more; the last one to release it closes it, and the end of the process closes what nobody held. All of it
happens in the background event loop, one after the other, so that a client may be opened, used and closed in one loop.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from inspect import iscoroutinefunction
from typing import Any, Final

from attrs import define, field

from callwright.capability import Closes, SetsUp, has
from callwright.machines import event_loop

#: How long everything may take to close when the interpreter leaves, in seconds.
_FAREWELL: Final = 10.0


@define
class _Life:
    """One thing that is set up and closed, how many hold it, and whether it is set up."""

    thing: Any = field(repr=False)
    turn: asyncio.Lock = field(factory=asyncio.Lock)
    holders: int = 0
    is_open: bool = False


_lives: dict[int, _Life] = {}


async def call(function: Any, *arguments: Any) -> Any:
    """What a function gives, which is ordinary (and then runs in a thread) or ``async``."""
    if iscoroutinefunction(function):
        return await function(*arguments)
    found = await event_loop.in_thread(function, *arguments)
    return await found if hasattr(found, "__await__") else found


def has_one(thing: Any) -> bool:
    """Whether a thing is to be set up or closed at all."""
    return has(thing, SetsUp) or has(thing, Closes)


async def opened(thing: Any) -> None:
    """Set up what is not, in the background loop. Raises what its ``setup`` raises; the next one tries again."""
    if not has_one(thing):
        return
    life = _lives.get(id(thing))
    if life is not None and life.is_open:
        return
    if life is None:
        life = _lives[id(thing)] = _Life(thing)
    async with life.turn:
        if not life.is_open:
            if has(thing, SetsUp):
                await call(thing.setup)
            life.is_open = True


async def _closed(life: _Life) -> None:
    async with life.turn:
        if life.is_open and not life.holders:
            life.is_open = False
            if has(life.thing, Closes):
                await call(life.thing.close)
    if not life.holders and not life.is_open:
        _lives.pop(id(life.thing), None)


async def _hold(things: Sequence[Any]) -> None:
    held: list[_Life] = []
    try:
        for thing in things:
            life = _lives.setdefault(id(thing), _Life(thing))
            life.holders += 1
            held.append(life)
            await opened(thing)
    except BaseException:
        for life in reversed(held):
            life.holders -= 1
            await _closed(life)
        raise


async def _release(things: Sequence[Any]) -> None:
    errors: list[Exception] = []
    for thing in reversed(things):
        life = _lives.get(id(thing))
        if life is None:
            continue
        life.holders -= 1
        try:
            await _closed(life)
        except Exception as error:  # the others are closed all the same
            errors.append(error)
    if errors:
        raise errors[0]


def need(things: Sequence[Any]) -> None:
    """Set up what is not. Nobody holds it: it is closed with whoever holds it later, or when the process ends."""

    async def each() -> None:
        for thing in things:
            await opened(thing)

    event_loop.run(each())


def hold(things: Sequence[Any]) -> None:
    """Set up what is not, and keep all of it open until :func:`release`.

    Raises what a ``setup`` raises, after what was held before it was given back.
    """
    if things:
        event_loop.run(_hold(things))


def release(things: Sequence[Any]) -> None:
    """Close what nobody else holds, the last one first. Raises the first error, after all of it was closed."""
    if things:
        event_loop.run(_release(things))


def _leave() -> None:
    """Close what is still open when the interpreter leaves."""

    async def close() -> None:
        lives = list(_lives.values())
        for life in lives:
            life.holders = 0
        await asyncio.gather(*map(_closed, lives), return_exceptions=True)

    if any(life.is_open for life in _lives.values()):
        try:
            event_loop.submit(close()).result(_FAREWELL)
        except (FutureTimeout, RuntimeError):  # it had its time
            return


# Limits ---------------------------------------------------------------------------------------------------------------

_slots: dict[int, tuple[weakref.ref[Any], asyncio.Semaphore]] = {}


def slots(owner: Any, count: int) -> asyncio.Semaphore:
    """What limits how many ask ``owner`` at once: one for the whole process, used in the background loop."""
    key, known = id(owner), _slots
    found = known.get(key)
    if found is None or found[0]() is not owner:
        found = known[key] = weakref.ref(owner, lambda _: known.pop(key, None)), asyncio.Semaphore(count)
    return found[1]


def _forget() -> None:
    """In a forked process: what was open belongs to the other one."""
    _lives.clear()
    _slots.clear()


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
