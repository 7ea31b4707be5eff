"""Several turns as one attempt, written or lived: one session, one program, one trace, scored like any other."""

from __future__ import annotations

from typing import Any

import pytest

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.episodes import Conversation
from callwright.walk import Progress
from callwright.walk.execution import ExecutionRules
from callwright.walk.limits import TurnLimits


class Counter:
    """Two tools: ``add`` changes a number, ``read`` returns it. ``break`` loses the session."""

    name = "counter"
    pure = True
    tools = {  # noqa: RUF012
        "add": cw.ToolSpec("add", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}),
        "read": cw.ToolSpec("read"),
        "break": cw.ToolSpec("break"),
    }

    def __init__(self) -> None:
        self.opened: list[CounterSession] = []

    def open(self, scenario: str = "", seed: int = 0) -> CounterSession:
        self.opened.append(CounterSession())
        return self.opened[-1]


class CounterSession:
    def __init__(self) -> None:
        self.value, self.closed = 0, False

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        assert not self.closed
        if tool == "break":
            raise cw.InfrastructureFailure("the server is gone")
        if tool == "add":
            if type(arguments.get("n")) is not int:
                return Outcome("execution_error", None, "not_an_integer", "n is not an integer")
            self.value += arguments["n"]
        return Outcome("ok", self.value)

    def digest(self) -> str:
        return str(self.value)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def world() -> Counter:
    return Counter()


@pytest.fixture
def task(world: Counter) -> cw.Task:
    gold = cw.Program((cw.Call(0, "add", {"n": 5}), cw.Call(1, "read", {})))
    return cw.Task("t", "", world.tools, cw.Answer((5,)), world, program=gold)


PARSER = cw.parser("json")


def text(*calls: tuple[str, dict[str, Any]], returns: Any = "one", first: int = 0) -> str:
    made = tuple(cw.Call(first + index, tool, arguments) for index, (tool, arguments) in enumerate(calls))
    return PARSER.render(cw.Program(made, returns, "thinking"))


def converse(task: cw.Task, *texts: str) -> Conversation:
    """An attempt that is lived: turn by turn in one session."""
    conversation = Conversation(task, PARSER, (), cw.Conditions(limits=TurnLimits()))
    for one in texts:
        conversation.accept(cw.Completion(one))
    return conversation


def seen(attempt: cw.Attempt) -> Any:
    """Everything that rewards read of an attempt."""
    trace = attempt.whole_trace
    facts = (attempt.parsed, attempt.whole, attempt.validation, trace, trace.final_state, attempt.masked)
    return facts, [(turn.completion, turn.parsed, turn.trace) for turn in attempt.turns]


def test_turns_share_one_session(task: cw.Task, world: Counter) -> None:
    conversation = converse(task, text(("add", {"n": 2})))
    (first,) = conversation.turns
    assert first.trace is not None
    assert first.trace.returned == (2,)
    assert not conversation.over
    conversation.accept(cw.Completion(text(("add", {"n": 3}), ("read", {}))))
    assert not conversation.over
    assert not world.opened[0].closed
    conversation.accept(cw.Completion(text()))
    assert conversation.over
    assert [session.closed for session in world.opened] == [True]
    attempt = conversation.attempt
    assert attempt.trace is not None
    assert [(record.call, record.tool, record.outcome.value, record.state) for record in attempt.trace.records] == [
        (0, "add", 2, "2"),
        (1, "add", 5, "5"),
        (2, "read", 5, "5"),
    ]
    assert attempt.trace.state == "0"
    assert attempt.trace.final_state == "5"
    assert attempt.trace.returned == (5,)
    assert attempt.program is not None
    assert [call.id for call in attempt.program.calls] == [0, 1, 2]
    assert attempt.validation is not None
    assert attempt.validation.valid
    assert attempt.stop == "answered"


TURNS = (
    (),
    (text(),),
    (text(("add", {"n": 2})), text(("add", {"n": 3}), ("read", {})), text()),
    (text(("add", {"n": 2}), ("read", {}), returns="all", first=4), text(("read", {}), ("nothing", {}), returns="all")),
    (text(("add", {"n": "two"})), text(("add", {"n": 2}), ("read", {"surplus": 1}))),
    (text(("add", {"n": 2})), "no program"),
    (text(("add", {"n": 2})), text(("read", {}), ("break", {}), ("read", {}))),
)


