"""Shares and their intervals, against scipy, exact sums and simulated families."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.statistics.intervals import student_t
from callwright.statistics.shares import Share, cluster_variance, clustered_share, wilson

observed = st.integers(1, 10_000).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count)))


@given(observed)
def test_wilson_is_scipys(observed: tuple[int, int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    right, count = observed
    found = stats.binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert wilson(right, count) == pytest.approx((found.low, found.high), abs=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 30, 200])
def test_student_t_is_scipys(freedom: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert student_t(0.95, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-12)


@given(observed)
def test_rows_that_are_clusters_of_their_own_have_wilsons_interval(observed: tuple[int, int]) -> None:
    right, count = observed
    found = clustered_share([(1.0, 1)] * right + [(0.0, 1)] * (count - right))
    assert (found.share, found.n, found.clusters, found.effective) == (right / count, count, count, count)
    assert (found.low, found.high) == pytest.approx(wilson(right, count), abs=1e-15)


clusters = st.lists(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=9
)


@given(clusters)
def test_the_variance_between_clusters_is_the_linearised_one(found: list[tuple[int, int]]) -> None:
    n, groups = sum(size for _, size in found), len(found)
    mean = Fraction(sum(right for right, _ in found), n)
    exact = sum((right - mean * size) ** 2 for right, size in found) / Fraction(n) ** 2 * Fraction(groups, groups - 1)
    assert cluster_variance([(float(right), size) for right, size in found]) == pytest.approx(float(exact), abs=1e-12)


@given(clusters, st.integers(2, 5))
def test_a_row_that_is_there_several_times_tells_nothing_new(found: list[tuple[int, int]], times: int) -> None:
    """Copies of the rows of each cluster: the same share, and in the end the same interval, where clusters differ."""
    once, often = clustered_share(found), clustered_share([(right * times, size * times) for right, size in found])
    assert often.share == pytest.approx(once.share)
    assert (often.n, often.clusters) == (once.n * times, once.clusters)
    if len({Fraction(right, size) for right, size in found}) == 1:
        return
    many = 4000 // once.n + 1
    more, most = (clustered_share([(right * m, size * m) for right, size in found]) for m in (many, 2 * many))
    assert (more.low, more.high) == pytest.approx((most.low, most.high), abs=2e-3)


def test_families_that_succeed_and_fail_together_count_once() -> None:
    """Forty rows of five families, all right: Wilson's [91, 100] takes them for forty."""
    found = clustered_share([(8, 8)] * 5)
    assert (found.share, found.n, found.clusters, found.effective) == (1.0, 40, 5, 5.0)
    assert (found.low, found.high) == wilson(5, 5)
    apart = clustered_share([(8, 8), (8, 8), (0, 8), (8, 8), (0, 8)])
    assert apart.share == 0.6
    assert apart.effective < 5.0
    assert apart.high - apart.low > wilson(24, 40)[1] - wilson(24, 40)[0]


def test_nothing_and_one_cluster() -> None:
    assert clustered_share([]) == clustered_share([(0.0, 0)]) == Share(None, 0, 0, 0.0, 0.0, 1.0)
    assert clustered_share([(3, 6)]).effective == 1.0
    assert math.isclose(clustered_share([(1, 2)] * 3).share or 0, 0.5)


@pytest.mark.parametrize(("families", "likeness"), [(20, 0.5), (60, 0.5), (60, 1.0), (40, 0.0)])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(families: int, likeness: float) -> None:
    """Families of one to seven tasks; with the chance ``likeness`` a task does as its family does."""
    rng, held, runs = Random(5), 0, 600
    for _ in range(runs):
        made = []
        for _ in range(families):
            shared, size = rng.random() < 0.7, rng.randint(1, 7)
            made.append((sum(shared if rng.random() < likeness else rng.random() < 0.7 for _ in range(size)), size))
        found = clustered_share(made)
        held += found.low <= 0.7 <= found.high
    assert 0.925 <= held / runs <= 0.99
