"""Attempts: everything is computed once, and shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.errors import ComponentError
from callwright.walk.execution import ExecutionRules, never_begun

GOOD = '[["double", {"number": 2}]]'


class Counting:
    """An environment that counts how often it is opened."""

    name, pure = "counting", True

    def __init__(self, inner: Any) -> None:
        self.inner, self.tools, self.opened = inner, inner.tools, 0

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        self.opened += 1
        return self.inner.open(scenario, seed)


class CountingParser:
    name = "counting"

    def __init__(self, inner: Any) -> None:
        self.inner, self.parsed = inner, 0

    def parse(self, text: str) -> Any:
        self.parsed += 1
        return self.inner.parse(text)


def test_a_completion_is_parsed_and_executed_once(
    make_task: Callable[..., cw.Task], small_environment: Any, list_parser: Any
) -> None:
    environment, parser = Counting(small_environment), CountingParser(list_parser)
    attempt = cw.Attempt(make_task(4, environment=environment), GOOD, parser)  # type: ignore[arg-type]
    assert (parser.parsed, environment.opened) == (0, 0), "nothing is done before it is asked for"
    for _ in range(3):
        assert attempt.program is not None
        assert attempt.failure is None
        assert attempt.validation is attempt.validation
        assert attempt.trace is attempt.trace
    assert (parser.parsed, environment.opened) == (1, 1)
    lenient = ExecutionRules(unresolved="literal")
    assert attempt.execution(lenient) is attempt.execution(ExecutionRules(unresolved="literal"))
    assert (parser.parsed, environment.opened) == (1, 2)


def test_the_trace_is_that_of_the_strict_rules_whatever_ran_before(make_attempt: Callable[..., cw.Attempt]) -> None:
    lenient = ExecutionRules(unresolved="literal")
    for first in (lenient, ExecutionRules()):
        attempt = make_attempt('[["shout", {"text": "API_RESPONSE_7"}]]')
        attempt.execution(first)
        for _ in range(2):
            trace, other = attempt.trace, attempt.execution(lenient)
            assert trace is not None
            assert other is not None
            assert [record.outcome.code for record in trace.records] == ["unresolved_reference"]
            assert other.returned == ("API_RESPONSE_7!",)


def test_a_text_that_is_no_program(make_attempt: Callable[..., cw.Attempt]) -> None:
    attempt = make_attempt("hello", 4)
    assert attempt.failure is not None
    assert attempt.failure.code == "not_a_list"
    assert (attempt.program, attempt.validation, attempt.trace, attempt.masked) == (None, None, None, None)


def test_text_and_completions_are_both_taken(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    completion = cw.Completion(GOOD, (1, 2), (-0.5, -0.25))
    assert cw.Attempt(make_task(4), completion, list_parser).completion is completion
    assert cw.Attempt(make_task(4), GOOD, list_parser).completion == cw.Completion(GOOD)
    assert cw.Attempt(make_task(4), GOOD, list_parser).tools["double"].read_only


def test_the_seed_and_the_scenario_of_the_task_open_the_session(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    asked: list[Any] = []
    environment = FunctionEnvironment("e", [], state=lambda scenario, seed: asked.append((scenario, seed)))
    task = make_task(4, environment=environment, scenario="monday", seed=7)
    assert cw.Attempt(task, '[["double", {}]]', list_parser, cw.Conditions(seed=3)).trace is not None
    assert asked == [("monday", 7)]


def test_a_lost_machine_masks_the_attempt(make_attempt: Callable[..., cw.Attempt]) -> None:
    def gone(session: cw.Session, call: cw.Call, arguments: dict[str, Any]) -> cw.Outcome:
        raise cw.InfrastructureFailure("the server is gone")

    attempt = make_attempt(GOOD, 4, caller=gone)
    assert attempt.masked is None, "nothing has been executed yet"
    assert attempt.trace is not None
    assert attempt.masked == "call 0 double: infrastructure: the server is gone"


def test_the_time_limit_of_the_attempt_is_used_unless_the_rules_have_one(
    make_attempt: Callable[..., cw.Attempt],
) -> None:
    import threading

    release = threading.Event()

    def slow(session: cw.Session, call: cw.Call, arguments: dict[str, Any]) -> cw.Outcome:
        release.wait(30)
        return cw.Outcome("ok", 4)

    attempt = make_attempt(GOOD, 4, caller=slow, time_limit=0.01)
    assert attempt.trace is not None
    assert attempt.trace.masked is not None
    release.set()
    patient = attempt.execution(ExecutionRules(time_limit=60.0))
    assert patient is not None
    assert patient.returned == (4,)


def test_a_parser_that_raises_is_named(make_task: Callable[..., cw.Task]) -> None:
    class Broken:
        name = "broken"

        def parse(self, text: str) -> Any:
            raise KeyError("oops")

    attempt = cw.Attempt(make_task(4, id="t9"), "some text", Broken())  # type: ignore[arg-type]
    with pytest.raises(ComponentError, match=r"parser 'broken' raised KeyError.*'t9'.*'some text'"):
        _ = attempt.program


def test_what_was_executed_once_is_not_executed_for_the_turns(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    task = make_task(4)
    world = Counting(task.environment)
    attempt = cw.Attempt(cw.Task("t", "q", task.tools, task.answer, world), GOOD, list_parser)
    assert attempt.trace is attempt.turns[0].trace
    assert attempt.whole_trace is attempt.trace
    assert world.opened == 1


def test_a_session_that_failed_under_any_rules_masks(make_attempt: Callable[..., cw.Attempt]) -> None:
    attempt = make_attempt(GOOD, 4)
    assert attempt.trace is not None
    assert attempt.masked is None
    lost = never_begun(attempt.program, cw.InfrastructureFailure("down"))  # type: ignore[arg-type]
    attempt.learn({ExecutionRules(unresolved="literal"): lost})
    assert "down" in (attempt.masked or "")


class Giving:
    """A parser that gives one thing for every text."""

    name = "giving"

    def __init__(self, what: Any) -> None:
        self.what = what

    def parse(self, text: str) -> Any:
        return self.what


@pytest.mark.parametrize("what", [None, {"x": 1}, "calls"])
@pytest.mark.parametrize("texts", [[GOOD], [GOOD, GOOD]], ids=["one turn", "two turns"])
def test_a_parser_that_gives_something_else_is_named(
    make_task: Callable[..., cw.Task], what: Any, texts: list[str]
) -> None:
    attempt = cw.Attempt(make_task(4), texts, Giving(what))  # type: ignore[arg-type]
    with pytest.raises(ComponentError, match=r"parser 'giving' gave .*; it must give a Program or a ParseFailure"):
        _ = attempt.parsed


@pytest.mark.parametrize(
    "completion", [None, 3, b"x", {"role": "assistant", "content": GOOD}, [{"content": GOOD}], [3]]
)
def test_what_is_no_completion_is_refused(make_task: Callable[..., cw.Task], list_parser: Any, completion: Any) -> None:
    with pytest.raises(cw.UsageError, match="a text"):
        cw.Attempt(make_task(4), completion, list_parser)


@pytest.mark.parametrize("form", [None, 5])
def test_a_form_that_is_none_is_no_bug_of_a_reward(form: Any) -> None:
    task = cw.corpus("toolworld-mini-v1").task("train-0")
    with pytest.raises(cw.UsageError, match=rf"^the form \(ir\) of an attempt is one such as .*, not {form}$"):
        cw.reward("tier").score(task, "x", ir=form)


@pytest.mark.parametrize("task", [None, "train-1", {"id": "train-1"}])
def test_what_is_no_task_is_refused(list_parser: Any, task: Any) -> None:
    with pytest.raises(cw.UsageError, match="an attempt takes a task itself"):
        cw.Attempt(task, GOOD, list_parser)


def test_no_completion_is_not_scored_as_a_choice_to_call_nothing(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    for nothing in ([], ()):
        with pytest.raises(cw.UsageError, match="there is no completion to score"):
            cw.reward("tier").score(make_task(4), nothing, ir=list_parser)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", ["5", float("nan"), 0, -1, True])
def test_a_time_limit_is_a_number_of_seconds(limit: Any) -> None:
    with pytest.raises(cw.UsageError, match="time_limit is a number of seconds"):
        cw.Conditions(time_limit=limit)
    assert cw.Conditions(time_limit=float("inf")).time_limit == float("inf")


def test_a_misspelt_isolation_runs_nothing_here() -> None:
    with pytest.raises(cw.UsageError, match='"auto", "process" or "none"'):
        cw.Conditions(isolation="proces")  # type: ignore[arg-type]
