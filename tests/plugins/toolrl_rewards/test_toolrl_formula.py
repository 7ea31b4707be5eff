"""The paper's recipes equal sections 3.3 and 5 written out slowly, in exact fractions, with every order of calls tried.

Each line of the formulas is marked with its section of the paper, or "ours" where the paper leaves it open. They use
nothing of the implementation.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.walk import Progress
from callwright_plugins.toolrl_rewards.reading import Reading, read_text
from callwright_plugins.toolrl_rewards.recipes import ABLATIONS

#: A name and its parameters.
Call = tuple[str, dict[str, Any]]
Granularity = Literal["full", "finegrained", "intermediate", "coarse"]


class Prediction(NamedTuple):
    """What a completion holds: calls, and how many things stand in place of calls and cannot be read."""

    calls: Sequence[Call]
    unreadable: int = 0


def same(one: Any, other: Any) -> bool:
    """1[P[k] = G[k]] (3.3). Ours: as JSON, so true is not 1, and numbers are what they are worth."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def jaccard(one: Iterable[str], other: Iterable[str]) -> Fraction:
    """|A and B| / |A or B|. Ours: 0/0 is 1."""
    both, either = set(one) & set(other), set(one) | set(other)
    return Fraction(len(both), len(either)) if either else Fraction(1)


def match_score(truth: Call, found: Call, granularity: Granularity) -> Fraction:
    """r_param + r_value of a pair."""
    wanted, given = truth[1], found[1]
    if granularity == "intermediate":  # 5.3: 1[P_G = P_P]
        return Fraction(same(wanted, given))
    if granularity == "finegrained":  # 5.3: 1[keys(P_G) = keys(P_P)]
        r_param = Fraction(set(wanted) == set(given))
    else:  # 3.3
        r_param = jaccard(wanted, given)
    r_value = sum(1 for key in wanted if key in given and same(wanted[key], given[key]))  # 3.3
    return r_param + r_value


def best_matching(
    truth: Sequence[Call], found: Sequence[Call], granularity: Granularity, *, any_name: bool
) -> Fraction:
    """R_max without r_name, which is the same for every matching: 3.3, "the optimal matching between P and G"."""
    weights = [
        [match_score(g, p, granularity) if any_name or g[0] == p[0] else Fraction(0) for p in found] for g in truth
    ]
    few, many, turned = len(truth), len(found), False
    if few > many:
        few, many, turned = many, few, True
    return max(
        sum((weights[at][n] if turned else weights[n][at] for n, at in enumerate(order)), Fraction(0))
        for order in permutations(range(many), few)
    )


def share(
    truth: Sequence[Call],
    prediction: Prediction,
    granularity: Granularity = "full",
    *,
    any_name: bool = True,
    counted: bool = False,
) -> Fraction:
    """R_max / S_max."""
    found = list(prediction.calls)
    count = len(found) + prediction.unreadable  # ours: what cannot be read was a call, of no name
    if granularity == "coarse":  # 5.3: 1[G = P] over S = 1 (released); ours: as collections, in any order
        return Fraction(
            not prediction.unreadable
            and len(found) == len(truth)
            and any(all(map(same_call, truth, order)) for order in permutations(found))
        )
    if not truth:  # 3.3 with S = 1: r_name alone, 0/0 = 1 if nothing is called (ours), else 0
        return Fraction(count == 0)
    mine, theirs = {name for name, _ in truth}, {name for name, _ in found}
    # 5.3: 1[N_G = N_P]; 3.3: their ratio
    r_name = Fraction(mine == theirs) if granularity == "finegrained" else jaccard(mine, theirs)
    r_max = r_name + best_matching(truth, found, granularity, any_name=any_name)
    of_calls = Fraction(len(truth))  # 3.3; released for the intermediate granularity, with no term for the keys
    if granularity != "intermediate":
        of_calls += sum(len(parameters) for _, parameters in truth)
    if counted:  # ours: the guard
        of_calls *= max(Fraction(1), Fraction(count, len(truth)))
    return r_max / (1 + of_calls)


def same_call(one: Call, other: Call) -> bool:
    return one[0] == other[0] and same(one[1], other[1])


