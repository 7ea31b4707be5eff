"""``async def`` tools and sessions: they run from synchronous code, in the order written, under the time limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments.clock import _stuck, too_many_stuck
from callwright.environments.sessions import open_session
from callwright.episodes.conversation import Conversation
from callwright.language.program import Call
from callwright.tools.spec import Refused
from callwright.walk.execution import STRICT, execute

ENDED: list[str] = []
#: Lets go of what blocks.
RELEASE = threading.Event()


@cw.tool
async def double(number: int) -> int:
    """Twice the number."""
    await asyncio.sleep(0)
    return 2 * number


@cw.tool
async def note(notes: list[str], /, text: str, wait: float = 0.0) -> list[str]:
    """Write something down, after a while."""
    await asyncio.sleep(wait)
    notes.append(text)
    return list(notes)


@cw.tool
async def fail(notes: list[str], /, how: str) -> None:
    """Fail, after a change."""
    notes.append("changed")
    await asyncio.sleep(0)
    raise {
        "told": cw.ToolError("told", "it said so"),
        "refused": Refused("refused", "no"),
        "bug": ZeroDivisionError("division by zero"),
        "exit": SystemExit(3),
        "machinery": cw.InfrastructureFailure("the server is down"),
        "cancelled": asyncio.CancelledError(),
    }[how]


@cw.tool
async def hang(seconds: float) -> None:
    """Wait as long as it says."""
    try:
        await asyncio.sleep(seconds)
        ENDED.append("slept")
    except asyncio.CancelledError:
        ENDED.append("cancelled")
        raise


@cw.tool
async def block() -> None:
    """Keep the event loop from turning, which no coroutine should."""
    RELEASE.wait(60)


ENVIRONMENT = cw.environment("notes", tools=[double, note, fail, hang, block], state=lambda scenario, seed: [])


#: One after the other, until what is to be late had begun by then: how soon that is hangs on the machine.
LIMITS = (0.05, 0.5, 5.0)


def run(*calls: tuple[str, dict[str, Any]], environment: Any = ENVIRONMENT, limit: float | None = None) -> Any:
    program = cw.Program(tuple(Call(number, name, given) for number, (name, given) in enumerate(calls)))
    trace = execute(program, environment, environment.tools, rules=evolve(STRICT, time_limit=limit))
    return [(record.outcome.kind, record.outcome.code or record.outcome.value) for record in trace.records]


def test_calls_keep_their_written_order() -> None:
    """The first one waits longer than the others."""
    calls = [("note", {"text": "a", "wait": 0.02}), ("note", {"text": "b"}), ("double", {"number": 4})]
    assert run(*calls) == [("ok", ["a"]), ("ok", ["a", "b"]), ("ok", 8)]


@pytest.mark.parametrize(
    ("how", "kind", "code"),
    [
        ("told", "execution_error", "told"),
        ("bug", "execution_error", "ZeroDivisionError"),
        ("exit", "execution_error", "SystemExit"),
        ("cancelled", "execution_error", "RuntimeError"),
    ],
)
def test_what_a_tool_raises_is_what_a_synchronous_one_raises_and_is_undone(how: str, kind: str, code: str) -> None:
    found = run(("note", {"text": "a"}), ("fail", {"how": how}), ("note", {"text": "b"}))
    assert found == [("ok", ["a"]), (kind, code), ("ok", ["a", "b"])]


def test_episodes_run_them_turn_by_turn_in_one_session() -> None:
    task = cw.Task("t", "", ENVIRONMENT.tools, cw.Answer(), ENVIRONMENT)
    conditions = cw.Conditions(limits=cw.TurnLimits(assistant_turns=3))
    talk = Conversation(task, Lists(), [cw.Message("user", "Write it down.")], conditions)
    for text in ('[["note", {"text": "a", "wait": 0.01}], ["note", {"text": "b"}]]', '[["note", {"text": "c"}]]', "[]"):
        talk.accept(cw.walk.Completion(text))
    attempt = talk.attempt
    assert [record.outcome.value for record in attempt.whole_trace.records] == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_a_refusal_stays_and_a_failure_of_the_machinery_masks() -> None:
    assert run(("fail", {"how": "refused"}), ("note", {"text": "b"})) == [
        ("refused", "refused"),
        ("ok", ["changed", "b"]),
    ]
    assert run(("fail", {"how": "machinery"}), ("note", {"text": "b"})) == [("infrastructure_error", "infrastructure")]


def test_arguments_are_checked_before_it_runs() -> None:
    assert run(("double", {"number": "x"}))[0][0] == "schema_error"
    assert double.spec.result == {"type": "integer"}


def test_over_its_time_it_is_cancelled_and_leaves_no_thread_behind() -> None:
    """As often as it happens; two threads that were left behind would end the command."""
    ENDED.clear()
    _stuck.clear()
    for limit in LIMITS:
        for _ in range(4 - len(ENDED)):
            assert run(("hang", {"seconds": 3600.0}), limit=limit) == [("infrastructure_error", "timeout")]
        assert run(("double", {"number": 1}), limit=60.0) == [("ok", 2)]
        if len(ENDED) == 4:  # of a machine that is busy, some had not begun
            break
    assert ENDED == ["cancelled"] * 4
    assert _stuck == []


def test_a_tool_that_blocks_the_loop_is_left_behind_with_it() -> None:
    _stuck.clear()
    RELEASE.clear()
    for limit in LIMITS:
        assert run(("block", {}), limit=limit) == [("infrastructure_error", "timeout")]
        if _stuck:  # on a machine that is busy, it had not begun
            break
    ((thread, what),) = _stuck
    assert (thread.name, what) == ("callwright tools", "block")
    assert run(("double", {"number": 1}), limit=60.0) == [("ok", 2)]  # in a new one
    assert thread.is_alive()
    assert not too_many_stuck()
    RELEASE.set()
    thread.join(120)
    assert not thread.is_alive()  # so that it is held against nobody later
    _stuck.clear()


def test_it_runs_inside_of_a_running_loop_too() -> None:
    async def service() -> Any:
        return run(("double", {"number": 2}))

    assert asyncio.run(service()) == [("ok", 4)]


def test_a_component_that_waits_may_execute_what_waits() -> None:
    """Its loop is not that of tools, so that neither waits for itself."""

    class Executes(cw.AsyncRewardComponent):
        name = "executes"

        def prepare(self, attempt: cw.Attempt) -> None:
            """Nothing, so that it is executed where the component waits."""

        async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
            trace = attempt.trace
            assert trace is not None
            return cw.Score(float(trace.records[0].outcome.value == 4))

    task = cw.Task("t", "", ENVIRONMENT.tools, cw.Answer(), ENVIRONMENT)
    recipe = cw.RewardRecipe("executing", (cw.Term(Executes()),))
    assert recipe.score(task, '[["double", {"number": 2}]]', ir=Lists()).total == 1.0


class Lists:
    """A list of calls, each a name and arguments."""

    name = "lists"

    def parse(self, text: str) -> cw.Program:
        import json

        return cw.Program(tuple(Call(number, *call) for number, call in enumerate(json.loads(text))))

    def render(self, program: cw.Program) -> str:
        raise NotImplementedError

    def instructions(self) -> str:
        return ""


class Remote(cw.Session):
    """A session on another machine."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:  # type: ignore[override]
        await asyncio.sleep(0)
        self.said.append(tool)
        return cw.Outcome("ok", {"said": list(self.said), "thread": threading.current_thread().name})

    async def digest(self) -> str:  # type: ignore[override]
        return "-".join(self.said)

    async def close(self) -> None:  # type: ignore[override]
        self.said.append("closed")


