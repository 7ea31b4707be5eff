"""Intervals of means over seeds: Student's t against a table and its own density, coverage, pairs."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.statistics.intervals import MeanInterval, mean_interval, paired_difference, student_t

#: A printed table of Student's t, two-sided (NIST/SEMATECH e-Handbook, 1.3.6.7.2: columns 0.95, 0.975, 0.995).
TABLE = {
    1: (6.314, 12.706, 63.657),
    2: (2.920, 4.303, 9.925),
    3: (2.353, 3.182, 5.841),
    4: (2.132, 2.776, 4.604),
    5: (2.015, 2.571, 4.032),
    6: (1.943, 2.447, 3.707),
    7: (1.895, 2.365, 3.499),
    8: (1.860, 2.306, 3.355),
    9: (1.833, 2.262, 3.250),
    10: (1.812, 2.228, 3.169),
    15: (1.753, 2.131, 2.947),
    29: (1.699, 2.045, 2.756),
    30: (1.697, 2.042, 2.750),
    60: (1.671, 2.000, 2.660),
    100: (1.660, 1.984, 2.626),
}


@pytest.mark.parametrize("freedom", TABLE)
def test_t_is_that_of_the_printed_table(freedom: int) -> None:
    assert [round(student_t(level, freedom), 3) for level in (0.90, 0.95, 0.99)] == list(TABLE[freedom])


@given(st.floats(0.01, 0.995), st.integers(1, 40))
def test_the_density_between_the_bounds_integrates_to_the_level(level: float, freedom: int) -> None:
    """Simpson's rule over Student's density, in the angle whose tangent is t: nothing of the closed form is used."""
    top = math.atan(student_t(level, freedom))
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))

    def density(angle: float) -> float:
        t = math.tan(angle)
        return scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2) / math.cos(angle) ** 2

    count = 2000
    step = top / count
    weights = (1 if i in (0, count) else 4 if i % 2 else 2 for i in range(count + 1))
    half = step / 3 * math.fsum(weight * density(i * step) for i, weight in enumerate(weights))
    assert 2 * half == pytest.approx(level, abs=1e-8)


def test_many_degrees_approach_the_normal_distribution() -> None:
    assert student_t(0.95, 100_000) == pytest.approx(1.959964, abs=5e-5)
    values = [student_t(0.95, freedom) for freedom in range(1, 200)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(("level", "freedom"), [(0.0, 3), (1.0, 3), (0.95, 0), (-1, 2), (2, 2)])
def test_impossible_questions_are_refused(level: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="no Student distribution"):
        student_t(level, freedom)


def test_an_interval_by_hand() -> None:
    """1, 2, 3, 4: the mean is 2.5, the variance 5/3; t of 3 degrees is 3.182."""
    found = mean_interval([1, 2, 3, 4])
    assert (found.n, found.mean) == (4, 2.5)
    assert found.std == pytest.approx(math.sqrt(5 / 3))
    reach = 3.182446 * math.sqrt(5 / 3) / 2
    assert (found.low, found.high) == pytest.approx((2.5 - reach, 2.5 + reach), abs=1e-6)


def test_below_two_values_there_is_no_interval() -> None:
    assert mean_interval([]) == MeanInterval(0, None)
    assert mean_interval([0.25]).to_json() == {"n": 1, "mean": 0.25, "std": None, "low": None, "high": None}
    assert mean_interval([0.5, 0.5, 0.5]) == MeanInterval(3, 0.5, 0.0, 0.5, 0.5)


def test_pairs_are_those_that_both_have() -> None:
    found = paired_difference({1: 0.1, 2: 0.5, 3: 0.9, 4: 7.0}, {3: 1.0, 2: 0.6, 1: 0.2, 9: 0.0})
    assert (found.n, found.mean) == (3, pytest.approx(0.1))
    assert found.std == pytest.approx(0, abs=1e-12)  # what the seeds do to both has gone
    assert paired_difference({1: 0.1}, {2: 0.3}) == MeanInterval(0, None)


def test_nineteen_intervals_of_twenty_hold_the_mean() -> None:
    """Coverage of 4,000 samples of three normal values: 95% within four standard errors of the estimate (0.34%)."""
    rng = random.Random(5)
    held = 0
    for _ in range(4000):
        found = mean_interval([rng.gauss(3, 2) for _ in range(3)])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 3 <= found.high
    assert held / 4000 == pytest.approx(0.95, abs=0.014)
