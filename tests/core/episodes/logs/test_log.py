"""Logs: what ran, in which order, matched with what the model wrote; and what rewards make of it without executing."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.environments import FunctionEnvironment, tell
from callwright.episodes import Logged, UnknownWorld
from callwright.errors import Abstention, SessionInUse, UnknownName
from callwright.language import ParseFailure, ToolCall


class Till:
    """A state in which the order of additions shows."""

    def __init__(self, scenario: str, seed: int) -> None:
        self.entries: list[str] = [scenario]


@cw.tool
def enter(till: Till, /, text: str) -> int:
    """Add an entry; returns how many there are."""
    if text == "bad":
        raise cw.ToolError("BAD", "no such text")
    till.entries.append(text)
    return len(till.entries)


@cw.tool(read_only=True)
def entries(till: Till, /) -> list[str]:
    """All entries."""
    return till.entries


def till() -> FunctionEnvironment:
    return FunctionEnvironment("till", [enter, entries], state=Till)


def task(**changed: Any) -> cw.Task:
    world = till()
    return cw.Task("t", "enter a", world.tools, cw.Answer((2,)), world, **changed)


def call(identifier: str, name: str = "enter", **arguments: Any) -> ToolCall:
    return ToolCall(identifier, name, json.dumps(arguments))


@pytest.mark.parametrize(("written", "kind"), [("[1]", "a list"), ("null", "null"), ('"a"', "text"), ("3", "a number")])
def test_arguments_that_are_no_object_are_an_outcome(written: str, kind: str) -> None:
    with cw.Log(task()) as log:
        outcome = log.call("enter", json.loads(written), call_id="1")
        assert log.call("entries", {}, call_id="2").value == [""], "it never reached the world"
    assert (outcome.kind, outcome.code) == ("schema_error", "arguments_not_object")
    assert outcome.message == f"the arguments of 'enter' are {kind}, not an object"
    messages = [cw.Message("assistant", tool_calls=(ToolCall("1", "enter", written), call("2", "entries")))]
    assert log.findings(messages) == (f"enter was asked with {kind} in place of an object, and did not run",)
    attempt = log.episode(messages)
    assert attempt.masked is None
    assert cw.reward("tier").score_attempt(attempt).total < 1


def test_arguments_may_be_the_text_that_clients_hand_on() -> None:
    """Of OpenAI's ``function.arguments``: a model that wrote them right was told that it had not."""
    with cw.Log(task()) as log:
        assert log.call("enter", '{"text": "a"}', call_id="1").kind == "ok"
        assert log.call("entries", "", call_id="2").value == ["", "a"]
        assert log.call("enter", '{"text": "a", "text": "b"}', call_id="3").code == "arguments_not_object"
    messages = [
        cw.Message("assistant", tool_calls=(ToolCall("1", "enter", '{"text": "a"}'), ToolCall("2", "entries", ""))),
        cw.Message.assistant("done"),
    ]
    assert [one.arguments for one in log.calls] == [{"text": "a"}, {}]
    assert [record.outcome.kind for record in log.episode(messages).whole_trace.records] == ["ok", "ok"]


@pytest.mark.parametrize("arguments", [[1], None, "{broken", 3])
def test_arguments_that_are_no_object_count_without_messages_too(arguments: Any, tmp_path: Path) -> None:
    with cw.Log(task()) as log:
        log.call("enter", arguments)
        log.call("entries", {})
        log.call("enter", arguments)
    log.write(tmp_path / "log.jsonl")
    (read,) = cw.read_log(tmp_path / "log.jsonl", task=task())
    for attempt in (log.episode(), read.episode()):
        failed = [turn.parsed.code if isinstance(turn.parsed, ParseFailure) else "" for turn in attempt.turns]
        assert [bool(code) for code in failed] == [True, False, True]
        assert [record.tool for record in attempt.whole_trace.records] == ["entries"]
        reward = cw.reward("tier").score_attempt(attempt)
        assert reward.stage in ("format", "parse")
        assert reward.total is not None
        assert reward.total <= 0.1


def test_a_log_is_scored_without_executing_again() -> None:
    with cw.Log(task()) as log:
        outcome = log.call("enter", {"text": "a"}, call_id="1")
    messages = [
        cw.Message.user("enter a"),
        cw.Message.assistant(tool_calls=[call("1", text="a")]),
        cw.Message.tool(tell(outcome), "1"),
        cw.Message.assistant("done"),
    ]
    attempt = log.episode(messages)
    assert attempt.is_told
    assert cw.reward("tier").score_attempt(attempt).total == 1.0
    assert attempt.trace is not None
    assert attempt.trace.records[0].state == log.calls[0].state != log.calls[0].before == attempt.trace.state
    assert log.findings(messages) == ()
    assert log.replay().same
    assert log.episode([message.to_openai() for message in messages]).parts == attempt.parts


