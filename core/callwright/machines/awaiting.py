"""Awaiting from synchronous code: what an ``async`` tool or session gives, as what it comes to.

The event loop is only loaded where there is something to await.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any

from callwright.errors import ComponentError


def finished(value: Any) -> Any:
    """What a function gave; if that is to be awaited, what it comes to in the event loop of tools.

    Raises what it raises, as if it had been called here, and :class:`callwright.errors.ComponentError` in that loop
    itself, where it would wait for itself.
    """
    if not isawaitable(value):
        return value
    from callwright.machines import event_loop

    if event_loop.TOOLS.here():
        if iscoroutine(value):
            value.close()  # or Python would complain that it was never awaited
        raise ComponentError(
            f"{getattr(value, '__qualname__', type(value).__name__)!r} is async, and was asked for by ordinary code "
            "within another async tool or session: it would wait for itself, as both run in one event loop. Await it "
            "in that tool, or ask in a thread: await asyncio.to_thread(…)"
        )
    found, error = event_loop.TOOLS.run(_outcome(value))
    if error is not None:
        raise error
    return found


def is_async(function: Any) -> bool:
    """Whether calling it gives something to be awaited, as far as it says so."""
    return iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def waited_for(function: Callable[..., Any]) -> Callable[..., Any]:
    """An ``async`` function as one that waits for what it comes to; any other as it is."""
    if not is_async(function):
        return function

    @functools.wraps(function)
    def wait(*arguments: Any, **named: Any) -> Any:
        return finished(function(*arguments, **named))

    return wait


async def _outcome(value: Any) -> tuple[Any, BaseException | None]:
    """What it comes to, or what it raises: some of that would end the loop, and everybody's calls with it."""
    import asyncio

    try:
        return await value, None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return None, RuntimeError(f"a task was cancelled: {error}" if str(error) else "a task was cancelled")
    except BaseException as error:
        return None, error
