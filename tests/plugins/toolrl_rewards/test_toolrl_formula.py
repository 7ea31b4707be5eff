"""The paper's recipes equal section 3.3 and 5.3 written out literally, with every assignment tried."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

import callwright as cw

Call = dict[str, Any]


def same(mine: Any, theirs: Any) -> bool:
    return type(mine) is type(theirs) and bool(mine == theirs)


def literal(truth: list[Call], predicted: list[Call], granularity: str, *, any_name: bool, counted: bool) -> Fraction:
    """R_max / S_max in exact fractions. Values are ints, bools and strings: equal if type and value are."""
    if not truth:
        return Fraction(0 if predicted else 1)
    if granularity == "coarse":
        key = [sorted(json.dumps(call, sort_keys=True) for call in calls) for calls in (truth, predicted)]
        return Fraction(int(key[0] == key[1]))
    if not predicted:
        return Fraction(0)
    n_g, n_p = {call["name"] for call in truth}, {call["name"] for call in predicted}
    r_name = Fraction(int(n_g == n_p)) if granularity == "finegrained" else Fraction(len(n_g & n_p), len(n_g | n_p))
    best = Fraction(0)
    padded = [*predicted, *[None] * len(truth)]
    for order in set(permutations(range(len(padded)), len(truth))):
        r_param, r_value = Fraction(0), Fraction(0)
        for g, at in zip(truth, order, strict=True):
            p = padded[at]
            if p is None or (not any_name and p["name"] != g["name"]):
                continue
            mine, theirs = g["parameters"], p["parameters"]
            if granularity == "intermediate":
                r_param += int(set(mine) == set(theirs) and all(same(mine[k], theirs[k]) for k in mine))
                continue
            keys = set(mine) | set(theirs)
            if granularity == "finegrained":
                r_param += int(set(mine) == set(theirs))
            else:
                r_param += Fraction(len(set(mine) & set(theirs)), len(keys)) if keys else 1
            r_value += sum(1 for k in mine if k in theirs and same(mine[k], theirs[k]))
        best = max(best, r_param + r_value)
    of_calls = Fraction(len(truth))
    if granularity != "intermediate":
        of_calls += sum(len(call["parameters"]) for call in truth)
    if counted:
        of_calls *= max(Fraction(1), Fraction(len(predicted), len(truth)))
    return (r_name + best) / (1 + of_calls)


def some_calls(rng: random.Random, most: int) -> list[Call]:
    return [
        {
            "name": rng.choice("fg"),
            "parameters": {key: rng.choice((0, 1, True, "x")) for key in "ab" if rng.random() < 0.7},
        }
        for _ in range(rng.randint(0, most))
    ]


def text(calls: list[Call]) -> str:
    if not calls:
        return "<think>t</think>\n<response>r</response>"
    return "<think>t</think>\n<tool_call>\n" + "\n".join(map(json.dumps, calls)) + "\n</tool_call>"


@pytest.mark.parametrize("granularity", ["full", "finegrained", "intermediate", "coarse"])
@pytest.mark.parametrize(("any_name", "counted"), [(True, True), (True, False), (False, True)])
def test_correctness_is_the_formula(granularity: str, any_name: bool, counted: bool) -> None:
    recipe = cw.reward(
        "toolrl" if granularity == "full" else f"toolrl-{granularity}",
        pairs="any" if any_name else "same-name",
        extra_calls="counted" if counted else "free",
    )
    rng = random.Random(f"{granularity} {any_name} {counted}")
    for _ in range(150):
        truth = some_calls(rng, 3)
        predicted = some_calls(rng, 4) if rng.random() < 0.7 else rng.sample(truth, len(truth))
        expected = 6 * literal(truth, predicted, granularity, any_name=any_name, counted=counted) - 3
        reward = recipe.score_pair(text(predicted), text(truth))
        assert reward.scores["correctness"].score.value == pytest.approx(float(expected), abs=1e-9), (truth, predicted)
        assert reward.scores["format"].score.value == float(bool(truth) == bool(predicted))


def test_the_order_of_predicted_calls_does_not_matter() -> None:
    rng = random.Random(5)
    for _ in range(100):
        truth, predicted = some_calls(rng, 4), some_calls(rng, 5)
        shuffled = rng.sample(predicted, len(predicted))
        for name in ("toolrl", "toolrl-finegrained", "toolrl-intermediate", "toolrl-coarse"):
            recipe = cw.reward(name)
            one, other = (recipe.score_pair(text(calls), text(truth)).total for calls in (predicted, shuffled))
            assert one == pytest.approx(other, abs=1e-9)


def test_the_best_matching_is_no_worse_than_the_greedy_one() -> None:
    rng, better = random.Random(6), 0
    for _ in range(300):
        truth, predicted = text(some_calls(rng, 4)), text(some_calls(rng, 4))
        optimal = cw.reward("toolrl").score_pair(predicted, truth).total
        greedy = cw.reward("toolrl", matching="greedy").score_pair(predicted, truth).total
        assert optimal >= greedy - 1e-9
        better += optimal > greedy + 1e-9
    assert better > 10
