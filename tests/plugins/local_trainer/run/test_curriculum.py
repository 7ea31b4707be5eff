"""Curricula by depth, and the step that scheduled rewards are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from callwright.errors import RecipeError, UsageError
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.rollouts.task_stream import TaskStream, outlasts_the_run
from callwright.training.run_folder import Run
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Progress
from callwright.walk.reward import RewardComponent, Score
from callwright.walk.tasks import Task
from callwright_plugins import toolrl_rewards
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.trainer import LocalTrainer

Pipelines = Callable[..., Pipeline]


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
    return run


def depths(stream: TaskStream, steps: range, count: int = 4) -> list[int]:
    drawn: list[Task] = [task for step in steps for task in stream.draw(count, step)]
    return sorted(task.depth for task in drawn)


def test_stages_hold_one_after_the_other(small_corpus: Any) -> None:
    stream = TaskStream(small_corpus["train"], [5, 6], 0, [(2, [0, 1]), (3, [2])])
    assert depths(stream, range(2)) == [0] * 4 + [1] * 4
    assert depths(stream, range(2, 3)) == [2] * 4
    assert depths(stream, range(3, 6)) == [5] * 6 + [6] * 6


def test_after_the_last_stage_come_all_tasks_where_no_depths_are_listed(small_corpus: Any) -> None:
    stream = TaskStream(small_corpus["train"], None, 0, [(1, [3])])
    assert depths(stream, range(1)) == [3] * 4
    assert len(set(depths(stream, range(1, 12)))) > 3


def test_a_stream_without_stages_is_as_before(small_corpus: Any) -> None:
    one, other = (TaskStream(small_corpus["train"], [1, 2], 3, *stages) for stages in ((), ([],)))
    assert [one.draw(3, step, 1) for step in range(5)] == [other.draw(3, step, 1) for step in range(5)]


def test_a_depth_of_a_stage_that_is_not_there(small_corpus: Any) -> None:
    with pytest.raises(UsageError, match="'curriculum' asks for depth 9"):
        TaskStream(small_corpus["train"], [1], 0, [(3, [9])])


def test_shares_and_steps() -> None:
    options = Options(steps=40, curriculum=[{"until": 0.25, "depths": [0]}, {"until": 30, "depths": [1]}])
    assert [stage.last(40) for stage in options.curriculum] == [10, 30]
    whole = Options(steps=40, curriculum=[{"until": 1.0, "depths": [0]}])
    assert whole.curriculum[0].last(40) == 40


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.curriculum=[{until=0, depths=[1]}]", "a stage has at least one step"),
        ("trainer.curriculum=[{until=1.5, depths=[1]}]", "a share above 0 and up to 1.0"),
        ("trainer.curriculum=[{until=2, depths=[]}]", "at least 1 item"),
        ("trainer.curriculum=[{until=3, depths=[1]}, {until=0.5, depths=[2]}]", "must end after the one before"),
    ],
)
def test_wrong_stages_are_refused(override: str, message: str, make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline(override)
    with pytest.raises(RecipeError, match=message):
        create_trainer(pipeline.recipe, pipeline.registry)


@pytest.mark.parametrize(
    ("ends", "steps", "said"),
    [
        ([2, 4], 4, None),
        ([], 3, None),
        ([9], 0, None),
        ([5], 4, "stage 1 of 'curriculum' ends at step 5 and the run at step 4, so that 'depths' never hold;"),
        (
            [2, 1000, 2000],
            4,
            "stage 2 of 'curriculum' ends at step 1,000 and the run at step 4, so that the stages after",
        ),
    ],
)
def test_a_curriculum_that_goes_on_when_the_run_is_over(ends: list[int], steps: int, said: str | None) -> None:
    found = outlasts_the_run(ends, steps)
    assert found is None if said is None else found is not None and found.startswith(said)


@pytest.mark.parametrize(("until", "warned"), [("400", True), ("3", False), ("1.0", False)])
def test_it_is_warned_of_before_anything_is_trained(until: str, warned: bool, make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline(f"trainer.curriculum=[{{until={until}, depths=[0]}}]", "trainer.steps=3")
    trainer = create_trainer(pipeline.recipe, pipeline.registry)
    with capture_logs() as logged:
        assert trainer.check(pipeline.recipe, pipeline) == []
    assert [one["event"] for one in logged] == ["the curriculum outlasts the run"] * warned


def test_a_run_follows_its_curriculum(tmp_path: Path, make_pipeline: Pipelines) -> None:
    stages = "trainer.curriculum=[{until=1, depths=[0]}, {until=0.5, depths=[3]}]"
    run = train(make_pipeline(stages, "trainer.depths=[6]", "trainer.rollouts_per_step=6"), tmp_path)
    found = {row["step"]: row["depth"] for row in run.rows("rollouts.jsonl")}
    assert found == {1: 0, 2: 3, 3: 6, 4: 6}


def test_rewards_hear_the_step_again_after_a_stop(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Progress | None] = []

    class Listening(RewardComponent):
        name = "listening"

        def score(self, attempt: Attempt) -> Score:
            heard.append(attempt.progress)
            return Score(1.0, 0.0, 1.0)

    pipeline = make_pipeline("trainer.warm_start=0", "trainer.checkpoint_every=1", extra_rewards=[Listening()])
    train(pipeline, tmp_path / "whole")
    assert heard == [Progress(step, 4) for step in range(4) for _ in range(6)]
    heard.clear()
    with monkeypatch.context() as patched:
        stopped = iter([None, None])
        patched.setattr("callwright_plugins.local_trainer.run.training.collapse", lambda rows, window: next(stopped))
        with pytest.raises(StopIteration):
            train(pipeline, tmp_path / "stopped")
    train(pipeline, tmp_path / "stopped")
    assert [progress.step for progress in heard if progress][::6] == [0, 1, 2, 2, 3]


def test_a_scheduled_reward_moves_with_the_steps(tmp_path: Path, make_pipeline: Pipelines, fresh_registry: Any) -> None:
    """ToolRL's dynamic scale (section 5.2): the format reward lies in [-2 + p, 2 - p], p being the share of steps."""
    registry = fresh_registry()
    registry.add(toolrl_rewards, name="toolrl-rewards")
    pipeline = make_pipeline("reward=toolrl-dynamic-scale", "trainer.warm_start=0", registry=registry)
    run = train(pipeline, tmp_path)
    found = {row["step"]: row["scores"]["format"] for row in run.rows("rollouts.jsonl")}
    assert [found[step]["value"] for step in range(1, 5)] == pytest.approx([-2, -1.75, -1.5, -1.25])
