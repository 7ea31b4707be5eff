"""Signals end a block the way Ctrl-C does, and what is postponed is done whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from callwright.errors import RunError
from callwright.machines.interrupts import (
    ENDING,
    Interrupted,
    answered,
    as_before,
    hang_up_waits,
    heard_by_loop,
    postponed,
)

PIPES: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
EACH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


def two_steps(number: signal.Signals, done: list[str], *, signals: int = 1) -> None:
    """Sends the signals inside of a postponed block, each followed by a word."""
    with postponed():
        for at in range(signals):
            os.kill(os.getpid(), number)
            done.append(f"inside {at}")
    done.append("after")


@EACH
def test_a_signal_is_an_interrupt_with_the_status_of_a_shell(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught, answered():
        os.kill(os.getpid(), number)
    assert caught.value.exit_status == 128 + number
    assert signal.getsignal(number) is before


@EACH
def test_a_postponed_signal_waits_for_the_end_and_the_second_does_not(number: signal.Signals) -> None:
    done: list[str] = []
    with pytest.raises(Interrupted), answered():
        two_steps(number, done)
    assert done == ["inside 0"]
    with pytest.raises(Interrupted), answered():
        two_steps(number, done, signals=2)
    assert done == ["inside 0", "inside 0"]


def fail_in_a_step(number: signal.Signals, done: list[str]) -> None:
    """Gets over an error of a postponed block, as one does who tries again."""
    with contextlib.suppress(OSError), postponed():
        os.kill(os.getpid(), number)
        done.append("inside")
        raise OSError("the disk is full")
    done.append("after")


@EACH
def test_a_signal_is_not_forgotten_over_the_error_of_a_postponed_block(number: signal.Signals) -> None:
    done: list[str] = []
    with pytest.raises(Interrupted) as caught, answered():
        fail_in_a_step(number, done)
    assert caught.value.number == number
    assert isinstance(caught.value.__context__, OSError)
    with pytest.raises(Interrupted), answered(), postponed():
        fail_in_a_step(number, done)
    assert done == ["inside", "inside", "after"]  # the outer block is done whole


@EACH
@pytest.mark.parametrize("moment", range(6))
def test_a_signal_that_comes_while_handlers_are_exchanged_leaves_none_of_them_behind(
    number: signal.Signals, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = signal.signal, []

    def exchange(changed: int, handler: Any) -> Any:
        old = real(changed, handler)
        calls.append(changed)
        if len(calls) == moment + 1:
            os.kill(os.getpid(), number)
        return old

    found: list[list[Any]] = []

    def postpone() -> None:
        found.append([signal.getsignal(one) for one in ENDING])
        monkeypatch.setattr(signal, "signal", exchange)
        try:
            with postponed():
                pass
        finally:
            monkeypatch.undo()
            found.append([signal.getsignal(one) for one in ENDING])

    with pytest.raises(Interrupted), answered():
        postpone()
    before, after = found
    assert after == before


def test_ctrl_c_is_postponed_without_a_command_line() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        two_steps(signal.SIGINT, done)
    assert done == ["inside 0"]


def swallow() -> None:
    """As a finaliser does, or C code that has errors of its own."""
    with contextlib.suppress(Interrupted):
        os.kill(os.getpid(), signal.SIGTERM)


def load(error: Exception) -> None:
    """A library that makes another error of a signal."""
    swallow()
    raise error


def stop_in_words() -> None:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt as stop:
        raise RunError("stopped in words") from stop


def swallow_and_write(done: list[str]) -> None:
    swallow()
    done.append("before")
    with postponed():
        done.append("inside")


def stop_and_write(done: list[str]) -> None:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        with postponed():
            done.append("put away")


def test_a_signal_that_became_another_error_ends_the_block_as_a_signal() -> None:
    with pytest.raises(Interrupted) as caught, answered():
        load(ValueError("could not determine the shape"))
    assert caught.value.number == signal.SIGTERM
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ValueError, match="mine"), answered():  # the next block knows nothing of it
        raise ValueError("mine")


def test_words_for_a_stop_are_kept() -> None:
    with pytest.raises(RunError, match="stopped in words"), answered():
        stop_in_words()


def test_nothing_more_is_written_after_a_signal_that_was_swallowed() -> None:
    done: list[str] = []
    with pytest.raises(Interrupted), answered():
        swallow_and_write(done)
    assert done == ["before"]


def test_a_signal_in_a_finaliser_prints_nothing_and_is_answered_all_the_same() -> None:
    """Python prints what a finaliser raises, with a traceback, which is nothing for whoever ends a command."""
    program = """
