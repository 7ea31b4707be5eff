"""The clock: opening, calls, digests and closing are answered in time, or the sample is masked."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import callwright as cw
from callwright.environments import clock
from callwright.environments.clock import TimedSession, TookTooLong
from callwright.environments.sessions import is_foreign
from callwright.errors import ComponentError
from callwright.language.program import Call, Program
from callwright.walk.execution import Execution, ExecutionRules, execute
from callwright.walk.trace import Trace

SPECS = {"one": cw.ToolSpec("one")}
PROGRAM = Program((Call(0, "one", {}),))


class Slow:
    """An environment that hangs at one place until it is let go; ``passed`` are the places that it left again."""

    name, pure, tools = "slow", True, SPECS

    def __init__(self, hangs: str = "") -> None:
        self.hangs, self.release, self.closed = hangs, threading.Event(), 0
        self.threads: set[str] = set()
        self.passed: list[str] = []

    def reach(self, place: str) -> None:
        self.threads.add(threading.current_thread().name)
        if place == self.hangs:
            self.release.wait(60)
        self.passed.append(place)

    def open(self, scenario: str = "", seed: int = 0) -> Slow:
        self.reach("open")
        return self

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        self.reach("call")
        return cw.Outcome("ok", 1)

    def digest(self) -> str:
        self.reach("digest")
        return "d"

    def close(self) -> None:
        self.closed += 1
        self.reach("close")


@pytest.fixture(autouse=True)
def nothing_is_stuck() -> Iterator[None]:
    clock._stuck.clear()
    yield
    clock._stuck.clear()


#: One after the other, where what does not hang has to be in time: how soon that is hangs on the machine.
LIMITS = (0.05, 0.5, 5.0, 50.0)


def run(world: Slow, limit: float | None) -> Trace:
    return execute(PROGRAM, world, SPECS, rules=ExecutionRules(time_limit=limit))


@pytest.mark.parametrize("hangs", ["open", "call", "digest", "close"])
def test_everything_is_under_the_clock(hangs: str) -> None:
    for limit in LIMITS:
        world = Slow(hangs)
        try:
            trace = run(world, limit)
            assert hangs not in world.passed, "nobody waits for it"
        finally:
            world.release.set()
        if hangs != "close":
            assert f"more than {limit:g} s" in str(trace.masked)
            break
        if trace.masked is None:
            break
        clock._stuck.clear()
    assert (trace.masked is None) == (hangs == "close"), "what was to be learned of the session is known by then"


def test_what_was_given_up_is_closed_when_it_ends() -> None:
    world = Slow("call")
    run(world, 0.05)
    assert world.closed == 0
    world.release.set()
    until = time.monotonic() + 120
    while not world.closed and time.monotonic() < until:
        time.sleep(0.01)
    assert world.closed == 1


def test_its_thread_ends_while_somebody_holds_the_error() -> None:
    world = Slow("open")
    with pytest.raises(TookTooLong) as held:
        TimedSession(world, "", 0, 0.05)
    ((thread, _),) = clock._stuck
    world.release.set()
    thread.join(120)
    assert not thread.is_alive()
    assert held.value.__traceback__ is not None, "whose frames hold what was left behind"


def test_after_two_overruns_the_command_stops_in_words() -> None:
    worlds = [Slow("call"), Slow("call")]
    for world in worlds:
        assert run(world, 0.05).masked is not None
    with pytest.raises(ComponentError, match=r"2 threads still run .*\(one, one\).*isolated"):
        run(Slow(), 0.05)
    for world in worlds:
        world.release.set()
    for thread, _ in clock._stuck:
        thread.join(120)
    assert run(Slow(), 60.0).masked is None, "threads that have ended harm nobody"


def test_one_thread_serves_session_after_session() -> None:
    world = Slow()
    before = threading.active_count()
    for _ in range(20):
        assert run(world, 60.0).executed
    assert threading.active_count() <= before + 1
    assert world.threads == {"callwright session"}


def test_turns_of_one_session_are_under_the_clock() -> None:
    for limit in LIMITS:
        world = Slow()
        execution = Execution(world, SPECS, rules=ExecutionRules(time_limit=limit))
        if execution.run(PROGRAM).masked is None:
            break
        execution.close()
    world.hangs = "digest"
    assert f"the digest of a session took more than {limit:g} s" in str(execution.run(PROGRAM).masked)
    execution.close()
    world.release.set()


def test_foreign_code_has_a_limit_unless_somebody_says_that_it_has_none() -> None:
    assert is_foreign(Slow())
    assert clock.time_limit_for(Slow(), None) == 30.0
    assert clock.time_limit_for(Slow(), math.inf) is None
    assert clock.time_limit_for(Slow(), 2.0) == 2.0
    world = Slow()
    run(world, math.inf)
    assert world.threads == {threading.current_thread().name}
    run(world, None)
    assert "callwright session" in world.threads


def test_shipped_worlds_have_no_thread_for_each_call() -> None:
    for name in ("banking", "email"):
        assert not is_foreign(cw.environment(name))
    for name in ("toolworld-mini-v1", "depthbench-v1"):
        task = cw.corpus(name)["train"][0]
        assert not is_foreign(task.environment)
        assert clock.time_limit_for(task.environment, None) is None


def test_environments_are_as_foreign_as_their_tools() -> None:
    @cw.tool
    def mine(world: cw.World, /) -> int:
        """One."""
        return 1

    scenario = cw.Scenario(lambda rng, scale: ())
    assert is_foreign(cw.StatefulEnvironment("s", rows=[], tools=[mine], scenarios={"a": scenario}))
    assert is_foreign(cw.environment("f", tools=[cw.tool(lambda: 1, name="x", description="y")]))


# What a tool raises ---------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> cw.environments.FunctionEnvironment:
    @cw.tool
    def one() -> int:
        """Raise."""
        raise error

    return cw.environments.FunctionEnvironment("raising", [one])


@pytest.mark.parametrize("limit", [None, math.inf, 60.0])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit, RuntimeError])
def test_nothing_that_a_tool_raises_leaves_the_walk(kind: type[BaseException], limit: float | None) -> None:
    environment = raising(kind("mine"))
    trace = execute(PROGRAM, environment, environment.tools, rules=ExecutionRules(time_limit=limit))
    (record,) = trace.records
    assert (record.outcome.kind, record.outcome.code) == ("execution_error", kind.__name__)
    assert record.outcome.undeclared.startswith(f"one raised {kind.__name__}")


def test_ctrl_c_is_the_users() -> None:
    import signal

    @cw.tool
    def one() -> int:
        """Be there when the user interrupts."""
        signal.raise_signal(signal.SIGINT)
        return sum(range(1000))

    environment = cw.environments.FunctionEnvironment("interrupted", [one])
    with pytest.raises(KeyboardInterrupt):
        execute(PROGRAM, environment, environment.tools, rules=ExecutionRules(time_limit=math.inf))
