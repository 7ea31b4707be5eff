"""pass@k, pass^k and the spread of values, against every choice of samples there is."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.statistics.samples import Spread, pass_at, pass_hat, spread


@pytest.mark.parametrize("n", range(1, 8))
def test_they_are_shares_of_all_choices_of_k_samples(n: int) -> None:
    for right in range(n + 1):
        verdicts = [True] * right + [False] * (n - right)
        for k in range(1, n + 1):
            choices = list(combinations(verdicts, k))
            some, every = (Fraction(sum(map(test, choices)), len(choices)) for test in (any, all))
            assert pass_at(n, right, k) == pytest.approx(float(some), abs=1e-12)
            assert pass_hat(n, right, k) == pytest.approx(float(every), abs=1e-12)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_they_are_tails_of_the_hypergeometric_distribution(drawn: tuple[int, int, int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    n, right, k = drawn
    distribution = stats.hypergeom(n, right, k)
    assert pass_at(n, right, k) == pytest.approx(1 - distribution.pmf(0), abs=1e-12)
    assert pass_hat(n, right, k) == pytest.approx(distribution.pmf(k), abs=1e-12)


@pytest.mark.parametrize(("n", "right", "k"), [(3, 1, 0), (3, 1, 4), (3, 4, 1), (3, -1, 1), (0, 0, 0)])
def test_what_cannot_be_drawn(n: int, right: int, k: int) -> None:
    for estimate in (pass_at, pass_hat):
        with pytest.raises(ValueError, match="cannot be drawn"):
            estimate(n, right, k)


def test_how_values_scatter() -> None:
    found = spread([[1.0, 0.0], [0.5, 0.5], [1.0, 1.0, 0.4], [], [0.2]])
    means = [0.5, 0.5, 0.8, 0.2]
    assert (found.n, found.tasks, found.flat) == (8, 4, 1)
    assert found.mean == pytest.approx(0.5)
    assert found.between == pytest.approx(statistics.stdev(means))
    assert found.within == pytest.approx(math.sqrt((0.5 + 0.0 + 0.24) / (1 + 1 + 2)))
    stats = pytest.importorskip("scipy.stats")
    reach = stats.t.ppf(0.975, 3) * statistics.stdev(means) / 2
    assert (found.low, found.high) == pytest.approx((0.5 - reach, 0.5 + reach), abs=1e-12)


def test_tasks_of_a_family_are_no_independent_values() -> None:
    apart = spread([[0.0], [0.0], [1.0], [1.0]])
    together = spread([[0.0], [0.0], [1.0], [1.0]], ["a", "a", "b", "b"])
    assert apart.mean == together.mean == 0.5
    assert together.low is not None
    assert apart.low is not None
    assert together.low < apart.low
    assert spread([[1.0], [0.0]], ["a", "a"]).low is None
    assert spread([]) == Spread(0, 0, None)
    assert spread([[0.25]]) == Spread(1, 1, 0.25)
