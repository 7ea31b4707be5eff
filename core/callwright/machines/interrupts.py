"""Signals: SIGTERM and SIGHUP end a command the way Ctrl-C does, and what must not be torn apart is not.

with answered():                # the command line does this once
    ...                         # a signal raises Interrupted here, so that everything on the way out is put away
    with postponed():
        ...                     # here it waits for the end of the block; the second one does not
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

#: What ends a command, where the system has it: Ctrl-C, a scheduler's word, a terminal that went away.
ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if getattr(signal, name, None) is not None
)


class Interrupted(KeyboardInterrupt):
    """A signal that ends the command. Like Ctrl-C it passes through every ``except Exception``."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_status(self) -> int:
        """128 and the number of the signal, as shells have it: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + self.number


#: The signals that were answered in the block of :func:`answered` that runs now.
_came: Final[list[int]] = []


def _interrupt(number: int, frame: FrameType | None) -> None:
    _came.append(number)
    raise Interrupted(number)


@contextmanager
def answered() -> Iterator[None]:
    """In this block the ending signals raise :class:`Interrupted` in the main thread.

    A signal comes anywhere, also in code that swallows what is raised in it (a finaliser) or makes another exception of
    it (a library's own C code, half-way through a file). Such an exception ends the block as the signal that it was;
    :func:`postponed` raises what was swallowed.

    A signal that is ignored stays ignored, as ``nohup`` wants it. Outside of the main thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outside, _came[:] = [*_came], []
    try:
        with _finalisers_quiet(), _handled_by(_interrupt):
            yield
    except Exception as error:
        if _came and not _is_of_a_signal(error.__cause__):  # which would say in words that it was stopped
            raise Interrupted(_came[0]) from error
        raise
    finally:
        _came[:] = outside


@contextmanager
def _finalisers_quiet() -> Iterator[None]:
    """A signal in a finaliser is remembered, so that nothing of it has to be printed, as Python does there."""
    before = sys.unraisablehook

    def tell(what: Any) -> None:
        if not issubclass(what.exc_type, Interrupted):
            before(what)

    sys.unraisablehook = tell
    try:
        yield
    finally:
        sys.unraisablehook = before


def _is_of_a_signal(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, Interrupted):
        error = error.__cause__ or error.__context__
    return error is not None


def _raise_what_was_swallowed() -> None:
    if _came and threading.current_thread() is threading.main_thread() and not _is_of_a_signal(sys.exc_info()[1]):
        raise Interrupted(_came[0])


@contextmanager
def postponed() -> Iterator[None]:
    """What this block does is done whole: an ending signal is answered after it, a second one at once.

    Without :func:`answered` that holds for Ctrl-C alone, which everybody answers. Outside of the main thread nothing
    changes: signals only reach the main one.

    The block is not begun, and :class:`Interrupted` raised, where a signal came before that somebody swallowed. Where
    one came in a block that fails, it is answered, with the error as its context.
    """
    _raise_what_was_swallowed()
    with _answered_after(ENDING, second_at_once=True):
        yield


@contextmanager
def _answered_after(numbers: Iterable[int], *, second_at_once: bool = False) -> Iterator[None]:
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    came: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if came and second_at_once:
            before[number](number, frame)
        came.append((number, frame))

    def answer() -> None:
        if came:
            number, frame = came[0]
            before[number](number, frame)

    try:
        with _handled_by(wait, only=[number for number, handler in before.items() if callable(handler)]):
            yield
    except Exception:
        answer()  # or somebody gets over the error, and the signal is forgotten
        raise
    answer()


@contextmanager
def as_before() -> Iterator[None]:
    """Whatever this block does to the ending signals is undone after it: a library may take them for itself."""
    before: dict[int, Any] = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                if handler is not None:  # installed by other means than Python's
                    signal.signal(number, handler)


@contextmanager
def hang_up_waits() -> Iterator[None]:
    """In this block SIGHUP waits; processes that are started in it never hear it.

    A terminal that goes away tells every process of its group, so that one that is needed to end in order would be gone
    before the one that needs it.
    """
    number = getattr(signal, "SIGHUP", None)
    if number is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _answered_after([number]):  # it may reach another thread of this process
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handled_by(handler: Any, only: list[int] | None = None) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    chosen = [number for number in ENDING if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    if only is not None:
        chosen = [number for number in chosen if number in only]
    with ExitStack() as stack:  # a signal may come between any two of these, and ends none of the others
        for number in chosen:
            stack.callback(signal.signal, number, signal.getsignal(number))
            signal.signal(number, handler)
        yield


@contextmanager
def heard_by_loop() -> Iterator[asyncio.Future[int]]:
    """In this block of a coroutine an ending signal is the result of a future, and is raised in nothing that runs.

    A server that answers a request just then would swallow it. A second signal is answered at once. Outside of the main
    thread, and where an event loop hears no signals, nothing changes, and the future has no result.
    """
    import asyncio  # which commands without a loop do not load

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    before: dict[int, Any] = {}

    def hear(number: int) -> None:
        if not ended.done():
            ended.set_result(number)
        elif callable(before[number]):
            before[number](number, None)

    if threading.current_thread() is threading.main_thread():
        before = {one: signal.getsignal(one) for one in ENDING if signal.getsignal(one) not in (signal.SIG_IGN, None)}
        try:
            for number in before:
                loop.add_signal_handler(number, hear, number)
        except NotImplementedError:  # Windows
            before = {}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def leave_signals_to_the_parent() -> None:
    """For a worker: Ctrl-C and a lost terminal reach the whole process group, and the parent decides what they mean."""
    for number in ENDING:
        if number != signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)