@pytest.mark.parametrize("texts", TURNS)
def test_written_and_lived_turns_come_to_the_same(task: cw.Task, world: Counter, texts: tuple[str, ...]) -> None:
    lived = converse(task, *texts).attempt
    sessions = len(world.opened)
    written = cw.Attempt(task, texts, PARSER)
    assert written.completions == lived.completions
    assert len(world.opened) == sessions, "nothing is executed before it is asked for"
    assert seen(written) == seen(lived)
    assert len(world.opened) <= sessions + 1, "all turns share one session"
    assert all(session.closed for session in world.opened[sessions:])
    names = ["tier", "tier-released", "tier-guarded", "prove", "prove-state", "state"]
    for name in names if lived.cut_short else [*names, "toolrl"]:  # which executes nothing
        recipe = cw.reward(name)
        assert recipe.score_attempt(written).to_json() == recipe.score_attempt(lived).to_json()


def test_an_attempt_of_one_turn_is_that_turn(task: cw.Task) -> None:
    completion = text(("add", {"n": 5}), ("read", {"surplus": 1}), ("nothing", {}), first=3)
    attempt, listed = cw.Attempt(task, completion, PARSER), cw.Attempt(task, [completion], PARSER)
    lived = converse(task, completion).attempt
    for other in (listed, lived):
        assert other.program == attempt.program
        assert other.validation == attempt.validation
        assert other.trace is not None
        assert attempt.trace is not None
        assert (other.trace.records, other.trace.returned, other.trace.state) == (
            attempt.trace.records,
            attempt.trace.returned,
            attempt.trace.state,
        )
        assert seen(other) == seen(attempt)
        for name in ("tier", "tier-released", "prove", "toolrl"):
            recipe = cw.reward(name)
            assert recipe.score_attempt(other).to_json() == recipe.score_attempt(attempt).to_json()


def test_every_reward_scores_several_turns(task: cw.Task) -> None:
    turns = [text(("add", {"n": "two"})), text(("add", {"n": 2})), text(("add", {"n": 3})), text(("read", {}))]
    reward = cw.reward("tier").score_attempt(cw.Attempt(task, turns[1:], PARSER))
    assert reward.total == 1.0
    recovered = cw.reward("tier").score_attempt(cw.Attempt(task, turns, PARSER))
    assert recovered.scores["types"].score.value == 0.75
    assert recovered.scores["execution"].score.value == 0.0
    assert cw.reward("tier").score_attempt(cw.Attempt(task, [], PARSER)).total == 0.5  # calls nothing
    conversation = converse(task, turns[1], "no program")
    assert conversation.over
    for broken in (conversation.attempt, cw.Attempt(task, [turns[1], "no program"], PARSER)):
        assert cw.reward("tier").score_attempt(broken).total == 0.0
        assert broken.failure is not None
        assert (broken.program, broken.validation, broken.trace) == (None, None, None)
        assert [call.tool for call in broken.whole.calls] == ["add"]
        assert [record.tool for record in broken.whole_trace.records] == ["add"]


def test_the_answer_is_what_the_last_turn_with_calls_returned(task: cw.Task) -> None:
    both = text(("add", {"n": 1}), ("read", {}), returns="all")
    attempt = cw.Attempt(task, [text(("add", {"n": 9})), both, text()], PARSER)
    assert attempt.trace is not None
    assert attempt.trace.returned == (10, 10)


def test_a_failure_that_a_later_turn_put_right_is_none_of_the_answer(task: cw.Task) -> None:
    wrong, right = text(("add", {"n": "two"})), text(("add", {"n": 5}))
    put_right = cw.Attempt(task, [wrong, right, text()], PARSER).whole_trace
    assert (put_right.executed, put_right.answer_executed) == (False, True)
    spoiled = cw.Attempt(task, [right, wrong, text()], PARSER).whole_trace
    assert (spoiled.executed, spoiled.answer_executed) == (False, False)
    assert [record.call for record in spoiled.failures] == [1]


def test_references_stay_within_their_turn(task: cw.Task) -> None:
    call = cw.Program((cw.Call(0, "add", {"n": 4}), cw.Call(1, "add", {"n": cw.Reference(0)})))
    dangling = cw.Program((cw.Call(0, "add", {"n": cw.Reference(1)}),))
    texts = [PARSER.render(call), PARSER.render(call), PARSER.render(dangling)]
    for attempt in (cw.Attempt(task, texts, PARSER), converse(task, *texts).attempt):
        assert [record.outcome.value for record in attempt.whole_trace.records] == [4, 8, 12, 24, None]
        assert [(position, reference.call) for position, _, reference in attempt.whole.dangling] == [(4, 5)]
        again = attempt.execution(ExecutionRules(unresolved="literal"))
        assert again is not None
        assert [record.outcome.kind for record in again.records] == ["ok"] * 4 + ["execution_error"]
        assert again.records[-1].arguments == {"n": "API_RESPONSE_1"}


