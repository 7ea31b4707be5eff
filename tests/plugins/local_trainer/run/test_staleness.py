"""Rollouts ahead of training: an independent sequential course, whatever time they take, and runs that are stopped."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve
from safetensors.torch import load_file

from callwright.errors import UsageError
from callwright.hookspecs import hookimpl
from callwright.options import read_options
from callwright.pipeline import Pipeline, create_trainer
from callwright.plugins import Registry
from callwright.training.rollouts.task_stream import TaskStream
from callwright.training.run_folder import Run
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Progress
from callwright.walk.reward import RewardComponent, Score
from callwright_plugins.local_trainer.learning.steps import adamw, learning_rate
from callwright_plugins.local_trainer.learning.update import descend, make_batch, prepare
from callwright_plugins.local_trainer.models.policy import set_weights, weights
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.run.training import make_policy
from callwright_plugins.local_trainer.sampling.episodes import longest, sample_groups, turn_limits
from callwright_plugins.local_trainer.sampling.rollouts import rewards_of

Pipelines = Callable[..., Pipeline]
#: Small steps far enough apart that other weights sample other completions.
MOVING = (
    "trainer.steps=4",
    "trainer.learning_rate=0.02",
    "trainer.warm_up=0",
    "trainer.evaluate_every=0",
    "trainer.evaluation_tasks=1",
    "trainer.warm_start.steps=1",
)


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = (
        Run(folder)
        if folder.exists()
        else Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    )
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


def files(folder: Path) -> dict[str, bytes]:
    names = ("metrics.jsonl", "rollouts.jsonl", "evaluation.json", "checkpoints/final/model.safetensors")
    return {name: (folder / name).read_bytes() for name in names}


def in_turn(pipeline: Pipeline, warmed: Path, staleness: int) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
    """The same course in one thread and in plain words: take old weights, sample, take the newest, train."""
    trainer: Any = create_trainer(pipeline.recipe, pipeline.registry)
    options: Options = trainer.options
    algorithm: Any = pipeline.algorithm
    seed = pipeline.conditions.seed
    policy = make_policy(pipeline, options)
    set_weights(policy.model, load_file(warmed))
    reference = evolve(policy, model=copy.deepcopy(policy.model)) if algorithm.kl_weight else None
    limits = turn_limits(pipeline, policy, options)
    optimiser = adamw(policy.model, options.weight_decay, options.betas)
    stream = TaskStream(pipeline.tasks(pipeline.train), options.depths, seed)
    history, rows = [copy.deepcopy(policy.model)], []
    for step in range(options.steps):
        sampling = evolve(policy, model=history[max(0, step - staleness)])
        kept: list[Any] = []
        for round_ in range(options.resampling_rounds + 1):
            groups = sample_groups(
                pipeline,
                sampling,
                stream.draw(options.prompts, step, round_),
                options,
                limits,
                (seed, "sampling", step, round_),
                Progress(step, options.steps),
                lambda _: None,
            )
            fit = algorithm.keep_groups(*rewards_of(groups)[:2]).tolist()
            kept += [group for group, good in zip(groups, fit, strict=True) if good]
            if len(kept) >= options.prompts:
                break
        rewards, valid, lengths = rewards_of(kept[: options.prompts])
        limit = longest(limits, options)
        advantages = algorithm.advantages(algorithm.shape_rewards(rewards, lengths, limit), valid)
        batch = make_batch(kept[: options.prompts], advantages, valid, limit)
        rate = learning_rate(step, options.steps, options.learning_rate, options.warm_up, "constant")
        prepared = prepare(policy, reference, algorithm, batch, options)
        rows.append({"round": round_, **descend(policy, algorithm, optimiser, prepared, options, rate)})
        history.append(copy.deepcopy(policy.model))
    return rows, weights(policy.model)


@pytest.mark.parametrize(
    ("staleness", "more"),
    [
        (0, ()),
        (1, ()),
        (2, ("trainer.correction=token_truncate", "trainer.mini_batches=2")),
        (1, ("algorithm={name='dapo', overlong_buffer=0}", "trainer.group=2")),
    ],
    ids=["in turn", "one behind", "corrected", "dapo"],
)
def test_it_is_the_course_in_turn(
    staleness: int, more: tuple[str, ...], tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    def made(*overrides: str) -> Pipeline:
        return make_pipeline(*MOVING, *more, *overrides, extra_rewards=[variety])

    warmed = train(made("trainer.steps=0"), tmp_path / "warm").checkpoints / "train-000000" / "model.safetensors"
    run = train(made(f"trainer.staleness={staleness}"), tmp_path / "run")
    rows = run.rows("metrics.jsonl")
    expected, final = in_turn(made(), warmed, staleness)
    for row, other in zip(rows, expected, strict=True):
        assert row["loss"] == other["loss"]
        assert row["resampling_rounds"] == other["round"]
        assert row["gradient_norm"] > 0
    found = load_file(run.checkpoints / "train-000004" / "model.safetensors")
    assert found.keys() == final.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in final.items())
    ages = [row.get("staleness") for row in rows]
    assert ages == ([None] * 4 if not staleness else [min(step, staleness) for step in range(4)])
    if "trainer.correction=token_truncate" in more:
        assert rows[0]["importance_max"] == pytest.approx(1, abs=1e-4)
        assert (rows[-1]["engine_kl"] > 1e-4) == bool(staleness)


class Waits(RewardComponent):
    """Finds rewards of the second step when the first one has been trained on, and not before."""

    name = "waits"

    def __init__(self, trained: threading.Event) -> None:
        self.trained = trained
        self.threads: set[str] = set()

    def score(self, attempt: Attempt) -> Score:
        self.threads.add(threading.current_thread().name)
        progress = attempt.conditions.progress
        if progress is not None and progress.step == 1 and self.trained is not None:
            assert self.trained.wait(60), "nothing was trained on while this was waited for"
        return Score(1.0, 0.0, 1.0)


def test_training_goes_on_while_rewards_are_waited_for(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, fresh_registry: Callable[[], Registry]
) -> None:
    trained = threading.Event()

    class Listens:
        @hookimpl
        def callwright_training_step(self, metrics: Any) -> None:
            trained.set()

    registry = fresh_registry()
    registry.add(Listens(), name="listens")
    waits = Waits(trained)
    options = (*MOVING, "trainer.staleness=1")
    late = train(make_pipeline(*options, extra_rewards=[variety, waits], registry=registry), tmp_path / "late")
    assert threading.current_thread().name not in waits.threads
    already = threading.Event()
    already.set()
    early = train(make_pipeline(*options, extra_rewards=[variety, Waits(already)]), tmp_path / "early")
    assert files(late.path) == files(early.path)


@pytest.mark.parametrize(
    "executor", ["thread", *(pytest.param(one, marks=pytest.mark.slow) for one in ("process", "ray"))]
)
def test_workers_make_the_same_bytes(
    executor: str, tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    if executor == "ray":
        pytest.importorskip("ray", reason="needs Ray: pip install 'callwright[ray]'")
    options = (*MOVING, "trainer.steps=3", "trainer.evaluate_every=1", "trainer.staleness=1")
    alone = train(make_pipeline(*options, extra_rewards=[variety]), tmp_path / "alone")
    workers = (f"trainer.executor={executor}", "trainer.workers=2")
    together = train(make_pipeline(*options, *workers, extra_rewards=[variety]), tmp_path / "together")
    assert files(alone.path) == files(together.path)


@pytest.mark.parametrize("stopped_after", [1, 3])
def test_a_stopped_run_ends_in_the_same_bytes(
    stopped_after: int,
    tmp_path: Path,
    make_pipeline: Pipelines,
    variety: RewardComponent,
    fresh_registry: Callable[[], Registry],
) -> None:
    class Stops:
        @hookimpl
        def callwright_training_step(self, metrics: Any) -> None:
            if metrics["step"] == stopped_after:
                raise KeyboardInterrupt

    options = (*MOVING, "trainer.staleness=2", "trainer.checkpoint_every=3")
    whole = train(make_pipeline(*options, extra_rewards=[variety]), tmp_path / "whole")
    registry = fresh_registry()
    registry.add(Stops(), name="stops")
    with pytest.raises(KeyboardInterrupt):
        train(make_pipeline(*options, extra_rewards=[variety], registry=registry), tmp_path / "stopped")
    again = train(make_pipeline(*options, extra_rewards=[variety]), tmp_path / "stopped")
    assert files(again.path) == files(whole.path)
    kept = sorted(path.name for path in (whole.checkpoints / "train-000003").glob("earlier-*"))
    assert kept == ["earlier-000001.safetensors"]  # which sample the fourth step, the last one
    assert not list((whole.checkpoints / "train-000004").glob("earlier-*"))


def test_an_error_of_a_batch_ends_the_run(tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent) -> None:
    class Breaks(RewardComponent):
        name = "breaks"

        def score(self, attempt: Attempt) -> Score:
            if attempt.conditions.progress is not None and attempt.conditions.progress.step == 2:
                raise UsageError("the third step is not to be had")
            return Score(1.0, 0.0, 1.0)

    options = (*MOVING, "trainer.staleness=1")
    with pytest.raises(Exception, match="the third step is not to be had"):
        train(make_pipeline(*options, extra_rewards=[variety, Breaks()]), tmp_path / "run")
    assert len(Run(tmp_path / "run").rows("metrics.jsonl")) == 2


def test_an_agent_is_refused() -> None:
    with pytest.raises(UsageError, match="'staleness' is above 0, but an 'agent' asks the policy that is trained"):
        read_options(Options, {"staleness": 1, "agent": "python agent.py"}, "the trainer 'local'")