def ranges(change: str, step: int, total: int) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """The ranges of format and correctness at a step, counted from 0 (ours)."""
    plain = Fraction(0), Fraction(1)
    three = Fraction(-3), Fraction(3)
    one = Fraction(-1), Fraction(1)
    p = min(Fraction(1), Fraction(step, total))
    if change == "equal-max":  # 5.2
        return plain, one
    if change == "two-stage":  # 5.2, s = 30
        return (plain, one) if step < 30 else ((Fraction(0), Fraction(1, 2)), three)
    if change == "dynamic-scale":  # 5.2
        return (-2 + p, 2 - p), (-2 - p, 2 + p)
    return plain, three


def length_reward(change: str, words: int, step: int, total: int) -> Fraction:
    """R_length of 5.1, in words (ours)."""
    p = min(Fraction(1), Fraction(step, total))
    target = 512 * (1 + p) if change == "dynamic-length" else Fraction(512)
    return min(words / target, Fraction(1))


def between(low: Fraction, high: Fraction, part: Fraction) -> Fraction:
    """(max - min) part + min (3.3)."""
    return low + (high - low) * part


GRANULARITIES = ("finegrained", "intermediate", "coarse")
RECIPES = ("toolrl", "toolrl-guarded", *(f"toolrl-{change}" for change in ABLATIONS))


def calls_of(reading: Reading) -> list[Call]:
    return [(call.name, dict(call.parameters)) for call in reading.calls]


def expected_scores(
    name: str,
    truth: list[Call],
    prediction: Prediction,
    *,
    in_form: bool,
    words: int,
    step: int,
    total: int,
    any_name: bool = True,
    counted: bool | None = None,
    shares: dict[tuple[Granularity, bool], Fraction] | None = None,
) -> dict[str, float]:
    """By component, as floats of the oracle's exact fractions; ``shares`` are those of this prediction so far."""
    change = name.removeprefix("toolrl").removeprefix("-")
    granularity: Any = change if change in GRANULARITIES else "full"
    of_format, of_calls = ranges(change, step, total)
    counted = change == "guarded" if counted is None else counted
    shares = {} if shares is None else shares
    if (granularity, counted) not in shares:  # most recipes differ in ranges alone
        shares[granularity, counted] = share(truth, prediction, granularity, any_name=any_name, counted=counted)
    part = shares[granularity, counted]
    found = {
        "format": between(*of_format, Fraction(in_form)),
        "correctness": between(*of_calls, part),
    }
    if change in ("length", "dynamic-length"):
        found["length"] = length_reward(change, words, step, total)
    return {key: float(value) for key, value in found.items()}


def values(reward: cw.Reward) -> dict[str, float]:
    return {name: weighted.score.value for name, weighted in reward.scores.items()}


def test_every_reference_row_is_worth_what_the_formulas_say(official_data: Path) -> None:
    """Calls as the reader reads them; the reader's own decisions have tests of their own."""
    file = official_data / "toolrl" / "reference_scores.jsonl.gz"
    if not file.is_file():
        pytest.skip("ToolRL's reference scores are not here (CALLWRIGHT_DATA)")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    recipes = {name: cw.reward(name) for name in RECIPES}
    assert len(rows) == 3516
    more_calls_than_due = 0
    for row in rows:
        true, found = read_text(row["ground_truth"]), read_text(row["completion"])
        kind = "T" + "C" * ("C" in true.blocks) + "R" * ("R" in true.blocks)
        prediction = Prediction(calls_of(found), len(found.defects))
        more_calls_than_due += len(found.calls) > len(true.calls)
        shares: dict[tuple[Granularity, bool], Fraction] = {}
        for name, recipe in recipes.items():
            expected = expected_scores(
                name,
                calls_of(true),
                prediction,
                in_form=found.stray is None and found.blocks == kind,
                words=len((found.thought or "").split()),
                step=row["step"],
                total=row["total_steps"],
                shares=shares,
            )
            at = Progress(row["step"], row["total_steps"])
            reward = recipe.score_pair(row["completion"], row["ground_truth"], at)
            assert values(reward) == pytest.approx(expected, abs=1e-12), (row["id"], name)
            assert reward.total == pytest.approx(sum(expected.values()), abs=1e-12)
    assert more_calls_than_due > 150


