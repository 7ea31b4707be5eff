"""Kendall's tau-b against the definition, pair by pair, and against scipy where it is installed."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright_plugins.lab import agreement
from callwright_plugins.lab.agreement import Pairs, compare, compare_within

values = st.sampled_from([0.0, 0.1, 0.35, 0.5, 1.0, -3.0])
rows = st.lists(st.tuples(values | st.floats(-1, 1), values | st.floats(-1, 1)), max_size=40)


def literal(xs: list[float], ys: list[float]) -> Pairs:
    pairs = Pairs()
    for i in range(len(xs)):
        for j in range(i):
            x, y = (xs[i] > xs[j]) - (xs[i] < xs[j]), (ys[i] > ys[j]) - (ys[i] < ys[j])
            pairs.concordant += x * y > 0
            pairs.discordant += x * y < 0
            pairs.untied_x += x != 0
            pairs.untied_y += y != 0
    return pairs


@given(rows)
@settings(max_examples=60)
def test_both_ways_of_counting_are_the_definition(found: list[tuple[float, float]]) -> None:
    xs, ys = [x for x, _ in found], [y for _, y in found]
    expected = literal(xs, ys)
    assert compare(xs, ys) == expected
    if expected.untied_x and expected.untied_y:
        cells = Counter(zip(xs, ys, strict=True))
        assert agreement._by_tree(cells) == (expected.concordant, expected.discordant)


@given(rows)
@settings(max_examples=40)
def test_tau_is_scipys(found: list[tuple[float, float]]) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    xs, ys = [x for x, _ in found], [y for _, y in found]
    tau = compare(xs, ys).tau
    if tau is None:
        assert len(set(xs)) < 2 or len(set(ys)) < 2
    else:
        assert math.isclose(tau, stats.kendalltau(xs, ys).statistic, abs_tol=1e-12)


def test_groups_count_no_pair_across_them() -> None:
    # inside each group the two agree; across the groups they are opposed
    xs, ys = [0.0, 1.0, 10.0, 11.0], [10.0, 11.0, 0.0, 1.0]
    assert compare_within([[0, 1], [2, 3]], xs, ys).tau == 1.0
    assert compare(xs, ys).tau == pytest.approx(-1 / 3)