def test_without_messages_every_call_is_a_turn() -> None:
    log = cw.Log(till(), scenario="s")
    for text in ("a", "bad", "b"):
        log.call("enter", {"text": text})
    attempt = log.episode()
    assert [turn.trace.records[0].outcome.kind for turn in attempt.turns if turn.trace] == [
        "ok",
        "execution_error",
        "ok",
    ]
    assert log.replay().compared == 3


@given(st.permutations(range(5)), st.booleans())
@settings(max_examples=40, deadline=None)
def test_calls_are_scored_in_the_order_in_which_they_ran(order: list[int], named: bool) -> None:
    """The oracle is a session in which they run so: the states after each call are its digests."""
    calls = [call(f"c{at}", text=str(at)) for at in range(5)]
    with cw.Log(task()) as log:
        for at in order:
            log.call("enter", {"text": str(at)}, call_id=f"c{at}" if named else "", turn="m")
    attempt = log.episode([cw.Message.assistant(tool_calls=calls)])
    session, states = till().open("", 0), {}
    for at in order:
        session.call("enter", {"text": str(at)})
        states[at] = session.digest()
    trace = attempt.trace
    assert trace is not None
    assert [record.state for record in trace.records] == [states[at] for at in range(5)]
    assert list(trace.ran) == list(order)
    assert trace.final_state == session.digest()
    assert cw.replay(attempt).same
    assert bool(log.findings([cw.Message.assistant(tool_calls=calls)])) == (list(order) != sorted(order))


def test_calls_of_threads_go_in_one_at_a_time() -> None:
    """Without a log two threads in one session are refused; in it they take turns, and nothing is lost."""
    log = cw.Log(till())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: log.call("enter", {"text": str(number)}), range(200)))
    assert [one.outcome.value for one in log.calls] == list(range(2, 202))


def test_the_written_order_is_kept_whichever_thread_comes_first() -> None:
    log = cw.Log(till())
    ids = [f"c{at}" for at in range(6)]
    begun = [
        threading.Thread(
            target=log.call,
            args=("enter", {"text": str(at)}),
            kwargs={"call_id": ids[at], "turn": "m", "after": ids[:at]},
        )
        for at in reversed(range(6))
    ]
    for thread in begun:
        thread.start()
    for thread in begun:
        thread.join()
    assert [one.arguments["text"] for one in log.calls] == [str(at) for at in range(6)]


def test_a_call_before_it_that_never_comes_is_not_waited_for_for_ever() -> None:
    log = cw.Log(till(), patience=0.05)
    assert log.call("enter", {"text": "b"}, call_id="2", after=["1"]).executed
    (finding,) = log.findings([cw.Message.assistant(tool_calls=[call("2", text="b")])])
    assert "ran before 1" in finding


def test_coroutines_keep_the_order_in_which_they_began() -> None:
    log = cw.Log(till())

    async def many() -> None:
        await asyncio.gather(*(log.acall("enter", {"text": str(at)}) for at in range(20)))

    asyncio.run(many())
    assert [one.arguments["text"] for one in log.calls] == [str(at) for at in range(20)]


def test_a_coroutine_that_is_cancelled_leaves_its_place() -> None:
    waiting = threading.Event()

    @cw.tool
    def wait(text: str) -> str:
        """Wait."""
        waiting.wait(10)
        return text

    log = cw.Log(FunctionEnvironment("slow", [wait]))

    async def many() -> None:
        first, second, third = (asyncio.create_task(log.acall("wait", {"text": str(at)})) for at in range(3))
        await asyncio.sleep(0.05)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        waiting.set()
        await asyncio.gather(first, third)

    asyncio.run(many())
    assert [one.arguments["text"] for one in log.calls] == ["0", "2"]


def test_a_tool_that_calls_a_tool_is_refused_and_does_not_hang() -> None:
    @cw.tool
    def outer(text: str) -> str:
        """Call another tool from inside."""
        log.call("inner", {})
        return text

    @cw.tool
    def inner() -> str:
        """Nothing."""
        return ""

    log = cw.Log(FunctionEnvironment("nested", [outer, inner]), conditions=cw.Conditions(time_limit=float("inf")))
    outcome = log.call("outer", {"text": "a"})
    assert (outcome.kind, outcome.code) == ("execution_error", SessionInUse.__name__)
    assert "called another one from inside" in outcome.message


def test_a_session_that_is_given_stays_open() -> None:
    world = till()
    session = world.open("mine", 3)
    with cw.Log(task(), session) as log:
        log.call("enter", {"text": "a"})
    assert session.call("entries", {}).value == ["mine", "a"]
    with pytest.raises(cw.UsageError, match="is closed; no call can follow"):
        log.call("enter", {"text": "b"})


