"""Rewards: contributions sum to the total, gates, normalisation, masks, whose bug an exception is, explanations."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import CannotExpress, ComponentError, PluginError, UnknownName
from callwright.walk import Progress, answers_match
from callwright.walk.reward import STAGES, evidence_json

WHY = cw.Evidence("why", "because of a reason")


class Fixed(cw.RewardComponent):
    """Gives what it was told to."""

    def __init__(self, name: str, value: Any, low: float = 0.0, high: float = 1.0, **more: Any) -> None:
        self.name, self.value, self.low, self.high = name, value, low, high  # type: ignore[misc]
        self.stage = more.pop("stage", "")  # type: ignore[misc]
        self.more, self.asked = more, 0

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.asked += 1
        evidence = () if self.value >= self.high else (WHY,)
        return cw.Score(self.value, self.low, self.high, evidence, **self.more)


@pytest.fixture(scope="module")
def attempt(make_attempt: Callable[..., cw.Attempt]) -> cw.Attempt:
    return make_attempt('[["double", {"number": 2}]]', 4)


@st.composite
def recipes(draw: st.DrawFn) -> cw.RewardRecipe:
    """Random ranges, values inside of them, weights of both signs, gates to earlier terms."""
    terms: list[cw.Term] = []
    for number in range(draw(st.integers(1, 6))):
        low = draw(st.sampled_from([-3.0, -1.0, 0.0, 0.5]))
        high = low + draw(st.sampled_from([0.25, 1.0, 6.0]))
        value = draw(st.sampled_from([low, high, (low + high) / 2]) | st.floats(low, high))
        component = Fixed(f"c{number}", value, low, high, stage=draw(st.sampled_from(["", *STAGES])))
        weight = draw(st.sampled_from([0.0, 1.0, 5.0, -1.0, 0.3]))
        gates = draw(st.sets(st.sampled_from([term.name for term in terms]), max_size=2)) if terms else ()
        terms.append(cw.Term(component, weight, tuple(sorted(gates))))
    anchor = cw.Term(Fixed("anchor", 1.0), 20.0)  # so that the largest sum is above zero
    return cw.RewardRecipe("random", (*terms, anchor), normalise=draw(st.booleans()))


@given(recipes())
def test_the_contributions_sum_to_the_total(attempt_of: Any, recipe: cw.RewardRecipe) -> None:
    reward = recipe.score_attempt(attempt_of)
    assert reward.total is not None
    assert math.isclose(sum(s.contribution for s in reward.scores.values()), reward.total, abs_tol=1e-12)
    assert recipe.low - 1e-9 <= reward.total <= recipe.high + 1e-9
    assert list(reward.scores) == [term.name for term in recipe.terms]
    if recipe.normalise:
        assert recipe.high == pytest.approx(1.0)
    for term in recipe.terms:
        scored = reward.scores[term.name]
        shut = [name for name in term.requires if not reward.scores[name].score.full]
        assert scored.closed is bool(shut)
        assert scored.weight == recipe.weights[term.name]
        component = term.component
        assert isinstance(component, Fixed)
        assert component.asked == (0 if shut else 1)
        assert scored.score.value == (component.low if shut else component.value)
        assert scored.score.full or scored.score.evidence


@pytest.fixture(scope="module", name="attempt_of")
def _attempt_of(attempt: cw.Attempt) -> cw.Attempt:
    return attempt


def recipe(*terms: cw.Term | cw.RewardComponent, **more: Any) -> cw.RewardRecipe:
    made = tuple(term if isinstance(term, cw.Term) else cw.Term(term) for term in terms)
    return cw.RewardRecipe("r", made, **more)


def test_weights_are_divided_by_the_largest_sum(attempt: cw.Attempt) -> None:
    given_recipe = recipe(cw.Term(Fixed("a", 1.0), 1), cw.Term(Fixed("b", 3.0, 0.0, 3.0), 3))
    assert given_recipe.weights == {"a": 0.1, "b": 0.3}
    assert given_recipe.score_attempt(attempt).total == pytest.approx(1.0)
    raw = evolve(given_recipe, normalise=False)
    assert raw.weights == {"a": 1.0, "b": 3.0}
    assert (raw.low, raw.high, raw.score_attempt(attempt).total) == (0.0, 10.0, 10.0)
    penalty = recipe(cw.Term(Fixed("a", 1.0), 1), cw.Term(Fixed("length", 0.5), -2))
    assert (penalty.low, penalty.high) == (-2.0, 1.0)
    assert penalty.score_attempt(attempt).total == 0.0


def test_more_terms_are_normalised_with_the_others(attempt: cw.Attempt) -> None:
    brevity = Fixed("brevity", 0.5)
    more = recipe(cw.Term(Fixed("a", 1.0), 3)).with_terms(brevity, cw.Term(Fixed("b", 0.0), 4, ("a",)), name="mine")
    assert more.name == "mine"
    assert more.weights == {"a": 3 / 8, "brevity": 1 / 8, "b": 4 / 8}
    assert more.score_attempt(attempt).total == pytest.approx(3 / 8 + 0.5 / 8)
    with pytest.raises(cw.UsageError, match="two terms are named 'a'"):
        more.with_terms(Fixed("a", 1.0))


def test_a_gate_of_weight_zero_only_shuts(attempt: cw.Attempt) -> None:
    inner = Fixed("inner", 1.0)
    reward = recipe(cw.Term(Fixed("gate", 0.0), 0), cw.Term(inner, 1, ("gate",))).score_attempt(attempt)
    assert (reward.total, inner.asked) == (0.0, 0)
    assert reward.scores["inner"].closed
    assert reward.scores["inner"].score.evidence[0].code == "gate_closed"


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (
            [cw.Term(Fixed("a", 1), 1, ("b",)), cw.Term(Fixed("b", 1))],
            "'a' requires 'b', which is not a term before it",
        ),
        ([cw.Term(Fixed("a", 1), 1, ("a",))], "'a' requires 'a'"),
        ([cw.Term(Fixed("a", 1)), cw.Term(Fixed("a", 1))], "two terms are named 'a'"),
        ([cw.Term(Fixed("a", 1), math.nan)], "the weight of 'a' is not a finite number"),
        ([cw.Term(Fixed("a", 1), math.inf)], "the weight of 'a' is not a finite number"),
        ([cw.Term(Fixed("a", 1), 0.0)], "nothing can be earned"),
        ([], "nothing can be earned"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(terms: list[cw.Term], message: str) -> None:
    with pytest.raises(cw.UsageError, match=message):
        cw.RewardRecipe("odd", tuple(terms))


def test_a_component_without_a_name_is_named_after_its_class() -> None:
    class Brevity(cw.RewardComponent):
        def score(self, attempt: cw.Attempt) -> cw.Score:
            return cw.Score(1.0)

    assert cw.Term(Brevity()).name == "brevity"
    assert cw.Term(Brevity(), name="short").name == "short"


# Masks ----------------------------------------------------------------------------------------------------------------


def test_what_is_not_known_masks_the_sample(attempt: cw.Attempt) -> None:
    reward = recipe(Fixed("a", 1.0), Fixed("b", 0.0, masked="the server is gone")).score_attempt(attempt)
    assert (reward.total, reward.masked) == (None, "the server is gone")
    assert reward.explain() == "masked: the server is gone"
    row = json.loads(json.dumps(reward.to_json()))
    assert (row["total"], row["masked"]) == (None, "the server is gone")


def test_behind_a_shut_gate_nothing_is_masked(attempt: cw.Attempt) -> None:
    lost = Fixed("b", 0.0, masked="the server is gone")
    reward = recipe(Fixed("a", 0.0), cw.Term(lost, 1, ("a",))).score_attempt(attempt)
    assert (reward.total, reward.masked) == (0.0, None)


# Scores ---------------------------------------------------------------------------------------------------------------


def test_numbers_of_other_libraries_are_pythons() -> None:
    numpy = pytest.importorskip("numpy")
    score = cw.Score(numpy.float32(0.5), numpy.int64(0), numpy.float64(1), [cw.Evidence("lost", "half of it")])
    assert [type(one) for one in (score.value, score.low, score.high)] == [float, float, float]
    assert json.dumps(score.value) == "0.5"
    assert score.evidence == (cw.Evidence("lost", "half of it"),)
    assert cw.Score(0.0, evidence=cw.Evidence("lost", "all of it")).evidence == (cw.Evidence("lost", "all of it"),)
    assert json.dumps(cw.Score(True).value) == "1.0"


@pytest.mark.parametrize("value", ["much", None, [1]])
def test_what_is_no_number_is_no_score(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        cw.Score(value)


@pytest.mark.parametrize("evidence", ["because", ["because"], [None]])
def test_what_is_no_evidence_is_refused(evidence: Any) -> None:
    with pytest.raises(TypeError, match=r"evidence is a tuple of callwright\.Evidence"):
        cw.Score(0.0, evidence=evidence)


# Bugs -----------------------------------------------------------------------------------------------------------------


class Raising(cw.RewardComponent):
    name: ClassVar[str] = "raising"

    def __init__(self, what: Any) -> None:
        self.what = what

    def score(self, attempt: cw.Attempt) -> cw.Score:
        if isinstance(self.what, BaseException):
            raise self.what
        found: cw.Score = self.what
        return found


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (ZeroDivisionError("by nothing"), "raised ZeroDivisionError: by nothing"),
        (CannotExpress("not in this form"), "raised CannotExpress: not in this form"),
        (cw.Score(math.nan), r"returned nan, outside \[0, 1\]"),
        (cw.Score(1.5), r"returned 1.5, outside \[0, 1\]"),
        (cw.Score(2.0, 0.0, 2.0), r"returned 2.0, outside \[0, 1\]"),
        (cw.Score(-0.1), r"returned -0.1, outside \[0, 1\]"),
        (0.5, "returned 0.5, which is no callwright.Score"),
        (None, "returned None, which is no callwright.Score"),
        (AttributeError("no attribute 'value'", name="value", obj=3), "raised AttributeError"),
        (SystemExit(3), "raised SystemExit: 3"),
    ],
)
def test_a_component_with_a_bug_is_named_with_the_example(
    make_attempt: Callable[..., cw.Attempt], what: Any, message: str
) -> None:
    with pytest.raises(ComponentError, match=message) as caught:
        recipe(Raising(what)).score_attempt(make_attempt("some completion", 4))
    for part in ("'raising'", "'t1'", "bug of the component", "'some completion'"):
        assert part in str(caught.value)
    assert caught.value.exit_status == 5


def test_the_bug_of_another_is_not_blamed_on_the_component(
    make_task: Callable[..., cw.Task], attempt: cw.Attempt
) -> None:
    class Broken:
        name = "broken"

        def parse(self, text: str) -> Any:
            raise KeyError("oops")

    class Looking(cw.RewardComponent):
        def score(self, attempt: cw.Attempt) -> cw.Score:
            return cw.Score(float(attempt.program is not None))

    with pytest.raises(ComponentError, match=r"^parser 'broken' raised KeyError"):
        recipe(Looking()).score(make_task(4), "x", ir=Broken())  # type: ignore[arg-type]
    with pytest.raises(PluginError, match=r"^a hook"):
        recipe(Raising(PluginError("a hook"))).score_attempt(attempt)


def test_an_interrupt_is_not_a_bug(attempt: cw.Attempt) -> None:
    class Interrupted(cw.RewardComponent):
        def score(self, attempt: cw.Attempt) -> cw.Score:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recipe(Interrupted()).score_attempt(attempt)


# Explanations ---------------------------------------------------------------------------------------------------------


def staged(**values: float) -> cw.RewardRecipe:
    return recipe(*(Fixed(name, value, stage=name) for name, value in values.items()))


def test_the_stage_is_the_first_that_lost_a_point(attempt: cw.Attempt) -> None:
    for lost in STAGES:
        values = {stage: 0.5 if STAGES.index(stage) >= STAGES.index(lost) else 1.0 for stage in STAGES}
        assert staged(**values).score_attempt(attempt).stage == lost
        assert staged(**dict(reversed(values.items()))).score_attempt(attempt).stage == lost
    assert staged(**dict.fromkeys(STAGES, 1.0)).score_attempt(attempt).stage == "done"
    assert recipe(Fixed("unstaged", 0.0)).score_attempt(attempt).stage == "done"
    gated = recipe(Fixed("a", 0.5, stage="execution"), cw.Term(Fixed("b", 1.0, stage="format"), 1, ("a",)))
    assert gated.score_attempt(attempt).stage == "execution", "a term that was not looked at lost nothing of its own"


def test_the_explanation_says_where_each_point_went(attempt: cw.Attempt) -> None:
    class Types(cw.RewardComponent):
        name: ClassVar[str] = "types"

        def score(self, attempt: cw.Attempt) -> cw.Score:
            reasons = tuple(cw.Evidence("type", f"reason {number}", 0, "rating") for number in range(6))
            return cw.Score(0.25, evidence=reasons)

    reward = recipe(Fixed("format", 1.0), Types(), cw.Term(Fixed("answer", 1.0), 2, ("types",))).score_attempt(attempt)
    assert reward.explain() == (
        "0.3125: types 0.25/1: reason 0; reason 1; reason 2; reason 3; 2 more\n  not reached: answer"
    )
    assert recipe(Fixed("a", 1.0)).score_attempt(attempt).explain() == "1: every point"


def test_the_row_of_a_reward_is_json(attempt: cw.Attempt) -> None:
    reward = recipe(Fixed("a", 1.0), Fixed("b", 0.25, stage="parse")).score_attempt(attempt)
    assert json.loads(json.dumps(reward.to_json(), allow_nan=False)) == {
        "total": 0.625,
        "scores": {
            "a": {"value": 1.0, "low": 0.0, "high": 1.0, "weight": 0.5, "evidence": []},
            "b": {
                "value": 0.25,
                "low": 0.0,
                "high": 1.0,
                "weight": 0.5,
                "evidence": [{"code": "why", "reason": "because of a reason"}],
            },
        },
        "stage": "parse",
    }
    full = cw.Evidence("type", "a reason", 3, "a.b", "number", "string")
    assert evidence_json(full) == {
        "code": "type",
        "reason": "a reason",
        "call": 3,
        "path": "a.b",
        "expected": "number",
        "found": "string",
    }


# Scoring one string ---------------------------------------------------------------------------------------------------


def test_a_string_is_scored_in_the_form_of_a_parser_or_of_its_name(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    class Right(cw.RewardComponent):
        def score(self, attempt: cw.Attempt) -> cw.Score:
            assert attempt.trace is not None
            return cw.Score(float(answers_match(attempt.task.answer, attempt.trace.returned)))

    registry = cw.Registry()
    lazy = cw.Lazy("list", lambda: list_parser)
    registry.add(type("P", (), {"callwright_parsers": staticmethod(cw.hookimpl(lambda: [lazy]))})(), name="p")
    given_recipe, text = recipe(Right()), '[["double", {"number": 2}]]'
    assert given_recipe.score(make_task(4), text, ir=list_parser).total == 1.0
    assert given_recipe.score(make_task(5), text, ir="list", registry=registry).total == 0.0
    with pytest.raises(UnknownName, match=r"no parser named 'lisp'.*Did you mean 'list'"):
        given_recipe.score(make_task(4), text, ir="lisp", registry=registry)


def test_progress_reaches_the_components(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    class Scheduled(cw.RewardComponent):
        def score(self, attempt: cw.Attempt) -> cw.Score:
            progress = attempt.progress
            return cw.Score(progress.step / progress.total_steps if progress else 0.0)

    reward = recipe(Scheduled()).score(make_task(4), "[]", ir=list_parser, progress=Progress(3, 4))
    assert reward.total == 0.75


def test_a_reward_without_terms_lost_nothing() -> None:
    assert (cw.Reward(1.0, {}).stage, cw.Reward(1.0, {}).masked) == ("done", None)


def test_a_term_that_cannot_lose_shuts_nothing_behind_a_shut_gate(attempt: cw.Attempt) -> None:
    terms = (
        cw.Term(Fixed("gate", 0.0)),
        cw.Term(Fixed("constant", 1.0, 1.0, 1.0), 1.0, ("gate",)),
        cw.Term(Fixed("after", 1.0), 1.0, ("constant",)),
    )
    for reward in (recipe(*terms).score_attempt(attempt), *recipe(*terms).score_attempts([attempt] * 3)):
        assert [weighted.closed for weighted in reward.scores.values()] == [False, True, False]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda attempt: 1.0, "is a callwright.RewardComponent, not <function"),
        (type("Half", (), {"name": "half"})(), "is a callwright.RewardComponent, not <"),
        (type("Whole", (cw.RewardComponent,), {"name": "whole"}), r"an object of it is Whole\(…\)"),
    ],
)
def test_what_is_no_component_is_told_where_it_is_given(given: Any, said: str) -> None:
    """It ended as ``AttributeError: 'function' object has no attribute 'name'``."""
    with pytest.raises(cw.UsageError, match=said):
        cw.reward("tier").with_terms(given)