PARAMETER = st.sampled_from([0, 1, 1.0, True, "1", "x", None, 0.1 + 0.2, 0.3, [1], [True], {"a": 1}, {}])
CALL = st.tuples(st.sampled_from("fgh"), st.dictionaries(st.sampled_from("abc"), PARAMETER, max_size=3))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Call], list[Call]]:
    """True calls, and calls that are others, or some of them in any order, some twice, some changed."""
    truth = draw(st.lists(CALL, max_size=4))
    if not truth or draw(st.booleans()):
        return truth, draw(st.lists(CALL, max_size=5))
    taken = draw(st.lists(st.sampled_from(truth) | CALL, max_size=6)) if draw(st.booleans()) else truth
    if draw(st.booleans()):
        taken = taken[1:]
    return truth, draw(st.permutations(taken))


def line(call: Call) -> str:
    return json.dumps({"name": call[0], "parameters": call[1]})


def text(calls: list[Call], broken_at: int | None = None) -> str:
    lines = [line(call) for call in calls]
    if broken_at is not None:
        lines.insert(broken_at, '{"name": "f", "parameters": {"a"')
    if not lines:
        return "<think>t</think>\n<response>r</response>"
    return "<think>t</think>\n<tool_call>\n" + "\n".join(lines) + "\n</tool_call>"


@settings(max_examples=150, deadline=None)
@given(
    calls=pairs(),
    broken=st.none() | st.integers(0, 6),
    step=st.integers(0, 120),
    any_name=st.booleans(),
    counted=st.booleans(),
)
def test_every_recipe_is_its_formula(
    calls: tuple[list[Call], list[Call]], broken: int | None, step: int, any_name: bool, counted: bool
) -> None:
    """The same examples for all recipes: drawing them takes longer than scoring them."""
    truth, predicted = calls
    prediction = Prediction(predicted, int(broken is not None))
    written, true, at = text(predicted, broken), text(truth), Progress(step, 105)
    for name in RECIPES:
        options = {"pairs": "any" if any_name else "same-name"}
        extra = counted
        if name in ("toolrl", "toolrl-guarded", "toolrl-coarse"):
            extra = name == "toolrl-guarded"
        else:
            options["extra_calls"] = "counted" if counted else "free"
        expected = expected_scores(
            name,
            truth,
            prediction,
            in_form=bool(truth) == bool(predicted or broken is not None),
            words=1,
            step=step,
            total=105,
            any_name=any_name,
            counted=extra,
        )
        reward = cw.reward(name, **options).score_pair(written, true, at)
        assert values(reward) == pytest.approx(expected, abs=1e-12), name


@settings(max_examples=150, deadline=None)
@given(calls=pairs(), order=st.randoms(use_true_random=False))
def test_the_order_of_predicted_calls_does_not_matter(
    calls: tuple[list[Call], list[Call]], order: random.Random
) -> None:
    truth, predicted = calls
    shuffled = order.sample(predicted, len(predicted))
    for name in ("toolrl", "toolrl-guarded", "toolrl-finegrained", "toolrl-intermediate", "toolrl-coarse"):
        recipe = cw.reward(name)
        one, other = (recipe.score_pair(text(some), text(truth)).total for some in (predicted, shuffled))
        assert one == pytest.approx(other, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(calls=pairs(), extra=st.dictionaries(st.sampled_from("abc"), PARAMETER, max_size=3))
def test_one_more_call_of_a_name_that_was_called_costs_nothing_as_printed(
    calls: tuple[list[Call], list[Call]], extra: dict[str, Any]
) -> None:
    """S_max has no term in |P|: what ``toolrl-guarded`` is for."""
    truth, predicted = calls
    if predicted:
        longer = [*predicted, (predicted[0][0], extra)]
        printed = cw.reward("toolrl")
        before, after = (printed.score_pair(text(some), text(truth)).total for some in (predicted, longer))
        assert after >= before - 1e-12


def test_the_best_matching_is_no_worse_than_the_greedy_one() -> None:
    rng, better = random.Random(6), 0
    best, in_turn = cw.reward("toolrl"), cw.reward("toolrl", matching="greedy")

    def some(most: int) -> list[Call]:
        return [
            (rng.choice("fg"), {key: rng.choice((0, 1, "x")) for key in "ab" if rng.random() < 0.7})
            for _ in range(rng.randint(0, most))
        ]

    for _ in range(300):
        truth, predicted = text(some(4)), text(some(4))
        optimal, greedy = best.score_pair(predicted, truth).total, in_turn.score_pair(predicted, truth).total
        assert optimal >= greedy - 1e-12
        better += optimal > greedy + 1e-12
    assert better > 10