import os, signal
from callwright.machines.interrupts import Interrupted, answered, postponed

class Handle:
    def __init__(self, number): self.number = number
    def __del__(self):
        if self.number is None: raise ValueError("a bug of the finaliser's own")
        os.kill(os.getpid(), self.number)

try:
    with answered():
        Handle(None)
        Handle(signal.SIGTERM)
        with postponed(): print("written")
except Interrupted as stop:
    print("ended by", stop)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "ended by SIGTERM\n"
    assert done.stderr.count("Traceback") == 1, "a bug is still told of"
    assert "a bug of the finaliser's own" in done.stderr
    assert "Interrupted" not in done.stderr


def test_on_the_way_out_things_are_still_written() -> None:
    done: list[str] = []
    with pytest.raises(Interrupted), answered():
        stop_and_write(done)
    assert done == ["put away"]


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with answered(), postponed():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_loop_hears_a_signal_that_what_runs_in_it_would_have_swallowed() -> None:
    before = {number: signal.getsignal(number) for number in ENDING}

    async def served() -> tuple[int, int]:
        swallowed, asked = 0, asyncio.Event()

        async def greedy() -> None:
            nonlocal swallowed
            while True:
                asked.set()
                try:
                    for _ in range(1000):
                        len("an answer is written")
                except BaseException:
                    swallowed += 1
                await asyncio.sleep(0)

        with heard_by_loop() as ended:
            task = asyncio.create_task(greedy())
            await asked.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            heard = await ended
            task.cancel()
        return heard, swallowed

    with answered():
        handler = signal.getsignal(signal.SIGTERM)
        assert asyncio.run(served()) == (signal.SIGTERM, 0)
        assert signal.getsignal(signal.SIGTERM) is handler
    assert {number: signal.getsignal(number) for number in ENDING} == before


def test_a_second_signal_is_answered_at_once() -> None:
    async def served() -> None:
        with heard_by_loop() as ended:
            os.kill(os.getpid(), signal.SIGINT)
            await ended
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)

    with pytest.raises(Interrupted), answered():
        asyncio.run(served())


def test_a_loop_of_another_thread_hears_nothing() -> None:
    async def served() -> bool:
        with heard_by_loop() as ended:
            return ended.done()

    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(served())))
    thread.start()
    thread.join()
    assert found == [False]


def test_other_threads_change_nothing() -> None:
    handlers = []

    def inside() -> None:
        with answered(), postponed():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGTERM)]


def test_what_a_library_does_to_signals_is_undone() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with answered():
        mine = signal.getsignal(signal.SIGTERM)
        with as_before():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        assert signal.getsignal(signal.SIGTERM) is mine
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there are no hang-ups here")
def test_a_hang_up_waits_and_what_is_started_meanwhile_never_hears_it() -> None:
    """Also where another thread could take it."""
    done: list[str] = []
    end = threading.Event()
    threading.Thread(target=end.wait, daemon=True).start()

    def start_and_hang_up() -> None:
        with hang_up_waits():
            child = subprocess.Popen([sys.executable, "-c", "print('begun', flush=True); input()"], **PIPES)
            assert child.stdout.readline() == "begun\n"
            child.send_signal(signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGHUP)
            child.communicate("\n")
            done.append(f"the child ended with {child.returncode}")

    with pytest.raises(Interrupted) as caught, answered():
        start_and_hang_up()
    end.set()
    assert caught.value.number == signal.SIGHUP
    assert done == ["the child ended with 0"]
    assert signal.SIGHUP not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
