"""The assignment is exact: against trying everything, and against scipy where it is installed."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright_plugins.toolrl_rewards.assignment import _augmented, assign

ENTRIES = st.integers(0, 12).map(lambda n: n / 4)


@st.composite
def matrices(draw: st.DrawFn, largest: int = 5) -> list[list[float]]:
    rows, columns = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    return [[draw(ENTRIES) for _ in range(columns)] for _ in range(rows)]


def worth(weights: list[list[float]], chosen: list[int]) -> float:
    return sum(row[column] for row, column in zip(weights, chosen, strict=True) if column >= 0)


def by_brute_force(weights: list[list[float]]) -> float:
    rows, columns = len(weights), len(weights[0])
    if rows > columns:
        return by_brute_force([list(row) for row in zip(*weights, strict=True)])
    return max(
        sum(row[column] for row, column in zip(weights, order, strict=True))
        for order in permutations(range(columns), rows)
    )


@settings(max_examples=300, deadline=None)
@given(matrices())
def test_equals_trying_everything(weights: list[list[float]]) -> None:
    chosen = assign(weights)
    used = [column for column in chosen if column >= 0]
    assert len(used) == len(set(used)) == min(len(weights), len(weights[0]))
    assert worth(weights, chosen) == pytest.approx(by_brute_force(weights), abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(matrices())
def test_augmenting_paths_alone_equal_trying_everything(weights: list[list[float]]) -> None:
    if len(weights) > len(weights[0]):
        weights = [list(row) for row in zip(*weights, strict=True)]
    assert worth(weights, _augmented(weights)) == pytest.approx(by_brute_force(weights), abs=1e-12)


def test_equals_scipy_on_large_matrices() -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="scipy is not installed")
    rng = random.Random(0)
    for _ in range(30):
        rows, columns = rng.randint(1, 30), rng.randint(1, 30)
        weights = [[rng.random() for _ in range(columns)] for _ in range(rows)]
        taken = optimize.linear_sum_assignment(weights, maximize=True)
        best = sum(weights[row][column] for row, column in zip(*taken, strict=True))
        assert worth(weights, assign(weights)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("weights", [[], [[]], [[], []]])
def test_nothing_to_assign(weights: list[list[float]]) -> None:
    assert assign(weights) == [-1] * len(weights)
