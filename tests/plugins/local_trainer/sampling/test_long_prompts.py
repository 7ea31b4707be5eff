"""Tasks whose prompts are too long are left out and counted; a run ends only where none is short enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from callwright.commands.file_formats import schema_of
from callwright.errors import UsageError
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.run_folder import Run
from callwright.walk.limits import TurnLimits
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.run.training import make_policy
from callwright_plugins.local_trainer.sampling.prompts import PromptBound

Pipelines = Callable[..., Pipeline]


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


def lengths(pipeline: Pipeline, split: str) -> list[int]:
    policy = make_policy(pipeline, Options())
    return sorted(len(policy.prompt_ids(task, ())) for task in pipeline.tasks(split))


def test_a_run_goes_on_without_them(tmp_path: Path, make_pipeline: Pipelines) -> None:
    known = lengths(make_pipeline(), make_pipeline().train)
    most = known[len(known) // 2]
    assert known[0] <= most < known[-1]
    settings = (f"trainer.max_prompt_tokens={most}", "trainer.warm_start=0", "trainer.rollouts_per_step=6")
    run = train(make_pipeline(*settings), tmp_path / "a")
    policy, rows = make_policy(make_pipeline(), Options()), run.rows("rollouts.jsonl")
    assert len(rows) == 24  # none is missing: others were drawn
    tasks = {task.id: task for task in make_pipeline().tasks(make_pipeline().train)}
    assert all(len(policy.prompt_ids(tasks[row["task"]], ())) <= most for row in rows)
    counted = [row.get("prompts_too_long", 0) for row in run.rows("metrics.jsonl")]
    assert 0 < sum(counted) < 8
    evaluation = run.read_json("evaluation.json")
    beyond = sum(one > most for one in lengths(make_pipeline(), make_pipeline().evaluation))
    for part in (evaluation["before"], *evaluation["during"], evaluation["after"]):
        assert (part["n"], part["prompts_too_long"]) == (7 - beyond, beyond)
    for name, found in (("metrics", run.rows("metrics.jsonl")), ("evaluation", [evaluation])):
        for row in found:
            Draft202012Validator(schema_of(name)).validate(row)
    again = train(make_pipeline(*settings), tmp_path / "b")
    for name in ("metrics.jsonl", "rollouts.jsonl", "evaluation.json"):
        assert (run.path / name).read_bytes() == (again.path / name).read_bytes()


def test_what_leaves_no_room_in_the_model_is_left_out_by_itself(tmp_path: Path, make_pipeline: Pipelines) -> None:
    most = lengths(make_pipeline(), make_pipeline().train)[-1]
    run = train(
        make_pipeline(f"model.tiny.positions={most}", "trainer.warm_start=0", "trainer.prompts=20"), tmp_path / "a"
    )
    assert any("prompts_too_long" in row for row in run.rows("metrics.jsonl"))


def test_a_run_without_a_prompt_that_is_short_enough_says_so(tmp_path: Path, make_pipeline: Pipelines) -> None:
    with pytest.raises(
        UsageError, match=r"all 7 prompts of the split .* more than 3 tokens.*or raise max_prompt_tokens"
    ):
        train(make_pipeline("trainer.max_prompt_tokens=3", "trainer.warm_start=0"), tmp_path / "a")


def test_places_keep_their_depths(make_pipeline: Pipelines) -> None:
    """A place whose task is too long gets the same place of another draw; what stays too long is left out."""
    pipeline = make_pipeline()
    policy = make_policy(pipeline, Options())
    tasks = sorted(pipeline.tasks(pipeline.train), key=lambda task: len(policy.prompt_ids(task, ())))
    short, long = tasks[0], tasks[-1]
    bound = PromptBound(pipeline, policy, TurnLimits(), len(policy.prompt_ids(short, ())))
    asked: list[int] = []

    def drawn(round_: int) -> list[object]:
        asked.append(round_)
        return [short, long, long] if len(asked) < 3 else [long, short, long]

    found, count = bound.draw(drawn, 2)  # type: ignore[arg-type]
    assert found == [short, short]
    assert count == 2
    assert asked[0] == 2
    assert len(set(asked)) == len(asked)
    with pytest.raises(UsageError, match="all prompts of 21 draws of 1 tasks"):
        bound.draw(lambda _: [long], 0)


def test_without_a_bound_nothing_is_read(make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline()
    bound = PromptBound(pipeline, make_policy(pipeline, Options()), TurnLimits(), None)
    assert bound.most is None
    assert bound.within(pipeline.tasks(pipeline.train), "train") == list(pipeline.tasks(pipeline.train))
