"""Rows of rollouts: which are drawn, and what is kept of values."""

from __future__ import annotations

import random

import callwright as cw
from callwright.training.rollouts.written import Keeping, calls_of, jsonable


def test_whole_steps_are_written_whole_and_others_drawn() -> None:
    keeping = Keeping(per_step=2, whole_step_every=5)
    every = [(group, sample) for group in range(3) for sample in range(4)]
    for step in (1, 5, 10):
        assert keeping.places(step, [4, 4, 4], random.Random(0)) == every
    drawn = keeping.places(2, [4, 4, 4], random.Random(0))
    assert len(drawn) == 2
    assert drawn == sorted(drawn)
    assert set(drawn) < set(every)
    assert keeping.places(2, [4, 4, 4], random.Random(0)) == drawn
    assert Keeping(per_step=99).places(1, [2, 1], random.Random(0)) == [(0, 0), (0, 1), (1, 0)]


def test_values_are_kept_up_to_a_size() -> None:
    task = cw.corpus("toolworld-mini-v1")["evaluation"][16]
    parser = cw.parser("json")
    assert task.program is not None
    attempt = cw.Attempt(task, parser.render(task.program), parser)
    whole = list(calls_of(attempt))
    assert len(whole) == len(task.program.calls)
    assert all("value" in call and call["kind"] == "ok" for call in whole)
    cut = list(calls_of(attempt, 3))
    assert [sorted(call) for call in cut] == [["arguments", "call", "kind", "size", "tool", "turn"]] * len(whole)
    assert all(call["size"] > 3 for call in cut)
    assert list(calls_of(attempt, 10**9)) == whole


def test_what_is_no_json_says_so() -> None:
    assert jsonable({"a": [1, None]}) == {"a": [1, None]}
    assert jsonable(float("nan"))["why"] == "ValueError"
