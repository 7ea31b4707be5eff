"""The difficulty of tasks by the attempts of an evaluation, and the bands that are made of it."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.errors import UsageError
from callwright.measuring.difficulty import Band, Difficulty, difficulties, solved_share, with_difficulty
from callwright.training.verdicts import Verdict


def verdict(task: str, sample: int, right: bool, masked: bool = False) -> Verdict:
    return Verdict(task, 1, "single", answer=right, valid=right, sample=sample, masked=masked)


def test_attempts_that_count_are_told_by_task_with_the_spread_of_their_rewards() -> None:
    verdicts = [verdict("a", n, n < 1) for n in range(4)] + [verdict("b", 0, True), verdict("b", 1, False, masked=True)]
    verdicts.append(verdict("c", 0, False, masked=True))
    rewards = {("a", 0): 1.0, ("a", 1): 0.0, ("a", 2): 0.0, ("a", 3): 0.2}
    found = difficulties(verdicts, rewards, "mine")
    assert {name: (one.attempts, one.right, one.solved) for name, one in found.items()} == {
        "a": (4, 1, 0.25),
        "b": (1, 1, 1.0),
    }
    assert found["a"].to_json() == {
        "attempts": 4,
        "right": 1,
        "pass@1": 0.25,
        "pass@4": 1.0,
        "reward": {"mean": 0.3, "deviation": pytest.approx(0.4760952), "least": 0.0, "most": 1.0},
        "solver": "mine",
    }
    assert found["b"].to_json() == {"attempts": 1, "right": 1, "pass@1": 1.0, "solver": "mine"}


def test_a_row_keeps_its_facts_and_a_second_measurement_takes_the_place_of_the_first() -> None:
    row = with_difficulty({"id": "a", "facts": {"kind": "task"}}, Difficulty(4, 1))
    assert row["facts"]["kind"] == "task"
    assert solved_share(row["facts"]) == 0.25
    assert solved_share(with_difficulty(row, Difficulty(2, 2))["facts"]) == 1.0


@pytest.mark.parametrize("facts", [None, {}, {"difficulty": 0.5}, {"difficulty": {"pass@1": True}}])
def test_what_nobody_measured_is_in_no_band(facts: Any) -> None:
    assert solved_share(facts) is None
    assert list(Band().places([{"facts": facts}])) == []


def test_a_band_has_both_its_bounds() -> None:
    rows = [{"facts": {"difficulty": {"pass@1": share}}} for share in (0.0, 0.1, 0.5, 0.9, 1.0)]
    assert list(Band(0.1, 0.9).places(rows)) == [1, 2, 3]
    for bounds in ((-0.1, 1), (0, 1.1), (0.5, 0.4), (True, 1.0)):
        with pytest.raises(UsageError):
            Band(*bounds)