class RemoteEnvironment(cw.Environment):
    """Opens them, at once or after a while."""

    def __init__(self, waits: bool) -> None:
        self.waits = waits
        self.opened: list[Remote] = []

    @property
    def name(self) -> str:
        return "remote"

    @property
    def tools(self) -> Mapping[str, cw.ToolSpec]:
        return {"ping": cw.ToolSpec("ping")}

    @property
    def pure(self) -> bool:
        return False

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        self.opened.append(Remote())
        return self._later(self.opened[-1]) if self.waits else self.opened[-1]

    async def _later(self, session: Remote) -> Remote:
        await asyncio.sleep(0)
        return session


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("limit", [60.0, float("inf")])
def test_a_session_may_be_async_as_a_whole(waits: bool, limit: float) -> None:
    environment = RemoteEnvironment(waits)
    program = cw.Program((Call(0, "ping", {}), Call(1, "ping", {})))
    trace = execute(program, environment, environment.tools, rules=evolve(STRICT, time_limit=limit))
    assert [record.outcome.value["said"] for record in trace.records] == [["ping"], ["ping", "ping"]]
    assert {record.outcome.value["thread"] for record in trace.records} == {"callwright tools"}
    assert [record.state for record in trace.records] == ["ping", "ping-ping"]
    assert environment.opened[0].said == ["ping", "ping", "closed"]
    session: Any = open_session(environment, "", 0)
    assert session.said == []


