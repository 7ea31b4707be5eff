"""Evaluation: intervals, verdicts and their categories, summaries."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.language.envelope import Envelope, read_envelope, read_thought
from callwright.language.parser import ParseLimits
from callwright.training import judge, summarise
from callwright.training.evaluation import thought_words, wilson
from callwright.training.verdicts import difference_of
from callwright.walk.limits import SINGLE_TURN, TurnLimits

Z = 1.959963984540054


@given(st.integers(1, 10_000).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_wilsons_bounds_solve_wilsons_equation(observed: tuple[int, int]) -> None:
    """The bounds are the proportions p with |p̂ - p| = z·sqrt(p(1 - p)/n) (Wilson 1927)."""
    right, count = observed
    low, high = wilson(right, count)
    share = right / count
    assert 0.0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1.0
    for bound in (low, high):
        assert (share - bound) ** 2 == pytest.approx(Z * Z * bound * (1 - bound) / count, abs=1e-9)


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [(8, 10, 0.490162, 0.943318), (0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (50, 100, 0.403832, 0.596168)],
)
def test_known_intervals(right: int, count: int, low: float, high: float) -> None:
    assert wilson(right, count) == pytest.approx((low, high), abs=1e-6)


def test_of_nothing_nothing_is_known() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(5, 10, z=0.0) == pytest.approx((0.5, 0.5))


# Verdicts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values", "answer", "valid", "failure"),
    [
        ('[["double", {"number": 2}]]', [4], True, True, ""),
        ("[]", [], True, True, ""),
        ('all[["double", {"number": 1}], ["shout", {"text": "a"}]]', ["A!", 2], True, True, ""),
        ('[["double", {"number": 1}], ["double", {"number": "API_RESPONSE_0"}]]', [4], True, True, ""),
        ("no list", [4], False, False, "format:not_a_list"),
        ('[["treble", {"number": 2}]]', [4], False, False, "schema:unknown_tool"),
        ('[["double", {}]]', [4], False, False, "schema:missing_parameter"),
        ('[["double", {"number": 3, "x": 1}]]', [4], False, False, "schema:unexpected_parameter"),
        ('[["double", {"number": "2"}]]', [4], False, False, "schema:wrong_type"),
        ('[["shout", {"text": ""}]]', ["A!"], False, False, "execution:empty_text"),
        ('[["double", {"number": "API_RESPONSE_5"}]]', [4], False, False, "execution:unresolved_reference"),
        ("[]", [4], False, False, "answer:abstained"),
        ('[["double", {"number": 2}]]', [], False, False, "answer:should_abstain"),
        ('[["double", {"number": 3}]]', [4], False, False, "answer:wrong"),
        ('all[["double", {"number": 2}], ["double", {"number": 2}]]', [4], False, False, "answer:wrong"),
    ],
)
def test_what_went_wrong_first(
    make_attempt: Callable[..., cw.Attempt], text: str, values: list[Any], answer: bool, valid: bool, failure: str
) -> None:
    verdict = judge(make_attempt(text, *values))
    assert (verdict.answer, verdict.valid, verdict.failure, verdict.masked) == (answer, valid, failure, False)


def test_a_right_answer_in_spite_of_a_mismatch_is_right_but_not_valid(make_task: Any, list_parser: Any) -> None:
    class Lenient:
        name, pure = "lenient", True

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            outcome = cw.Outcome("ok", 4)
            return SimpleNamespace(call=lambda tool, given: outcome, digest=lambda: "", close=lambda: None)

    task = make_task(4, environment=Lenient())
    verdict = judge(cw.Attempt(task, '[["double", {"number": "2"}]]', list_parser))
    assert (verdict.answer, verdict.valid, verdict.failure) == (True, False, "")


def test_a_right_value_after_a_failed_call_is_wrong(make_attempt: Callable[..., cw.Attempt]) -> None:
    verdict = judge(make_attempt('[["shout", {"text": ""}], ["double", {"number": 2}]]', 4))
    assert (verdict.answer, verdict.failure) == (False, "execution:empty_text")


def test_what_the_machinery_lost_is_masked(make_attempt: Callable[..., cw.Attempt]) -> None:
    def gone(session: cw.Session, call: cw.Call, arguments: dict[str, Any]) -> cw.Outcome:
        raise cw.InfrastructureFailure("gone")

    verdict = judge(make_attempt('[["double", {"number": 2}]]', 4, caller=gone))
    assert (verdict.answer, verdict.valid, verdict.masked, verdict.failure) == (False, False, True, "masked")
    assert verdict.thought_words is None


def test_what_the_machinery_lost_may_have_been_another_answer_that_is_right(
    make_task: Callable[..., cw.Task], make_attempt: Callable[..., cw.Attempt]
) -> None:
    def gone(session: cw.Session, call: cw.Call, arguments: dict[str, Any]) -> cw.Outcome:
        raise cw.InfrastructureFailure("gone")

    two = evolve(make_task(4), answer=cw.Answer((4, 6), others=((4,),)))
    verdict = judge(make_attempt('[["double", {"number": 2}]]', task=two, caller=gone))
    assert (verdict.masked, verdict.failure) == (True, "masked")
    one = evolve(make_task(4), answer=cw.Answer((4, 6)))
    assert judge(make_attempt('[["double", {"number": 2}]]', task=one, caller=gone)).failure == "answer:wrong"


def test_a_number_is_left_out_of_a_difference_for_itself_alone(list_parser: Any) -> None:
    """``True`` is ``1`` to Python, and not here."""

    @cw.tool(read_only=True)
    def same(value: int) -> int:
        """The value."""
        return value

    place = FunctionEnvironment("same", [same])
    task = cw.Task("t", "", place.tools, cw.Answer((True, 1, 4)), place, returns="all")
    made = cw.Attempt(task, 'all[["same", {"value": 1}], ["same", {"value": 5}]]', list_parser)
    found = difference_of(made)
    assert found is not None
    assert found[1] is True


# Thoughts -------------------------------------------------------------------------------------------------------------

FORMS = ("json", "xml", "direct", "hermes", "toolrl")
CALL = cw.Program((cw.Call(0, "double", {"number": 2}),))


def written(form: str, thought: str) -> str:
    """A call after a thought, the think block written by hand."""
    text = cw.parser(form).render(CALL)
    return f"<think>{thought}</think>\n{text[text.index('<tool_call') :]}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("thought", "words"),
    [("two words", 2), ("", 0), ("  a\n b\t c  ", 3), ("it says <tool_call> and </think> in passing", 7)],
)
def test_words_of_a_thought_are_counted_in_every_form(
    form: str, thought: str, words: int, make_task: Callable[..., cw.Task]
) -> None:
    parser = cw.parser(form)
    attempt = cw.Attempt(make_task(4), written(form, thought), parser)
    assert attempt.program is not None
    in_passing = form == "hermes" and "</think>" in thought  # where this form's think block ends
    assert thought_words(attempt) == (4 if in_passing else words)
    damaged = cw.Attempt(make_task(4), written(form, thought).removesuffix("</tool_call>"), parser)
    assert damaged.program is None
    assert thought_words(damaged) == words


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("no tags at all", None),
        ("<think> never closed", None),
        ("</think> <think>", None),
        ("<think>\n a thought \n</think> prose in between <tool_call>", "a thought"),
        ("before <think id='1'>a b</think> after <think>c</think>", "a b"),
        ('<think>a</think> b</think> <tool_call return="one">', "a</think> b"),
    ],
)
def test_the_thought_of_what_is_no_program(text: str, thought: str | None) -> None:
    assert read_thought(text) == thought


@given(st.text(), st.text(), st.text())
def test_reading_a_thought_never_raises_and_agrees_with_the_envelope(before: str, inside: str, after: str) -> None:
    for text in (before, f"{before}<think>{inside}</think>{after}", f'<think>{inside}</think><tool_call return="one">'):
        assert isinstance(read_thought(text), str | None)
    whole = f'<think>{inside}</think>\n<tool_call return="one">{after}</tool_call>'
    envelope = read_envelope(whole, ParseLimits())
    assert isinstance(envelope, Envelope)
    assert read_thought(whole) == envelope.thought


def test_an_attempt_of_turns_has_the_words_of_all_its_thoughts(make_task: Callable[..., cw.Task]) -> None:
    parser = cw.parser("json")
    several = cw.Attempt(make_task(4), [written("json", "a b c"), "<think>d e</think> done", "nothing to read"], parser)
    assert thought_words(several) == 5
    assert thought_words(cw.Attempt(make_task(4), ["x", "y"], parser)) is None
    assert judge(several).thought_words == 5


# Summaries ------------------------------------------------------------------------------------------------------------

verdicts = st.builds(
    cw.training.Verdict,
    task=st.just("t"),
    depth=st.integers(0, 12),
    structure=st.sampled_from(["linear", "tree"]),
    answer=st.booleans(),
    valid=st.booleans(),
    failure=st.sampled_from(["", "answer:wrong", "format:x"]),
    masked=st.booleans(),
    thought_words=st.none() | st.integers(0, 500),
)


def mean_of_the_known(words: list[int | None]) -> float | None:
    known = [one for one in words if one is not None]
    return sum(known) / len(known) if known else None


@given(st.lists(verdicts, max_size=30))
def test_a_summary_counts_what_is_known(drawn: list[cw.training.Verdict]) -> None:
    found = [evolve(verdict, task=f"t{place}") for place, verdict in enumerate(drawn)]
    summary = summarise(found)
    known = [verdict for verdict in found if not verdict.masked]
    assert (summary["n"], summary["masked"]) == (len(known), len(found) - len(known))
    assert summary["thought_words"] == mean_of_the_known([verdict.thought_words for verdict in known])
    assert (summary["overall"] is None) is (not known)
    if known:
        assert summary["overall"] == sum(verdict.answer for verdict in known) / len(known)
        assert summary["valid_overall"] == sum(verdict.valid for verdict in known) / len(known)
    for key in ("by_depth", "by_structure"):
        assert sum(cell["n"] for cell in summary[key].values()) == len(known)
        for name, cell in summary[key].items():
            group = [v for v in known if name in (str(v.depth), v.structure)]
            assert cell["thought_words"] == mean_of_the_known([v.thought_words for v in group])
            assert cell["accuracy"] == sum(v.answer for v in group) / len(group)
            assert (cell["low"], cell["high"]) == wilson(sum(v.answer for v in group), len(group))
    for depth, failures in summary["failures"].items():
        for failure, count in failures.items():
            assert count == sum(str(v.depth) == depth and v.failure == failure for v in known) > 0
    assert [int(depth) for depth in summary["by_depth"]] == sorted({v.depth for v in known})
    assert not math.isnan(summary["overall"] or 0.0)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


# Evaluating -----------------------------------------------------------------------------------------------------------


class Scripted:
    """Answers ``2 × number`` right in every other task."""

    name = "scripted"

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int, float]] = []

    def sample(
        self, requests: Sequence[cw.SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[cw.Completion]]:
        self.asked.append((len(requests), n, seed, temperature))
        wrong = [int(request.task.id) % 2 for request in requests]
        return [[cw.Completion(f'[["double", {{"number": {2 + w}}}]]')] for w in wrong]


def test_each_task_is_sampled_once_and_judged(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    pipeline = cw.Pipeline("toolworld-mini-v1", parser=list_parser)
    tasks = [make_task(4, id=str(number), depth=number % 3) for number in range(10)]
    sampler, heard, kept = Scripted(), [], []
    found = cw.evaluate(
        pipeline,
        tasks,
        sampler,
        batch=4,
        seed=100,
        on_batch=heard.append,
        keep=lambda a, v: kept.append((a.task.id, v)),
    )
    assert [verdict.answer for verdict in found] == [True, False] * 5
    assert [verdict.task for verdict in found] == [task.id for task in tasks]
    assert sampler.asked == [(4, 1, 100, 0.0), (4, 1, 100, 0.0), (2, 1, 100, 0.0)]
    assert heard == [4, 8, 10]
    assert kept == list(zip([task.id for task in tasks], found, strict=True))


class EverySecond:
    """An environment of which every second opening fails."""

    name, pure = "every-second", True

    def __init__(self, inner: cw.Environment) -> None:
        self.inner, self.tools, self.opened = inner, inner.tools, 0

    def open(self, scenario: str = "", seed: int = 0) -> cw.Session:
        self.opened += 1
        if self.opened % 2:
            raise cw.InfrastructureFailure("server gone once")
        return self.inner.open(scenario, seed)


@pytest.mark.parametrize("limits", [None, SINGLE_TURN, TurnLimits()])
@pytest.mark.parametrize(("retries", "masked"), [(3, 0), (1, 0), (0, 2)])
def test_sessions_that_fail_are_tried_again_however_many_turns_there_are(
    limits: TurnLimits | None, retries: int, masked: int
) -> None:
    """A single turn is an episode of one: there is no other path on which tries are forgotten."""
    corpus = cw.corpus("toolworld-mini-v1")
    environment = EverySecond(corpus.environment)
    tasks = [evolve(task, environment=environment) for task in corpus["evaluation"] if task.depth][:4]
    pipeline = cw.Pipeline(corpus)
    verdicts = cw.evaluate(pipeline, tasks, cw.sampler("gold"), limits=limits, retries=retries)
    assert sum(verdict.masked for verdict in verdicts) == masked
    assert sum(verdict.answer for verdict in verdicts) == 4 - masked


@pytest.mark.parametrize(
    ("given", "said"), [("gold", "callwright.sampler\\('gold'"), (lambda one: ["x"], "sample\\(requests")]
)
def test_what_is_no_sampler_is_told_as_that(given: Any, said: str) -> None:
    with pytest.raises(cw.UsageError, match=said):
        cw.evaluate(cw.Pipeline("toolworld-mini-v1", "tier", "json"), [], given)
