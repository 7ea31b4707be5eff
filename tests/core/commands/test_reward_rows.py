"""Rows of rewards are what json would write, and their summary is exact."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.commands import RewardWriter, Tally
from callwright.commands.scoring.reward_rows import EvidenceKept
from callwright.walk import WeightedScore

_TEXT = st.text(max_size=12)
_EVIDENCE = st.builds(
    cw.Evidence, _TEXT, _TEXT, call=st.none() | st.integers(0, 9), path=_TEXT, expected=_TEXT, found=_TEXT
)
_VALUES = st.floats(allow_nan=False, allow_infinity=False)
_WEIGHTED = st.builds(
    WeightedScore,
    st.builds(cw.Score, _VALUES, _VALUES, _VALUES, st.lists(_EVIDENCE, max_size=3).map(tuple)),
    _VALUES,
    st.booleans(),
)
_REWARDS = st.builds(
    cw.Reward,
    st.none() | _VALUES,
    st.dictionaries(_TEXT, _WEIGHTED, max_size=4),
    st.sampled_from(["format", "parse", "execution", "answer", "done"]),
    st.none() | _TEXT,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(st.text() | st.integers(), _REWARDS), max_size=4))
def test_a_line_is_what_json_would_write(pairs: list[tuple[str | int, cw.Reward]]) -> None:
    writer = RewardWriter()
    for row_id, reward in [*pairs, *pairs]:  # the second time from what is remembered
        assert writer.line(row_id, reward) == json.dumps({"id": row_id, **reward.to_json()}) + "\n"


def test_a_line_does_not_hang_on_the_lines_before_it() -> None:
    writer = RewardWriter()
    for value in (0.0, -0.0, 0, 1.0, 1):  # equal numbers, of several texts
        reward = cw.Reward(0.5, {"a": WeightedScore(cw.Score(value), 1.0)})
        assert writer.line("a", reward) == RewardWriter().line("a", reward)


def test_what_a_writer_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RewardWriter, "_LIMIT", 10)
    writer = RewardWriter()
    for number in range(100):
        closed = WeightedScore(cw.Score(0.0, evidence=(cw.Evidence("gate_closed", "x"),)), 1.0, closed=True)
        reward = cw.Reward(1.0, {"a": WeightedScore(cw.Score(number / 100), 1.0), "b": closed})
        assert json.loads(writer.line(number, reward))["scores"]["a"]["value"] == number / 100
    assert len(writer._heads) <= 10
    assert len(writer._shared) <= 10


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(_REWARDS, max_size=4), st.sampled_from(["lost", "none"]))
def test_evidence_that_is_not_kept_is_an_empty_list(rewards: list[cw.Reward], kept: EvidenceKept) -> None:
    writer = RewardWriter(kept)
    for reward in [*rewards, *rewards]:
        row = {"id": 1, **reward.to_json()}
        for name, weighted in reward.scores.items():
            if kept == "none" or weighted.closed or weighted.score.full:
                row["scores"][name]["evidence"] = []  # type: ignore[index]
        assert writer.line(1, reward) == json.dumps(row) + "\n"


def test_evidence_that_is_no_text_is_written_as_json_would() -> None:
    odd = cw.Evidence("code", "reason", call=True, path=("a", 1), expected=2.5)  # type: ignore[arg-type]
    reward = cw.Reward(0.0, {"a": WeightedScore(cw.Score(0.0, evidence=(odd,)), 1.0)})
    assert RewardWriter().line(1, reward) == json.dumps({"id": 1, **reward.to_json()}) + "\n"


def test_masked_rows_take_no_part_in_means() -> None:
    tally = Tally()
    full = {"a": WeightedScore(cw.Score(1.0), 1.0)}
    tally.add(cw.Reward(1.0, full))
    tally.add(cw.Reward(None, {"a": WeightedScore(cw.Score(0.0), 1.0)}, masked="down"))
    assert tally.to_json()["mean_total"] == 1.0
    assert tally.to_json()["components"]["a"]["mean"] == 1.0
    assert tally.sentence() == "2 rows scored, 1 of them masked, 0 bad, mean total 1.0000"


def test_ranges_are_those_over_all_rows_whatever_their_order() -> None:
    ranges = [(0.0, 0.0), (0.0, 1.0), (-64.0, 0.0)]
    rewards = [cw.Reward(0.0, {"a": WeightedScore(cw.Score(0.0, low, high), 1.0)}) for low, high in ranges]
    for order in (rewards, rewards[::-1]):
        alone, together = Tally(), Tally()
        for reward in order:
            part = Tally()
            part.add(reward)
            alone.add(reward)
            together.merge(part)
        for found in (alone, together, Tally.from_state(json.loads(json.dumps(together.to_state())))):
            assert found.to_json()["components"]["a"] == {"mean": 0.0, "low": -64.0, "high": 1.0, "weight": 1.0}


def test_it_does_not_matter_who_added_what_first() -> None:
    rng = random.Random(0)
    rewards = [
        cw.Reward(value, {"a": WeightedScore(cw.Score(value), 1.0)}) for value in (rng.random() for _ in "x" * 200)
    ]
    alone, parts = Tally(), [Tally() for _ in range(3)]
    for position, reward in enumerate(rewards):
        alone.add(reward)
        parts[position % 3].add(reward)
    together = Tally()
    for part in reversed(parts):
        together.merge(part)
    assert together.to_json() == alone.to_json()
