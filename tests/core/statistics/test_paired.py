"""Paired differences: the bootstrap against every resample there is, McNemar's test against the binomial one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.statistics.intervals import student_t
from callwright.statistics.paired import Difference, bootstrap_difference, mcnemar


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_exact_binomial_test(gained: int, lost: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("gained", range(7))
@pytest.mark.parametrize("lost", range(7))
def test_mcnemar_counts_every_way_the_pairs_could_have_fallen(gained: int, lost: int) -> None:
    n = gained + lost
    ways = [sum(way) for way in product((0, 1), repeat=n)]
    as_far = sum(abs(2 * way - n) >= abs(gained - lost) for way in ways)
    assert mcnemar(gained, lost) == pytest.approx(float(Fraction(as_far, len(ways))), abs=1e-12)


def test_mcnemar_of_many_pairs() -> None:
    assert mcnemar(5000, 5000) == 1.0
    assert 0 < mcnemar(4900, 5100) < 0.05
    assert mcnemar(0, 5000) == 0.0
    with pytest.raises(ValueError, match="cannot be"):
        mcnemar(-1, 3)


def test_the_bounds_are_quantiles_over_every_resample() -> None:
    """Five clusters have 3,125 resamples; the bootstrap draws from them."""
    stats = pytest.importorskip("scipy.stats")
    clusters = [[1.0, 0.0], [0.0], [0.0, -1.0, 1.0], [1.0], [-1.0, -1.0]]
    means = sorted(
        sum(sum(clusters[i]) for i in pick) / sum(len(clusters[i]) for i in pick)
        for pick in product(range(5), repeat=5)
    )
    outside = stats.norm.cdf(-((5 / 4) ** 0.5) * student_t(0.95, 4))
    found = bootstrap_difference(clusters, draws=40_000)
    assert (found.n, found.clusters, found.difference) == (9, 5, pytest.approx(0.0))
    for bound, share in ((found.low, outside), (found.high, 1 - outside)):
        assert bound is not None
        below = sum(mean <= bound + 1e-9 for mean in means) / len(means)
        under = sum(mean < bound - 1e-9 for mean in means) / len(means)
        assert under - 0.003 <= share <= below + 0.003


def test_the_same_arguments_give_the_same_bounds() -> None:
    rng = Random(3)
    clusters = [[float(rng.choice([-1, 0, 0, 1])) for _ in range(rng.randint(1, 4))] for _ in range(30)]
    first = bootstrap_difference(clusters)
    assert first == bootstrap_difference(list(reversed(clusters)))
    assert first != bootstrap_difference(clusters, seed=1)
    assert first.low is not None
    assert first.high is not None
    assert first.difference is not None
    assert first.low < first.difference < first.high


def test_where_nothing_differs_something_still_may() -> None:
    assert bootstrap_difference([]) == Difference(0, 0, None)
    assert bootstrap_difference([[1.0, 0.0]]) == Difference(2, 1, 0.5, -1.0, 1.0)
    found = bootstrap_difference([[0.0]] * 100)
    assert (found.low, found.high) == pytest.approx((-0.0362, 0.0362), abs=1e-4)
    gained = bootstrap_difference([[1.0]] * 20)
    assert gained.high == 1.0
    assert gained.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 20)))


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Families of one to six tasks that mostly do alike; ``benchmarks/paired_coverage.py`` says it exactly."""
    rng, held, runs = Random(11), 0, 200
    for run in range(runs):
        clusters = []
        for _ in range(40):
            shared, size = rng.choices([-1.0, 0.0, 1.0], [1, 6, 3])[0], rng.randint(1, 6)
            drawn = [rng.choices([-1.0, 0.0, 1.0], [1, 6, 3])[0] for _ in range(size)]
            clusters.append([shared if rng.random() < 0.7 else one for one in drawn])
        found = bootstrap_difference(clusters, draws=400, seed=run)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.2 <= found.high
    assert 0.90 <= held / runs <= 0.985
