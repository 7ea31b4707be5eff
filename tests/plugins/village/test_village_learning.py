"""The recipe of the village: it runs from user to gradient, and its policy reads what its user says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import callwright as cw
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe

pytest.importorskip("torch", reason="training needs the extra 'train'")
SHORT = [
    "trainer.steps=3",
    "trainer.prompts=2",
    "trainer.group=8",
    "trainer.evaluate_every=0",
    "trainer.evaluation_tasks=2",
    "trainer.warm_start.steps=60",
    "trainer.warm_start.count=150",
    "trainer.warm_start.batch=12",
    "corpus.evaluation_size=2",
]


def test_the_recipe_is_of_episodes_that_are_paid_for_their_end_state() -> None:
    pipeline = build_pipeline(load_recipe("village-cpu"))
    assert pipeline.corpus.name == "village-v1"
    assert pipeline.reward.name == "state"
    assert not pipeline.conditions.limits.single


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run in this process."""
    folder = tmp_path_factory.mktemp("village") / "here"
    cw.train("village-cpu", output=folder, overrides=SHORT)
    return folder


@pytest.mark.slow
def test_it_runs_and_what_users_and_tools_say_carries_no_loss(here: Path) -> None:
    rows = [json.loads(line) for line in (here / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 3
    assert all(0 <= row["reward"] <= 1 and row["environment_tokens"] > 0 and row["turns"] > 2 for row in rows)
    assert all(set(row["stops"]) <= {"answered", "unparsed", "assistant_turns", "user_turns", "tokens"} for row in rows)
    said = (here / "rollouts.jsonl").read_text(encoding="utf-8")
    assert "That is not done yet." in said


@pytest.mark.slow
def test_users_and_composed_worlds_in_other_processes_give_the_same_bytes(here: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    cw.train("village-cpu", output=there, overrides=[*SHORT, "trainer.executor=process", "trainer.workers=2"])
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