# What a log does not know ---------------------------------------------------------------------------------------------


def test_a_call_without_a_record_is_unknown_and_rewards_abstain() -> None:
    log = cw.Log.recorded(task())
    messages = [cw.Message.assistant(tool_calls=[call("1", text="a")]), cw.Message.tool('{"result": 2}', "1")]
    attempt = log.episode(messages)
    reward = cw.reward("tier").score_attempt(attempt)
    assert reward.total is None
    assert reward.masked is not None
    assert log.findings(messages) == ("what came of a call of enter is not in the log",)
    with pytest.raises(Abstention):
        attempt.whole_trace.returned  # noqa: B018


def test_a_tool_that_is_not_offered_failed_whoever_answered_it() -> None:
    attempt = cw.Log.recorded(task()).episode([cw.Message.assistant(tool_calls=[call("1", "remove", text="a")])])
    assert attempt.trace is not None
    assert attempt.trace.records[0].outcome.kind == "unknown_tool"


def test_a_call_that_no_message_asks_for_masks() -> None:
    with cw.Log(task()) as log:
        log.call("enter", {"text": "a"}, call_id="1")
        log.call("enter", {"text": "b"}, call_id="2")
    messages = [cw.Message.assistant(tool_calls=[call("1", text="a")])]
    reward = cw.reward("tier").score_attempt(log.episode(messages))
    assert (reward.total, reward.masked) == (None, "call 1 enter ran, and no message asks for it")


def test_repaired_arguments_are_the_models_failure_and_a_finding() -> None:
    """LangChain repairs the JSON of streamed calls and runs them; what was sampled is what counts."""
    with cw.Log(task()) as log:
        log.call("enter", {"text": "a"}, call_id="1")
    messages = [cw.Message.assistant(tool_calls=[ToolCall("1", "enter", '{"text": "a"')])]
    attempt = log.episode(messages)
    assert attempt.failure is not None
    assert attempt.masked is None
    (finding,) = log.findings(messages)
    assert "the framework repaired it" in finding


def test_changed_arguments_are_a_finding_and_the_record_has_those_that_ran() -> None:
    with cw.Log(task()) as log:
        log.call("enter", {"text": "b"}, call_id="1")
    messages = [cw.Message.assistant(tool_calls=[call("1", text="a")])]
    attempt = log.episode(messages)
    assert attempt.trace is not None
    assert attempt.trace.records[0].arguments == {"text": "b"}
    assert "the framework changed it" in log.findings(messages)[0]


def test_a_limit_that_cut_the_last_message_is_told() -> None:
    attempt = cw.Log.recorded(task()).episode([cw.Message.assistant("I wou")], truncated=True)
    assert attempt.truncated
    assert cw.reward("tier").score_attempt(attempt).total == 0


def test_of_a_world_that_is_not_known_nothing_is_executed() -> None:
    world = UnknownWorld(till().tools)
    with pytest.raises(cw.InfrastructureFailure, match="does not hold the world"):
        world.open()
    gold = cw.Program((cw.Call(0, "enter", {"text": "a"}),))
    log = cw.Log.recorded(
        cw.Task("t", "", world.tools, cw.Answer((2,)), world, program=gold),
        [Logged(0, "enter", {"text": "a"}, cw.Outcome("ok", 2), "1")],
        [cw.Message.assistant(tool_calls=[call("1", text="a")])],
    )
    assert cw.reward("tier").score_attempt(log.episode()).total == 1.0
    assert cw.reward("state").score_attempt(log.episode()).total is None
    assert log.replay().masked is not None


def test_a_goal_is_asked_of_the_session_that_the_agent_left() -> None:
    bank = cw.environment("banking")
    goal = {"holds": [{"table": "customers", "has": {"id": "C00001"}}], "nothing_else": False}
    made = cw.Task("g", "", bank.tools, cw.Answer(), bank, scenario="typical", facts={"goal": goal})
    with cw.Log(made) as log:
        log.call("find_customer", {"query": ""})
    attempt = log.episode()
    assert attempt.is_told
    session: Any = bank.open("typical", 0)
    assert attempt.goal == session.check_goal(goal)


def test_what_is_neither_a_task_nor_a_framework_is_named() -> None:
    with pytest.raises(cw.UsageError, match="a log is of a task or an environment"):
        cw.Log("banking")  # type: ignore[arg-type]
    with pytest.raises(cw.UsageError, match="'scenario' and 'seed' are for a log of an environment"):
        cw.Log(task(), scenario="s")
    with pytest.raises(UnknownName, match=r"no framework named 'langchian'\. Did you mean 'langchain'"):
        cw.Log(task()).tools("langchian")