@cw.tool
async def calls_another(how: str) -> dict[str, Any]:
    """Ask for another async tool in the middle of a coroutine."""
    await asyncio.sleep(0)

    def executed(limit: float | None) -> cw.Outcome:
        program = cw.Program((Call(0, "double", {"number": 4}),))
        trace = execute(program, ENVIRONMENT, ENVIRONMENT.tools, rules=evolve(STRICT, time_limit=limit))
        return trace.records[0].outcome

    if how == "awaited":
        return {"value": await double.function(4)}
    if how == "tool":
        return {"value": double.call(None, {"number": 4})}
    if how == "session":
        outcome = ENVIRONMENT.open().call("double", {"number": 4})
    elif how == "thread":
        outcome = await asyncio.to_thread(executed, 20.0)
    else:
        outcome = executed(20.0 if how == "timed" else None)
    return {"kind": outcome.kind, "code": outcome.code, "value": outcome.value, "said": outcome.message}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", ["session", "executed", "timed"])
@pytest.mark.parametrize("limit", [20.0, None])
def test_a_tool_that_asks_for_another_in_ordinary_code_is_told_at_once(how: str, limit: float | None) -> None:
    """It would wait for itself until a limit of time ended it, and every other tool with it."""
    _stuck.clear()
    calls = cw.environment("calls", tools=[calls_another])
    ((kind, found),) = run(("calls_another", {"how": how}), environment=calls, limit=limit)
    assert (kind, found["kind"], found["code"]) == ("ok", "execution_error", "ComponentError")
    assert found["said"].startswith("'double' is async")
    assert run(("double", {"number": 1}), limit=60.0) == [("ok", 2)]
    assert _stuck == []


def test_a_tool_may_ask_for_another_by_awaiting_it_or_in_a_thread() -> None:
    calls = cw.environment("calls", tools=[calls_another])
    found = run(("calls_another", {"how": "awaited"}), ("calls_another", {"how": "thread"}), environment=calls)
    assert [outcome["value"] for _, outcome in found] == [8, 8]
    assert run(("calls_another", {"how": "tool"}), environment=calls) == [("execution_error", "ComponentError")]


def test_what_cannot_be_run_is_refused_in_words() -> None:
    async def stream(number: int) -> Any:
        """One after the other."""
        yield number

    async def state(scenario: str, seed: int) -> list[str]:
        return []

    with pytest.raises(cw.UsageError, match=r"'stream' is an async generator; a call has one result"):
        cw.tool(stream)
    with pytest.raises(cw.UsageError, match=r"'late': the function that makes a state is async"):
        cw.environment("late", tools=[double], state=state)
