"""Attempts that were made elsewhere: scored by their record, never executed, and replayed to see whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import Environment, Outcome, Session
from callwright.episodes import Conversation
from callwright.errors import Abstention
from callwright.language import Program
from callwright.training import judge
from callwright.walk import Attempt, Turn, replay, told_turn
from callwright.walk.execution import UNRESOLVED, ExecutionRules
from callwright.walk.limits import TurnLimits

PARSER = cw.parser("json")
RECIPES = ("tier", "tier-released", "toolrl", "prove", "state")


class Guarded:
    """An environment that can be shut: opening a session is then an error of the test."""

    def __init__(self, inner: Environment) -> None:
        self.inner, self.shut = inner, False

    name = property(lambda self: self.inner.name)
    pure = property(lambda self: self.inner.pure)
    tools = property(lambda self: self.inner.tools)

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        assert not self.shut, "an attempt that was told must not be executed"
        return self.inner.open(scenario, seed)


def retell(attempt: Attempt, **changes: Any) -> Attempt:
    """What a log of this attempt would know: outcomes, arguments as they were given, digests."""
    return Attempt.told(attempt.task, attempt.parser, [retold(turn, **changes) for turn in attempt.turns])


def retold(turn: Turn, **changes: Any) -> Turn:
    trace = turn.trace
    if trace is None:
        return told_turn(turn.parsed, completion=turn.completion)
    known: dict[str, Any] = {
        "completion": turn.completion,
        "arguments": [record.arguments for record in trace.records],
        "before": trace.state,
        "states": [record.state for record in trace.records],
        "order": trace.ran,
        **changes,
    }
    return told_turn(turn.parsed, known.pop("outcomes", [record.outcome for record in trace.records]), **known)


# Scored as it was executed --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_tasks() -> list[cw.Task]:
    corpus = cw.corpus("toolworld-mini-v1")
    guarded = Guarded(corpus.environment)
    return [evolve(task, environment=guarded) for task in corpus["evaluation"][:24]]


def written(task: cw.Task) -> Iterator[str]:
    """Completions of a task: right ones, spoiled ones, and such that break at every station."""
    assert task.program is not None
    yield PARSER.render(task.program)
    request = cw.SamplingRequest((), task)
    for name, options in (("noisy-gold", {"p": 0.6}), ("random-valid", {"calls": 2}), ("no-call", {})):
        (completions,) = cw.sampler(name, **options).sample([request], n=2, seed=5)
        yield from (completion.text for completion in completions)
    calls = task.program.calls
    yield PARSER.render(Program((*calls, cw.Call(90, "no_such_tool", {"x": 1}))))
    yield PARSER.render(Program(tuple(evolve_call(call, surplus=1) for call in calls)))
    yield "I do not know."


def evolve_call(call: cw.Call, **more: Any) -> cw.Call:
    return cw.Call(call.id, call.tool, {**call.arguments, **more})


@pytest.mark.parametrize("name", RECIPES)
def test_a_record_earns_what_its_execution_earned(small_tasks: list[cw.Task], name: str) -> None:
    """But for the released rules of TIER where a reference came to nothing: what they make of it is not in a record."""
    recipe, scored, abstained = cw.reward(name), set(), 0
    for task in small_tasks:
        guard: Any = task.environment
        for text in written(task):
            guard.shut = False
            live = Attempt(task, text, PARSER)
            expected = recipe.score_attempt(live)
            before = guard.open(task.scenario, task.seed).digest()
            told = retell(live, before=before)
            guard.shut = True
            reward = recipe.score_attempt(told)
            if reward.masked is not None:
                assert any(record.outcome.code in UNRESOLVED for record in told.whole_trace.records)
                abstained += 1
            else:
                assert reward.to_json() == expected.to_json()
                scored.add(expected.total)
            assert judge(told) == judge(live)
            guard.shut = False
    assert len(scored) > 1
    assert (abstained > 0) == (name == "tier-released")


@pytest.mark.parametrize("name", RECIPES)
def test_a_record_of_several_turns_earns_what_its_execution_earned(small_tasks: list[cw.Task], name: str) -> None:
    recipe = cw.reward(name)
    for task in small_tasks[:12]:
        assert task.program is not None
        guard: Any = task.environment
        texts = [*map(PARSER.render, (task.program, task.program, Program()))]
        live = Attempt(task, texts, PARSER)
        expected = recipe.score_attempt(live)
        told = retell(live, before=guard.open(task.scenario, task.seed).digest())
        guard.shut = True
        try:
            assert recipe.score_attempt(told).to_json() == expected.to_json()
            assert (told.whole, told.parsed, told.validation) == (live.whole, live.parsed, live.validation)
            assert [record.call for record in told.whole_trace.records] == [call.id for call in live.whole.calls]
        finally:
            guard.shut = False


def test_everything_of_a_record_can_be_read_without_executing_it(small_tasks: list[cw.Task]) -> None:
    task = small_tasks[4]
    guard: Any = task.environment
    assert task.program is not None
    live = Attempt(task, PARSER.render(task.program), PARSER)
    told = retell(live)
    assert live.trace is not None
    guard.shut = True
    try:
        assert (told.is_told, live.is_told) == (True, False)
        assert told.trace == told.whole_trace == live.trace
        assert [turn.trace for turn in told.turns] == [live.trace]
        assert told.execution(ExecutionRules(unresolved="literal", missing_field="whole")) == live.trace
        assert (told.completion, told.program, told.failure) == (live.completion, live.program, None)
        assert (told.masked, told.masked, told.stop) == (None, None, None)
        assert told.at(cw.walk.Progress(1, 2)).trace == live.trace
    finally:
        guard.shut = False


def test_what_other_rules_would_have_made_of_a_reference_is_not_known(small_tasks: list[cw.Task]) -> None:
    task = next(task for task in small_tasks if task.depth == 2 and task.returns == "one")
    assert task.program is not None
    first, second = task.program.calls
    dangling = Program((first, cw.Call(second.id, second.tool, {**second.arguments, "surplus": cw.Reference(7)})))
    failed = Program((cw.Call(first.id, first.tool, {}), second))
    for program, code in ((dangling, "unresolved_reference"), (failed, "failed_dependency")):
        told = retell(Attempt(task, PARSER.render(program), PARSER))
        assert told.whole_trace.records[-1].outcome.code == code
        assert told.trace == told.whole_trace, "under the strict rules it is known"
        with pytest.raises(Abstention, match="other rules is not known"):
            told.execution(ExecutionRules(unresolved="literal", after_failure="pass"))
        reward = cw.reward("tier-released").score_attempt(told)
        assert reward.total is None
        assert "execution abstains" in str(reward.masked)
        assert cw.reward("tier").score_attempt(told).total is not None


def test_a_call_can_be_told_without_any_text(small_tasks: list[cw.Task]) -> None:
    """Native calls have no text that a parser could read; the program is what was called."""
    task = small_tasks[1]
    assert task.program is not None
    (value,) = task.answer.values
    told = Attempt.told(task, PARSER, [told_turn(task.program, [Outcome("ok", value)])])
    assert told.completion.text == ""
    assert cw.reward("tier").score_attempt(told).total == 1.0
    nothing = Attempt.told(task, PARSER, [])
    assert (nothing.parsed, nothing.turns, nothing.trace) == (Program(), (), cw.Trace())
    assert cw.reward("tier").score_attempt(nothing).total == 0.5  # calls nothing, where something had to be called


# Order ----------------------------------------------------------------------------------------------------------------


class Slate:
    """``write`` replaces what stands on a slate and returns what stood there; ``lose`` is a server that is gone."""

    name, pure = "slate", True
    tools = {  # noqa: RUF012
        "write": cw.ToolSpec("write", parameters={"type": "object", "properties": {"text": {}}}),
        "lose": cw.ToolSpec("lose"),
    }

    def __init__(self) -> None:
        self.opened: list[tuple[str, int]] = []

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        self.opened.append((scenario, seed))
        return Writing(f"{scenario}{seed or ''}")


class Writing:
    def __init__(self, text: str) -> None:
        self.text = text

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        if tool == "lose":
            raise cw.InfrastructureFailure("the server is gone")
        if not isinstance(arguments.get("text"), str):
            return Outcome("execution_error", None, "no_text", "there is no text")
        before, self.text = self.text, arguments["text"]
        return Outcome("ok", before)

    def digest(self) -> str:
        return f"<{self.text}>"

    def close(self) -> None:
        pass


def write(*texts: Any) -> Program:
    return Program(tuple(cw.Call(at, "write", {"text": text}) for at, text in enumerate(texts)))


def slate_task(program: Program, world: Slate | None = None, **fields: Any) -> cw.Task:
    world = world or Slate()
    return cw.Task("t", "", world.tools, cw.Answer(("x",)), world, program=program, **fields)


def test_parallel_calls_may_have_run_in_another_order() -> None:
    """The state that an attempt leaves is that after the call that ran last, wherever it was written."""
    task = slate_task(write("b", "a"))
    outcomes, states = [Outcome("ok", "b"), Outcome("ok", "")], ["<a>", "<b>"]
    told = Attempt.told(task, PARSER, [told_turn(write("a", "b"), outcomes, order=[1, 0], before="<>", states=states)])
    trace = told.whole_trace
    assert [record.tool for record in trace.records] == ["write", "write"]
    assert list(trace.ran) == [1, 0]
    assert trace.final_state == "<a>"
    assert trace.returned == ("",), "what is returned goes by the order of writing"
    assert cw.reward("state").score_attempt(told).total == 1.0
    assert replay(told).same
    in_line = Attempt.told(task, PARSER, [told_turn(write("a", "b"), outcomes, before="<>", states=states)])
    assert in_line.whole_trace.final_state == "<b>"
    assert cw.reward("state").score_attempt(in_line).total == 0.0
    assert str(replay(in_line)).count("it gave 'b', and gives ''") == 1


def test_the_order_of_each_turn_is_its_own() -> None:
    program = write("a", "b")
    turns = [
        told_turn(program, [Outcome("ok")] * 2, order=[1, 0], before="<>", states=["<a>", "<b>"]),
        told_turn(write("c"), [Outcome("ok")], before="<a>", states=["<c>"]),
        told_turn(program, [Outcome("ok")] * 2, order=[1, 0], before="<c>", states=["<a>", "<b>"]),
    ]
    trace = Attempt.told(slate_task(program), PARSER, turns).whole_trace
    assert list(trace.ran) == [1, 0, 2, 4, 3]
    assert [trace.records[at].state for at in trace.ran] == ["<b>", "<a>", "<c>", "<b>", "<a>"]
    assert (trace.state, trace.final_state) == ("<>", "<a>")
    straight = told_turn(program, [Outcome("ok")] * 2, order=[0, 1])
    assert straight.trace is not None
    assert straight.trace.order is None


# What a record does not know ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tier", "tier-released", "tier-guarded", "prove", "prove-state", "state"])
@pytest.mark.parametrize("outcomes", [(), (None, None), (Outcome("ok", ""), None), (None, Outcome("ok", "x"))])
def test_a_component_that_needs_what_is_unknown_abstains(name: str, outcomes: Sequence[Outcome | None]) -> None:
    task = slate_task(write("x", "y"))
    recipe = cw.reward(name)
    told = Attempt.told(task, PARSER, [told_turn(task.program, outcomes)])  # type: ignore[arg-type]
    reward = recipe.score_attempt(told)
    assert reward.total is None, "masked, never 0"
    assert "abstains" in str(reward.masked)
    assert reward.to_json()["total"] is None
    verdict = judge(told)
    assert (verdict.masked, verdict.answer, verdict.failure) == (True, False, "masked")


def test_a_recipe_that_does_not_need_it_scores_all_the_same() -> None:
    class Brief(cw.RewardComponent):
        name = "brief"

        def score(self, attempt: cw.Attempt) -> cw.Score:
            assert attempt.program is not None
            return cw.Score(1.0 if len(attempt.program.calls) < 3 else 0.0)

    task = slate_task(write("x", "y"))
    assert task.program is not None
    told = Attempt.told(task, PARSER, [told_turn(task.program, completion=PARSER.render(task.program))])
    form = cw.default_registry().create("reward component", "format")
    for recipe in (cw.RewardRecipe("form", (cw.Term(form), cw.Term(Brief()))), cw.reward("toolrl")):
        reward = recipe.score_attempt(told)
        live = recipe.score_attempt(Attempt(task, PARSER.render(task.program), PARSER))
        assert reward.masked is None
        assert reward.to_json() == live.to_json()
    assert told.masked is None
    assert told.whole_trace.failures == ()


def test_behind_a_closed_gate_nobody_asks_for_what_is_unknown() -> None:
    class Never(cw.RewardComponent):
        name = "never"

        def score(self, attempt: cw.Attempt) -> cw.Score:
            return cw.Score(0.0, evidence=(cw.Evidence("no", "never"),))

    execution = cw.default_registry().create("reward component", "execution")
    told = Attempt.told(slate_task(write("x")), PARSER, [told_turn(write("x"))])
    gated = cw.RewardRecipe("gated", (cw.Term(Never()), cw.Term(execution, requires=("never",))))
    assert gated.score_attempt(told).total == 0.0
    assert cw.RewardRecipe("open", (cw.Term(Never()), cw.Term(execution))).score_attempt(told).total is None


@pytest.mark.parametrize("unknown_first", [True, False])
def test_a_failure_beside_something_unknown_is_a_failure(unknown_first: bool) -> None:
    failed = Outcome("execution_error", None, "no_text", "there is no text")
    outcomes = (None, failed) if unknown_first else (failed, None)
    task = slate_task(write("x", "y"))
    told = Attempt.told(task, PARSER, [told_turn(write("x", "y"), outcomes)])
    trace = told.whole_trace
    assert (trace.executed, trace.answer_executed) == (False, False), "whatever the other came to"
    assert [record.outcome.code for record in trace.failures] == ["no_text"]
    for name in ("tier", "tier-released"):
        reward = cw.reward(name).score_attempt(told)
        assert reward.masked is None
        assert reward.scores["execution"].score.value == 0.0
        assert reward.total is not None
    assert (judge(told).masked, judge(told).failure) == (False, "execution:no_text")


def test_an_unknown_call_before_the_last_turn_leaves_the_answer_known() -> None:
    turns = [told_turn(write("a"), [None]), told_turn(write("b"), [Outcome("ok", "x")])]
    trace = Attempt.told(slate_task(write("b")), PARSER, turns).whole_trace
    assert trace.answer_executed
    assert trace.returned == ("x",)
    with pytest.raises(Abstention, match="call 0 write is not known: the record does not say"):
        _ = trace.executed
    last = Attempt.told(slate_task(write("b")), PARSER, turns[::-1]).whole_trace
    for ask in (lambda: last.answer_executed, lambda: last.returned):
        with pytest.raises(Abstention, match="call 1 write is not known"):
            ask()


def test_a_machinery_that_failed_elsewhere_masks() -> None:
    task = slate_task(write("x"))
    gone = Outcome("infrastructure_error", None, "timeout", "it took too long")
    told = Attempt.told(task, PARSER, [told_turn(write("x"), [gone])])
    assert told.masked == "call 0 write: timeout: it took too long"
    for name in ("tier", "prove", "state"):
        reward = cw.reward(name).score_attempt(told)
        assert (reward.total, "it took too long" in str(reward.masked)) == (None, True)


def test_a_record_without_digests_knows_no_final_state() -> None:
    task = slate_task(write("x"))
    told = Attempt.told(task, PARSER, [told_turn(write("x"), [Outcome("ok", "")])])
    reward = cw.reward("state").score_attempt(told)
    assert (reward.total, "holds no digest" in str(reward.masked)) == (None, True)
    assert cw.reward("prove").score_attempt(told).total == pytest.approx(1.3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outcomes": [None] * 3}, "3 outcomes were given for a turn of 2 calls"),
        ({"states": ["", "", ""]}, "3 states were given for a turn of 2 calls"),
        ({"arguments": [{}, {}, {}]}, "3 arguments were given for a turn of 2 calls"),
        ({"order": [0]}, r"'order' must name each of the 2 calls once, by its position from 0, not \(0,\)"),
        ({"order": [0, 0]}, "'order' must name each of the 2 calls once"),
        ({"order": [1, 2]}, "'order' must name each of the 2 calls once"),
    ],
)
def test_a_record_that_does_not_fit_its_calls_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(cw.UsageError, match=message):
        told_turn(write("x", "y"), **given)


def test_what_is_no_program_is_told_as_its_failure() -> None:
    failure = PARSER.parse("hello")
    assert isinstance(failure, cw.ParseFailure)
    turn = told_turn(failure, completion="hello")
    assert (turn.parsed, turn.trace, turn.calls, turn.completion.text) == (failure, None, (), "hello")
    told = Attempt.told(slate_task(write("x")), PARSER, [turn])
    assert (told.failure, told.trace) == (failure, None)
    assert cw.reward("tier").score_attempt(told).total == 0.0


# Replaying ------------------------------------------------------------------------------------------------------------


def test_what_is_executed_again_goes_the_same_way(small_tasks: list[cw.Task]) -> None:
    for task in small_tasks:
        for text in written(task):
            live = Attempt(task, text, PARSER)
            reached = [r for r in live.whole_trace.records if r.outcome.code not in ("failed_dependency",)]
            for attempt in (live, retell(live)):
                found = replay(attempt)
                assert found.same
                assert (found.compared, found.unknown, found.difference) == (len(reached), 0, None)


def test_several_turns_are_replayed_in_one_session() -> None:
    world = Slate()
    task = slate_task(write("a"), world, scenario="monday", seed=3)
    conversation = Conversation(task, PARSER, (), cw.Conditions(limits=TurnLimits()))
    for program in (write("a", "b"), write("c"), Program()):
        conversation.accept(cw.Completion(PARSER.render(program)))
    found = replay(retell(conversation.attempt))
    assert (found.same, found.compared) == (True, 3)
    assert world.opened == [("monday", 3)] * 2


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (Outcome("ok", "z"), "it gave 'z', and gives 'a'"),
        (Outcome("empty"), "it was empty, and is ok"),
        (
            Outcome("execution_error", None, "locked", "the slate is locked"),
            r"it was execution_error locked \(the slate is locked\), and is ok",
        ),
    ],
)
def test_the_first_call_that_goes_otherwise_is_named(change: Outcome, what: str) -> None:
    live = Attempt(slate_task(write("x")), [PARSER.render(write("a", "b")), PARSER.render(write("c", "d"))], PARSER)
    trace = live.whole_trace
    outcomes = [trace.records[0].outcome, change]
    turns = [retold(live.turns[0], outcomes=outcomes), retold(live.turns[1], outcomes=[change, change])]
    found = replay(Attempt.told(live.task, PARSER, turns))
    assert not found.same
    assert (found.compared, found.masked) == (1, None)
    assert found.difference is not None
    assert (found.difference.call, found.difference.tool) == (1, "write")
    assert found.difference.recorded.outcome == change
    assert found.difference.found.outcome == Outcome("ok", "a")
    assert found.difference.found.call == 1
    with pytest.raises(AssertionError, match=f"^replay diverged at call 1 write: {what}$"):
        raise AssertionError(found.difference)
    late = replay(Attempt.told(live.task, PARSER, [retold(live.turns[0]), turns[1]]))
    assert late.difference is not None
    assert (late.difference.call, late.compared) == (2, 2), "ids are numbered on over the turns"


def test_another_world_shows_before_the_first_call() -> None:
    live = Attempt(slate_task(write("x"), seed=5), PARSER.render(write("a")), PARSER)
    other = evolve(live.task, seed=6)
    told = Attempt.told(other, PARSER, retell(live).turns)
    found = replay(told)
    assert found.difference is not None
    assert (found.difference.call, found.compared) == (0, 0)
    assert found.difference.what == "the world was in state <5> before it, and is in <6>"
    silent = Attempt.told(other, PARSER, [retold(turn, before="", states=()) for turn in live.turns])
    found = replay(silent)
    assert found.difference is not None
    assert found.difference.what == "it gave '5', and gives '6'", "where no digest was taken, values tell"
    assert replay(Attempt.told(live.task, PARSER, silent.turns)).same


def test_another_seed_of_banking_is_another_world() -> None:
    bank = cw.environment("banking")
    program = Program((cw.Call(0, "find_customer", {"query": "a"}),))
    task = cw.Task("t", "", bank.tools, cw.Answer(), bank, scenario="typical", seed=5, program=program)
    told = retell(Attempt(task, PARSER.render(program), PARSER))
    assert replay(told).same
    elsewhere = replay(Attempt.told(evolve(task, seed=0), PARSER, told.turns))
    assert elsewhere.difference is not None
    assert elsewhere.difference.call == 0


def test_a_state_that_is_left_otherwise_shows_even_where_values_agree() -> None:
    told = Attempt.told(
        slate_task(write("a")),
        PARSER,
        [told_turn(write("a", "b"), [Outcome("ok", ""), Outcome("ok", "a")], states=["<a>", "<other>"])],
    )
    found = replay(told)
    assert found.difference is not None
    assert (found.difference.call, found.compared) == (1, 1)
    assert found.difference.what == "it left the state <other>, and leaves <b>"


def test_what_is_unknown_is_run_and_counted_but_not_compared() -> None:
    task = slate_task(write("a"))
    outcomes = [Outcome("ok", ""), None, Outcome("ok", "b")]
    told = Attempt.told(task, PARSER, [told_turn(write("a", "b", "c"), outcomes)])
    found = replay(told)
    assert (found.same, found.compared, found.unknown) == (True, 2, 1), "the third read what the second wrote"
    known_state = Attempt.told(task, PARSER, [told_turn(write("a"), [None], states=["<b>"])])
    assert not replay(known_state).same, "a digest tells, even where the outcome is not known"


def test_calls_that_never_reached_the_session_are_left_out() -> None:
    program = Program(
        (
            cw.Call(0, "write", {"text": 5}),
            cw.Call(1, "write", {"text": cw.Reference(0)}),
            cw.Call(2, "write", {"text": cw.Reference(9)}),
            cw.Call(3, "write", {"text": "a"}),
        )
    )
    world = Slate()
    told = retell(Attempt(slate_task(write("a"), world), PARSER.render(program), PARSER))
    codes = [record.outcome.code for record in told.whole_trace.records]
    assert codes == ["no_text", "failed_dependency", "unresolved_reference", ""]
    found = replay(told)
    assert (found.same, found.compared) == (True, 2)
    sessions = len(world.opened)
    none = Attempt.told(told.task, PARSER, [told_turn(write("a"), [Outcome("execution_error", None, "too_large")])])
    for nothing in (none, Attempt.told(told.task, PARSER, []), Attempt(told.task, "no program", PARSER)):
        found = replay(nothing)
        assert (found.same, found.compared, found.unknown) == (True, 0, 0)
    assert len(world.opened) == sessions, "there is nothing to open a session for"


def test_a_machinery_that_fails_meanwhile_finds_nothing_out() -> None:
    program = Program((cw.Call(0, "write", {"text": "a"}), cw.Call(1, "lose", {}), cw.Call(2, "write", {"text": "b"})))
    outcomes = [Outcome("ok", ""), Outcome("ok"), Outcome("ok", "a")]
    found = replay(Attempt.told(slate_task(write("a")), PARSER, [told_turn(program, outcomes)]))
    assert (found.same, found.compared, found.difference) == (False, 1, None)
    assert found.masked == "call 1 lose: infrastructure: the server is gone"


def test_replaying_goes_through_whoever_listens_to_calls(make_task: Callable[..., cw.Task]) -> None:
    seen: list[str] = []

    def caller(session: cw.Session, call: cw.Call, arguments: dict[str, Any]) -> cw.Outcome:
        seen.append(call.tool)
        return session.call(call.tool, arguments)

    task = make_task(4)
    program = Program((cw.Call(0, "double", {"number": 2}),))
    conditions = cw.Conditions(caller=caller, time_limit=5.0)
    told = Attempt.told(task, PARSER, [told_turn(program, [Outcome("ok", 4)])], conditions)
    assert replay(told).same
    assert seen == ["double"]


# References in a record -----------------------------------------------------------------------------------------------


def chained() -> tuple[cw.Task, cw.Program, list[cw.Outcome]]:
    task = cw.corpus("toolworld-mini-v1").task("evaluation-16")
    program = task.program
    assert program is not None
    return (
        task,
        program,
        [record.outcome for record in cw.Attempt(task, PARSER.render(program), PARSER).whole_trace.records],
    )


def test_references_stand_for_what_the_record_says() -> None:
    task, program, outcomes = chained()
    assert any(call.located for call in program.calls)
    told = cw.Attempt.told(task, PARSER, [told_turn(program, outcomes)])
    live = cw.Attempt(task, PARSER.render(program), PARSER)
    found = [record.arguments for record in told.whole_trace.records]
    assert found == [record.arguments for record in live.whole_trace.records]
    assert cw.reward("prove").score_attempt(told).total == cw.reward("prove").score_attempt(live).total
    assert cw.replay(told).same


def test_a_reference_to_an_unknown_result_is_not_known() -> None:
    task, program, outcomes = chained()
    told = cw.Attempt.told(task, PARSER, [told_turn(program, [None, *outcomes[1:]])])
    reward = cw.reward("prove").score_attempt(told)
    assert reward.total is None
    assert "not known" in str(reward.masked) or "stood for" in str(reward.masked)
    found = cw.replay(told)
    assert (found.same, found.unknown) == (True, len(outcomes))


def test_a_machine_that_failed_then_tells_nothing_of_the_world() -> None:
    task, program, outcomes = chained()
    broken = [outcomes[0], cw.Outcome("infrastructure_error", None, "timeout", "too slow")]
    found = cw.replay(cw.Attempt.told(task, PARSER, [told_turn(program, broken)]))
    assert (found.same, found.compared, found.unknown) == (True, 1, 1)


@pytest.mark.parametrize("odd", [Outcome("success", 1), Outcome(None, 1), {"kind": "ok"}, "ok"])  # type: ignore[arg-type]
def test_an_outcome_that_is_none_is_refused(odd: Any) -> None:
    """One of an unknown kind would count as a call that failed."""
    task = cw.corpus("toolworld-mini-v1")["evaluation"][16]
    assert task.program is not None
    with pytest.raises(cw.UsageError, match=r"outcome 1 must be a callwright\.Outcome of the kind ok, empty, partial"):
        told_turn(task.program, [None, odd])


def test_the_name_of_a_form_is_none() -> None:
    task = cw.corpus("toolworld-mini-v1")["evaluation"][16]
    for make in (lambda: Attempt(task, "text", "json"), lambda: Attempt.told(task, "json", [])):  # type: ignore[arg-type]
        with pytest.raises(cw.UsageError, match=r"not its name: callwright.parser\('json'\)"):
            make()
