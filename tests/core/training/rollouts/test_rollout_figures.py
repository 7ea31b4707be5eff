from __future__ import annotations

from typing import Any

import pytest

from callwright.training.rollouts.description import Observed, described, zero_variance
from callwright.training.rollouts.draws import python_generator, seed_of
from callwright.training.rollouts.learning_rates import learning_rate


def one(**figures: Any) -> Observed:
    usual: dict[str, Any] = {
        "total": 1.0, "scores": {"format": 1.0}, "masked_cut": False, "depth": 2, "executed": True, "answered": True,
        "calls": 2, "length": 10, "truncated": False, "thought_words": None, "tools": {"calls": {"Add": 2}},
    }  # fmt: skip
    return Observed(**{**usual, **figures})


def test_masked_rollouts_are_counted_and_left_out_of_every_mean_of_rewards() -> None:
    row = described([one(), one(total=0.0, answered=False, calls=None), one(total=None, masked_cut=True, length=40)])
    assert (row["reward"], row["reward_std"], row["answered"], row["parsed"]) == (0.5, 0.5, 0.5, 0.5)
    assert (row["rollouts"], row["masked"], row["masked_cut"], row["tokens"], row["length"]) == (3, 1, 1, 60, 20)
    assert row["calls"] == 2
    assert "undeclared" not in row


def test_depth_one_stands_in_no_mean_of_several_calls_and_nothing_is_none() -> None:
    row = described([one(depth=1, total=None)])
    assert row["reward"] is None
    assert row["multi_call"] == dict.fromkeys(("parsed", "executed", "answered", "calls", "calls_due"))
    assert described([one(depth=1), one()])["multi_call"]["calls_due"] == 2


def test_undeclared_failures_of_tools_are_added_up() -> None:
    loud = one(tools={"calls": {"Add": 3}, "undeclared": {"Add": {"failures": 1, "account": "line 3"}}})
    found = described([loud, one()])["undeclared"]
    assert found == {"Add": {"calls": 5, "failures": 1, "share": 0.2, "alarming": True, "account": "line 3"}}


def test_groups_without_a_difference() -> None:
    assert zero_variance([[0.5, 0.5, None], [0.0, 1.0, 1.0]]) == 0.5
    assert zero_variance([[None, None]]) is None


def test_numbers_hang_on_every_part_of_the_purpose() -> None:
    seeds = {seed_of(7, "sampling", 1), seed_of(7, "sampling", 2), seed_of(8, "sampling", 1), seed_of(7, "tasks", 1)}
    assert len(seeds) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert python_generator(1, "a").random() == python_generator(1, "a").random()


def test_learning_rates_rise_and_fall() -> None:
    assert [learning_rate(step, 6, 1.0, 2, "linear", 0.0) for step in range(6)] == pytest.approx(
        [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    )
    assert learning_rate(4, 6, 1.0, 2, "cosine", 0.2) == pytest.approx(0.6)
    assert learning_rate(5, 6, 1.0, 2, "constant") == 1.0
