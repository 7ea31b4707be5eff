"""The alarm on synthetic series of metrics."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.training.rollouts.collapse import collapse


def series(**ranges: tuple[float, float]) -> list[dict[str, Any]]:
    """40 rows; each quantity goes from its first to its second value."""
    rows = []
    for step in range(40):
        multi = {key: start + (end - start) * step / 39 for key, (start, end) in ranges.items()}
        rows.append({"step": step, "multi_call": {"calls_due": 3.5, **multi}})
    return rows


COLLAPSE = {"executed": (0.1, 1.2), "answered": (0.02, 0.03), "calls": (3.4, 0.8)}


def test_a_collapse_is_said_in_words() -> None:
    said = collapse(series(**COLLAPSE), 10)
    assert said is not None
    assert said.startswith("the policy is collapsing into safe calls: ")
    for figure in ("1.1 calls (from 1.8)", "3.5 are due", "3% of the answers"):
        assert figure in said


def test_a_partial_collapse_is_said_too() -> None:
    """As in a run of the demo with 88% synonyms, steps 80 to 120."""
    said = collapse(series(executed=(0.3, 0.65), answered=(0.12, 0.07), calls=(3.1, 2.1)), 15)
    assert said is not None


@pytest.mark.parametrize(
    "healthy",
    [
        {"executed": (0.1, 0.5)},  # executions do not succeed
        {"answered": (0.02, 0.9)},  # answers rise
        {"answered": (0.8, 0.8)},  # answers are right, if flat
        {"calls": (3.4, 3.2)},  # programs keep their length
    ],
)
def test_without_one_of_its_signs_there_is_no_alarm(healthy: dict[str, tuple[float, float]]) -> None:
    assert collapse(series(**{**COLLAPSE, **healthy}), 10) is None


def test_it_waits_for_two_windows() -> None:
    rows = series(executed=(0.9, 0.9), answered=(0.0, 0.0), calls=(1.0, 1.0))
    assert collapse(rows[:19], 10) is None
    assert collapse(rows[:20], 10) is not None


def test_steps_without_multi_call_tasks_are_skipped() -> None:
    rows = series(**COLLAPSE)
    for row in rows[1::2]:
        row["multi_call"] = dict.fromkeys(("executed", "answered", "calls", "calls_due"))
    assert collapse(rows, 10) is not None
    nothing = [{"multi_call": dict.fromkeys(("executed", "answered", "calls", "calls_due"))}] * 30
    assert collapse(nothing, 10) is None
