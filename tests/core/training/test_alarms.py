"""The alarms: each is raised by rows beyond its threshold, by none before, and a healthy run raises none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callwright.training.alarms import ALARMS, Watch, alarms_of, not_finite, written
from callwright.training.truncation import CUT

Rows = list[dict[str, Any]]


def healthy(step: int) -> dict[str, Any]:
    """A row as of a run of the demo: entropy falls to a fifth, the KL rises to 0.8, half of the groups get equal."""
    share = min(1.0, step / 40)
    return {
        "step": step,
        "reward": 0.3 + 0.5 * share,
        "reward_std": 0.3,
        "zero_variance": 0.5 * share,
        "truncated": 0.05,
        "rollouts": 96,
        "masked": 8,
        "kl": 0.8 * share,
        "entropy": 0.25 - 0.2 * share,
    }


def course(spoil: Callable[[int, dict[str, Any]], object], begin: int = 21, steps: int = 50) -> Rows:
    """A healthy run that something happens to from a step on."""
    rows = [healthy(step) for step in range(1, steps + 1)]
    for row in rows[begin - 1 :]:
        spoil(row["step"], row)
    return rows


def said(rows: Rows, **options: Any) -> list[str | None]:
    watch = Watch(**options)
    return [watch.look(row).text for row in rows]


#: What spoils a run, how many steps later the alarm is due, and a word of it; then what is just not enough.
SPOILT: dict[str, tuple[dict[str, Any], int, str, dict[str, Any]]] = {
    "masked": ({"masked": 49}, 3, "of the 288 samples of the last 3 steps are masked", {"masked": 48}),
    "equal_rewards": ({"reward_std": 0.0}, 10, "all samples of each of the last 10", {"reward_std": 1e-3}),
    "equal_groups": ({"zero_variance": 1.0}, 10, "the samples of each prompt", {"zero_variance": 0.99}),
    "cut_off": ({"truncated": 0.25}, 2, "were cut off by a limit of tokens", {"truncated": CUT}),
    "entropy": ({"entropy": 0.0}, 9, "the entropy is gone", {"entropy": 0.024}),
    "kl": ({"kl": 8.0}, 2, "the policy has left its reference", {"kl": 1.99}),
}


def test_every_alarm_is_tried() -> None:
    assert {rule.name for rule in ALARMS} == SPOILT.keys()
    assert all(rule.threshold > 0 and rule.window > 0 for rule in ALARMS)
    assert [rule.name for rule in ALARMS if rule.stops] == ["masked"]


@pytest.mark.parametrize("name", SPOILT)
def test_an_alarm_is_raised_beyond_its_threshold_and_not_at_it(name: str) -> None:
    bad, due, words, nearly = SPOILT[name]
    texts = said(course(lambda _, row: row.update(bad)))
    first = next(place for place, text in enumerate(texts) if text is not None)
    assert first == 20 + due - 1, "counted from the first spoilt step"
    assert words in str(texts[first])
    assert said(course(lambda _, row: row.update(nearly))) == [None] * 50


def test_a_healthy_run_raises_none() -> None:
    assert said(course(lambda *_: None)) == [None] * 50


def test_only_mostly_masked_steps_in_a_row_end_a_run() -> None:
    watch = Watch()
    stops = []
    for row in course(lambda step, row: row.update(masked=90 if step % 3 else 0)):
        stops.append(watch.look(row).stop)
    assert stops == [None] * 50, "every third step is healthy"
    watch = Watch()
    found = [watch.look(row) for row in course(lambda _, row: row.update(masked=90))]
    assert [one.stop is not None for one in found] == [False] * 22 + [True] * 28
    assert str(found[22].stop) in str(found[22].text)


def test_samples_that_the_recipe_masks_for_being_cut_off_are_no_failures_of_the_machinery() -> None:
    assert said(course(lambda _, row: row.update(masked=90, masked_cut=90))) == [None] * 50


def test_rows_without_a_figure_raise_nothing() -> None:
    assert said([{"step": step, "reward": None} for step in range(1, 40)]) == [None] * 39
    assert said(course(lambda _, row: row.update(kl=None, entropy=None, zero_variance=None))) == [None] * 50


def test_an_alarm_is_news_once_and_again_after_it_was_gone() -> None:
    watch = Watch()
    rows = course(lambda step, row: row.update(kl=8.0 if step < 28 or step > 40 else 0.5))
    assert [row["step"] for row in rows if watch.look(row).news] == [22, 42]


def test_a_watch_goes_on_where_another_stopped() -> None:
    rows = course(lambda step, row: row.update(kl=9.0, entropy=0.0, reward_std=0.0))
    rows[30]["not_finite"] = rows[31]["not_finite"] = rows[32]["not_finite"] = not_finite(1, 1, ["a"], ["loss nan"])
    whole = Watch()
    expected = [whole.look(row) for row in rows]
    assert expected[-1].text is not None
    for stopped in range(50):
        watch = Watch(rows[:stopped])
        assert [watch.look(row) for row in rows[stopped:]] == expected[stopped:], stopped


def test_alarms_of_groups_are_only_for_algorithms_that_compare_in_groups() -> None:
    class Compares:
        smallest_group = 2

    assert {rule.name for rule in alarms_of(Compares())} - {rule.name for rule in alarms_of(object())} == {
        "equal_groups"
    }


def test_steps_in_a_row_that_are_not_finite_end_a_run_and_it_has_as_many_again() -> None:
    bad = not_finite(1, 1, ["train-3", "train-8"], ["loss inf, gradient norm nan"])
    ill = {5, 7, 8, 10, 11, 12, 13, 14, 15}
    rows = [{**healthy(step), **({"not_finite": bad} if step in ill else {})} for step in range(1, 17)]
    watch = Watch(limit=3)
    found = {row["step"]: watch.look(row) for row in rows}
    assert {step for step, one in found.items() if one.text} == ill
    assert {step for step, one in found.items() if one.stop} == {12, 15}
    reason = str(found[12].stop)
    assert reason.startswith("3 steps in a row were not finite, and their updates were left out (step 10: loss inf, ")
    assert "prompts train-3, train-8" in reason
    assert str(found[5].text).startswith("a step was not finite, and its update was left out (step 5: loss inf, ")


def test_what_is_written_has_no_number_that_is_not_finite() -> None:
    nan, inf = float("nan"), float("inf")
    row = {"step": 1, "loss": nan, "scores": {"a": inf, "b": 0.5}, "found": ["nan", -inf], "none": None, "flag": True}
    assert written(row) == {
        "step": 1,
        "loss": None,
        "scores": {"a": None, "b": 0.5},
        "found": ["nan", None],
        "none": None,
        "flag": True,
    }