def test_a_lost_session_masks_and_ends_the_attempt(task: cw.Task, world: Counter) -> None:
    texts = [text(("add", {"n": 5})), text(("break", {}))]
    conversation = converse(task, *texts)
    assert conversation.over
    assert conversation.stop == conversation.attempt.stop == "machinery"
    with pytest.raises(cw.UsageError, match=r"is over \(machinery\)"):
        conversation.accept(cw.Completion(text(("read", {}))))
    written = cw.Attempt(task, [*texts, text(("read", {}))], PARSER)
    assert cw.reward("tier").score_attempt(written).total is None
    assert [turn.trace is None for turn in written.turns] == [False, False, True], "nothing ran after it"
    for attempt in (conversation.attempt, written):
        assert attempt.masked is not None
        assert "the server is gone" in attempt.masked
        assert cw.reward("tier").score_attempt(attempt).total is None
    assert all(session.closed for session in world.opened)


def test_what_the_machinery_cut_short_is_masked_even_where_nothing_is_executed(task: cw.Task) -> None:
    """Of a lived attempt nobody knows what the model would have written; of a written one it is all there."""
    texts, recipe = [text(("add", {"n": 5})), text(("break", {}))], cw.reward("toolrl")
    lived, written = converse(task, *texts).attempt, cw.Attempt(task, texts, PARSER)
    assert lived.cut_short == lived.masked == "call 1 break: infrastructure: the server is gone"
    assert (recipe.score_attempt(lived).total, recipe.score_attempt(lived).masked) == (None, lived.cut_short)
    assert written.whole_trace.masked == lived.masked
    assert (written.cut_short, recipe.score_attempt(written).masked) == (None, None)


def test_nothing_runs_after_closing(task: cw.Task) -> None:
    conversation = converse(task, text(("add", {"n": 5})))
    conversation.close()
    conversation.close()
    with pytest.raises(cw.UsageError, match="closed"):
        conversation.accept(cw.Completion(text(("read", {}))))


def test_scoring_again_after_another_turn(task: cw.Task) -> None:
    conversation = converse(task, text(("add", {"n": 5})))
    recipe = cw.reward("prove")
    before = conversation.attempt
    early = recipe.score_attempt(before)
    conversation.accept(cw.Completion(text(("read", {}))))
    after = recipe.score_attempt(conversation.attempt)
    assert (early.scores["coverage"].score.value, after.scores["coverage"].score.value) == (0.5, 1.0)
    assert len(before.turns) == 1, "a later turn makes another attempt; an earlier one stays as it was"
    assert recipe.score_attempt(before) == early


def test_progress_is_another_look_at_the_same_attempt(task: cw.Task, world: Counter) -> None:
    attempt = cw.Attempt(task, [text(("add", {"n": 5})), text(("read", {}))], PARSER)
    trace = attempt.trace
    later = attempt.at(Progress(3, 9))
    assert (attempt.progress, later.progress) == (None, Progress(3, 9))
    assert later.trace is trace
    assert len(world.opened) == 1


def test_references_inside_of_lists_and_objects_are_numbered_on_too(task: cw.Task) -> None:
    """The whole of several turns refers to the same calls as each of them."""
    first = cw.Program((cw.Call(0, "add", {"n": 4}), cw.Call(1, "read")))
    nested = {"n": [{"a": cw.Reference(0)}, [cw.Reference(1, ("b", 2))], "text"], "m": {"x": cw.Reference(0)}}
    second = cw.Program((cw.Call(0, "add", {"n": 1}), cw.Call(1, "read"), cw.Call(2, "add", nested)))
    whole = cw.Attempt(task, [PARSER.render(first), PARSER.render(second)], PARSER).whole
    assert [call.id for call in whole.calls] == [0, 1, 2, 3, 4]
    assert whole.calls[4].arguments == {
        "n": [{"a": cw.Reference(2)}, [cw.Reference(3, ("b", 2))], "text"],
        "m": {"x": cw.Reference(2)},
    }
