"""Runs that raise each alarm, in the row, on the terminal once and in the report, and healthy ones that raise none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from callwright.errors import Abstention, RunError
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.run_folder import Run
from callwright.walk.attempt import Attempt
from callwright.walk.reward import RewardComponent, Score
from callwright_plugins.local_trainer.run import checkpoints, training
from callwright_plugins.report.page import write_report

Pipelines = Callable[..., Pipeline]

SETTINGS = ("trainer.warm_start=0", "trainer.evaluate_every=0", "trainer.steps=14", "trainer.max_new_tokens=6")


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


def without_cut_offs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row says that completions were cut off, as all of these tiny ones are."""
    describe = training.describe
    monkeypatch.setattr(training, "describe", lambda groups: {**describe(groups), "truncated": 0.0})


class Flat(RewardComponent):
    """The same for everything."""

    name = "flat"

    def score(self, attempt: Attempt) -> Score:
        return Score(0.5, 0.0, 1.0)


class Judge(RewardComponent):
    """A judge that may be down, for all but every tenth completion."""

    name = "judge"

    def __init__(self) -> None:
        self.down: set[int] = set()
        self.asked = 0

    def score(self, attempt: Attempt) -> Score:
        self.asked += 1
        step = 0 if attempt.progress is None else attempt.progress.step + 1
        if step in self.down and self.asked % 10:
            raise Abstention("the judge does not answer")
        return Score(len(set(attempt.completion.token_ids)) / 12, 0.0, 1.0)


def test_a_healthy_run_raises_nothing(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cut_offs(monkeypatch)
    with structlog.testing.capture_logs() as logs:
        run = train(make_pipeline(*SETTINGS, extra_rewards=[variety]), tmp_path)
    assert [row["alarm"] for row in run.rows("metrics.jsonl")] == [None] * 14
    assert [one for one in logs if one["event"] == "alarm"] == []
    assert "Alarm in the last step" not in write_report(run).read_text(encoding="utf-8")


def test_rewards_that_are_all_equal(tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch) -> None:
    without_cut_offs(monkeypatch)
    with structlog.testing.capture_logs() as logs:
        run = train(make_pipeline(*SETTINGS, "seed=1", extra_rewards=[Flat()]), tmp_path)
    rows = run.rows("metrics.jsonl")
    assert [row["alarm"] is not None for row in rows] == [False] * 9 + [True] * 5
    assert "all samples of each of the last 10 steps had equal rewards" in rows[-1]["alarm"]
    assert [one["step"] for one in logs if one["event"] == "alarm"] == [10]
    assert "Alarm in the last step, 14: all samples" in write_report(run).read_text(encoding="utf-8")


def test_an_entropy_that_is_gone_and_a_policy_that_left_its_reference(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reward that is the higher the nearer all tokens are to one, so that every group says which way it goes. All of
    eight seeds that were tried end there, after 39 to 53 steps.
    """

    class Near(RewardComponent):
        name = "near"

        def score(self, attempt: Attempt) -> Score:
            ids = attempt.completion.token_ids
            return Score(sum(1 - min(abs(one - 5), 100) / 100 for one in ids) / len(ids), 0.0, 1.0)

    without_cut_offs(monkeypatch)
    rate = ("trainer.learning_rate=0.01", "trainer.warm_up=0", "algorithm.kl_weight=1e-6", "trainer.group=16")
    steps = (*SETTINGS, "trainer.steps=60", *rate, "seed=1")
    with structlog.testing.capture_logs() as logs:
        rows = train(make_pipeline(*steps, extra_rewards=[Near()]), tmp_path).rows("metrics.jsonl")
    said = [one["reason"] for one in logs if one["event"] == "alarm"]
    assert sum("the policy has left its reference" in reason for reason in said) >= 1
    assert sum("the entropy is gone" in reason for reason in said) >= 1
    assert rows[0]["alarm"] is None


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("timings.jsonl", "training.pt", "digests.json", "report.html")
    }


def test_a_judge_that_is_down_stops_the_run_which_then_goes_on_as_if_nothing_had_been(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cut_offs(monkeypatch)
    judge = Judge()
    pipeline = make_pipeline(*SETTINGS, "trainer.checkpoint_every=4", "trainer.group=8", extra_rewards=[judge])
    train(pipeline, tmp_path / "whole")
    judge.down = {6, 7, 8}
    with pytest.raises(RunError, match="stopped after step 8: ") as raised:
        train(pipeline, tmp_path / "down")
    assert "samples of the last 3 steps are masked" in str(raised.value)
    assert raised.value.exit_status == 1
    run = Run.open(tmp_path / "down")
    assert [row["masked"] > 8 for row in run.rows("metrics.jsonl")] == [False] * 5 + [True] * 3
    newest = checkpoints.newest(run.checkpoints)
    assert newest is not None
    assert newest.name == "train-000005", "of the last step before it"
    page = write_report(run).read_text(encoding="utf-8")
    assert "Alarm in the last step, 8: " in page
    assert "samples of the last 3 steps are masked" in page
    with pytest.raises(RunError, match="stopped after step 8: "):
        train(pipeline, tmp_path / "down")
    judge.down = set()
    train(pipeline, tmp_path / "down")
    assert hashes(tmp_path / "down") == hashes(tmp_path / "whole")


def test_two_steps_without_the_judge_do_not_stop_a_run(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cut_offs(monkeypatch)
    judge = Judge()
    judge.down = {2, 3, 5, 6}
    run = train(make_pipeline(*SETTINGS, "trainer.steps=7", "trainer.group=8", extra_rewards=[judge]), tmp_path)
    rows = run.rows("metrics.jsonl")
    assert [row["masked"] > 8 for row in rows] == [False, True, True, False, True, True, False]
    assert [row["alarm"] for row in rows] == [None] * 7
