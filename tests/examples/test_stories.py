"""The stories run as a user would run them, reach their goals, and reach them because of what is done in them."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.walk.limits import TurnLimits

STORIES = Path(__file__).resolve().parents[2] / "sdk_examples" / "stories"

#: What time brings in each story, or its user tells when asked, as it is printed.
NEWS = {
    "auction_won.py": "You have won 'Comet Armchair' (L00083) for 28800 cents",
    "late_order.py": "Your order O00003 is delivered",
    "limit_order.py": "to buy NIAO is filled; 20 shares traded",
    "car_charged.py": "The car is charged and unplugged",
    "subscription_cancelled.py": "The token of customer C00019 has expired",
    "trip_rebooked.py": "To filip.selby@example.com.",
    "complaint_refunded.py": "The refund R00043 of 31589 cents for P00331 is with the customer.",
    "meeting_moved.py": "Say it in #design.",
    "dinner_budgeted.py": "has delivered your order O00025 from Royal Oven",
    "warm_home.py": "You have arrived at Home",
}
SEVERAL_APPS = ("trip_rebooked.py", "complaint_refunded.py", "meeting_moved.py", "dinner_budgeted.py", "warm_home.py")


def test_every_story_is_tested() -> None:
    assert {path.name for path in STORIES.glob("*.py")} == {*NEWS, "telling.py"}


@cache
def loaded(name: str) -> dict[str, Any]:
    sys.path.insert(0, str(STORIES))
    try:
        return {**runpy.run_path(str(STORIES / "telling.py")), **runpy.run_path(str(STORIES / name))}
    finally:
        sys.path.remove(str(STORIES))


@cache
def played(name: str) -> cw.Attempt:
    found = loaded(name)
    attempt: cw.Attempt = found["play"](found["STORY"])[0].attempt
    return attempt


def score(task: cw.Task, turns: list[str]) -> float | None:
    conditions = cw.Conditions(limits=TurnLimits(assistant_turns=99, user_turns=99))
    attempt = cw.Attempt(task, turns, cw.parser("hermes"), conditions)
    return cw.reward("state").score_attempt(attempt).total


@pytest.mark.parametrize("name", NEWS)
def test_a_story_is_told_and_ends_well(name: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(STORIES / name)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.rstrip().splitlines()
    assert lines[-1] == "The goal is reached."
    assert NEWS[name] in " ".join(" ".join(lines).split())


def test_half_of_the_stories_are_over_several_apps_with_a_user_who_holds_something_back() -> None:
    assert {name for name in NEWS if "+" in loaded(name)["STORY"].environment} == set(SEVERAL_APPS)
    for name in SEVERAL_APPS:
        attempt = played(name)
        assert attempt.stop == "answered"
        first, *later = [turn for turn in attempt.turns if not turn.calls]
        assert first.completion.text != later[-1].completion.text
        knows = loaded(name)["STORY"].user["knows"]
        assert not any(value in loaded(name)["STORY"].query for value in knows.values())


@pytest.mark.parametrize("name", NEWS)
def test_saying_the_same_and_doing_nothing_misses_the_goal(name: str) -> None:
    attempt = played(name)
    assert score(attempt.task, [turn.completion.text for turn in attempt.turns]) == 1
    assert score(attempt.task, [turn.completion.text for turn in attempt.turns if not turn.calls]) != 1


@pytest.mark.parametrize("name", NEWS)
def test_each_call_that_changed_something_was_needed(name: str) -> None:
    attempt = played(name)
    writes = [
        (number, place)
        for number, turn in enumerate(attempt.turns)
        if turn.trace is not None
        for place, record in enumerate(turn.trace.records)
        if record.outcome.executed and not attempt.task.tools[record.tool].read_only
    ]
    assert writes
    for number, place in writes:
        texts = []
        for at, turn in enumerate(attempt.turns):
            calls = [call for here, call in enumerate(turn.calls) if (at, here) != (number, place)]
            said = turn.completion.text if not turn.calls or len(calls) == len(turn.calls) else None
            if said is None and calls:
                numbered = tuple(cw.Call(at, call.tool, call.arguments) for at, call in enumerate(calls))
                said = cw.parser("hermes").render(cw.Program(numbered, "all" if len(numbered) > 1 else "one"))
            texts += [] if said is None else [said]
        assert score(attempt.task, texts) != 1, attempt.turns[number].calls[place]
