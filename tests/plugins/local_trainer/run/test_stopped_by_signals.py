"""SIGTERM, SIGHUP and Ctrl-C: no finished step is lost, none is torn, and the run ends in the same bytes."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from callwright.machines.interrupts import ENDING, Interrupted, answered
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.run_folder import Run
from callwright.walk.reward import RewardComponent
from callwright_plugins.local_trainer.run import checkpoints

Pipelines = Callable[..., Pipeline]
RUN = "callwright_plugins.local_trainer.run"

RL = ("trainer.steps=5", "trainer.checkpoint_every=3", "trainer.evaluate_every=2", "trainer.iterations=2")
SFT = (
    'trainer={name="sft", source="references", steps=7, batch=4, max_new_tokens=8, checkpoint_every=3, '
    'evaluate_every=2, best="loss", evaluation_batch=4}',
)
PPO = (*RL, 'algorithm={name="ppo", kl_weight=0.1, kl_target=0.01}', "trainer.keep_checkpoints=1")


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


def hashes(folder: Path) -> dict[str, str]:
    """Everything but times, and the training state, whose archive holds its own name."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("timings.jsonl", "training.pt", "digests.json")
    }


def stop(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def at_call(function: Any, moment: int, act: Callable[[], object]) -> Any:
    """The function, which does something else first when it is called for the ``moment``-th time."""
    calls = 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == moment:
            act()
        return function(*arguments, **options)

    return counted


def newest(folder: Path) -> str:
    found = checkpoints.newest(folder / "checkpoints")
    assert found is not None
    return found.name


@pytest.fixture(scope="module", params=[RL, PPO, SFT], ids=["bn-grpo", "ppo", "sft"])
def settings(request: pytest.FixtureRequest) -> tuple[str, ...]:
    chosen: tuple[str, ...] = request.param
    return chosen


@pytest.fixture(scope="module")
def whole(
    make_pipeline: Pipelines, variety: RewardComponent, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[tuple[str, ...]], tuple[dict[str, str], float]]:
    """What a run of these settings that nobody stopped leaves behind, and the seconds that it took; made once each."""
    made: dict[tuple[str, ...], tuple[dict[str, str], float]] = {}

    def of(settings: tuple[str, ...]) -> tuple[dict[str, str], float]:
        if settings not in made:
            folder = tmp_path_factory.mktemp("whole")
            pipeline = make_pipeline(*settings, extra_rewards=[variety])
            began = time.monotonic()
            train(pipeline, folder)
            made[settings] = hashes(folder), time.monotonic() - began  # on this machine, as busy as it is
        return made[settings]

    return of


#: Where a signal comes, at which call of it, and the checkpoint that is there afterwards: of RL, and of sft.
MOMENTS: dict[str, tuple[str, int, str]] = {
    "while it samples": ("callwright_plugins.local_trainer.sampling.collecting.sample_groups", 3, "train-000002"),
    "before an update, which is finished first": (f"{RUN}.training.prepare", 2, "train-000002"),
    "in an update, which is finished first": (f"{RUN}.training.descend", 2, "train-000002"),
    "while it evaluates": (f"{RUN}.training.evaluate_policy", 2, "train-000002"),
    "while it writes a checkpoint": (f"{RUN}.checkpoints.save_weights", 4, "train-000003"),
    "in the warm start": (f"{RUN}.training.warm_start_step", 5, "warm-000005"),
}


@pytest.mark.parametrize("number", ENDING, ids=lambda number: signal.Signals(number).name)
def test_every_signal_leaves_a_checkpoint_and_its_status(
    number: int,
    tmp_path: Path,
    make_pipeline: Pipelines,
    variety: RewardComponent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import callwright_plugins.local_trainer.sampling.collecting as module

    monkeypatch.setattr(module, "sample_groups", at_call(module.sample_groups, 3, lambda: stop(number)))
    with pytest.raises(Interrupted) as stopped, answered():
        train(make_pipeline(*RL, extra_rewards=[variety]), tmp_path)
    assert stopped.value.exit_status == 128 + number
    assert newest(tmp_path) == "train-000002"


@pytest.mark.parametrize("moment", MOMENTS)
def test_no_finished_step_is_lost_and_none_is_torn(
    moment: str, tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, whole: Any
) -> None:
    name, call, expected = MOMENTS[moment]
    pipeline = make_pipeline(*RL, extra_rewards=[variety])
    module, _, function = name.rpartition(".")
    with pytest.MonkeyPatch.context() as patched:
        real = getattr(__import__(module, fromlist=[function]), function)
        patched.setattr(name, at_call(real, call, stop))
        with pytest.raises(Interrupted), answered():
            train(pipeline, tmp_path / "stopped")
    assert newest(tmp_path / "stopped") == expected
    steps = [row["step"] for row in Run.open(tmp_path / "stopped").rows("metrics.jsonl")]
    assert steps == list(range(1, (int(expected[-6:]) if expected.startswith("train") else 0) + 1))
    train(pipeline, tmp_path / "stopped")
    assert hashes(tmp_path / "stopped") == whole(RL)[0]


def test_a_second_signal_in_an_update_leaves_at_once_and_saves_nothing_torn(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, monkeypatch: pytest.MonkeyPatch, whole: Any
) -> None:
    import callwright_plugins.local_trainer.learning.update as module

    pipeline = make_pipeline(*RL, extra_rewards=[variety])

    def twice() -> None:
        stop()
        stop(signal.SIGINT)

    with monkeypatch.context() as patched:  # in the second of the two optimiser steps of step 3
        patched.setattr(module, "clipped_step", at_call(module.clipped_step, 6, twice))
        with pytest.raises(Interrupted) as stopped, answered():
            train(pipeline, tmp_path / "stopped")
    assert stopped.value.number == signal.SIGINT
    assert newest(tmp_path / "stopped") == "train-000000", "the weights are those of half a step"
    train(pipeline, tmp_path / "stopped")
    assert hashes(tmp_path / "stopped") == whole(RL)[0]


@pytest.mark.parametrize("call", range(1, 5))
def test_a_stop_between_a_checkpoint_and_the_removal_of_those_before_it_leaves_none_behind(
    call: int, tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, whole: Any
) -> None:
    import callwright_plugins.local_trainer.supervised.course as module

    pipeline = make_pipeline(*SFT, extra_rewards=[variety])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "tidy", at_call(module.tidy, call, stop))
        with pytest.raises(Interrupted), answered():
            train(pipeline, tmp_path / "stopped")
    train(pipeline, tmp_path / "stopped")
    assert hashes(tmp_path / "stopped") == whole(SFT)[0]


def test_plugins_that_draw_global_numbers_draw_the_same_after_a_stop(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    import callwright_plugins.local_trainer.run.training as module
    from callwright.walk.attempt import Attempt
    from callwright.walk.reward import Score

    class Dice(RewardComponent):
        name = "dice"

        def score(self, attempt: Attempt) -> Score:
            return Score(random.random(), 0.0, 1.0)

    pipeline = make_pipeline(*RL, extra_rewards=[Dice()])
    train(pipeline, tmp_path / "whole")
    with monkeypatch.context() as patched:  # after step 3 was sampled and scored
        patched.setattr(module, "describe", at_call(module.describe, 3, stop))
        with pytest.raises(Interrupted), answered():
            train(pipeline, tmp_path / "stopped")
    assert newest(tmp_path / "stopped") == "train-000002"
    train(pipeline, tmp_path / "stopped")
    assert hashes(tmp_path / "stopped") == hashes(tmp_path / "whole")


@contextmanager
def stopped_within(seconds: float) -> Iterator[None]:
    """SIGTERM for this process after some seconds, if the block takes as long."""

    def ring(number: int, frame: FrameType | None) -> None:
        stop()

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # where a finaliser hears the signal
def test_stopped_again_and_again_at_any_moment_it_ends_in_the_same_bytes(
    settings: tuple[str, ...], tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, whole: Any
) -> None:
    """The moments are drawn; on a machine that is faster now than it was for the whole run they are drawn closer."""
    expected, seconds = whole(settings)
    pipeline = make_pipeline(*settings, extra_rewards=[variety])
    rng = random.Random(3)
    for attempt in range(8):
        folder, longest = tmp_path / str(attempt), seconds / 4 / 2**attempt
        stops = stopped_until_it_ends(pipeline, folder, rng, longest)
        assert hashes(folder) == expected
        if stops >= 3:
            return
    pytest.fail("it was never stopped as often as three times")


def stopped_until_it_ends(pipeline: Any, folder: Path, rng: random.Random, longest: float) -> int:
    """How often a run was stopped before it ended, at moments up to ``longest`` seconds from its (next) beginning.

    Each time it is given a fifth more, for some things begin anew, such as an evaluation, and where the machine is much
    slower than it was for the whole run, a constant would have it begin again dozens of times.
    """
    for stops in range(100):
        try:
            with answered(), stopped_within(rng.uniform(longest / 10, longest)):
                train(pipeline, folder)
        except Interrupted:
            longest *= 1.2
            if not (folder / "recipe.toml").exists():  # not yet a run
                continue
            run = Run.open(folder)
            rows, found = run.rows("metrics.jsonl"), checkpoints.newest(run.checkpoints)
            if found is not None and found.name.startswith("train-"):
                assert [row["step"] for row in rows] == list(range(1, int(found.name[-6:]) + 1)), "no row is lost"
        else:
            return stops
    pytest.fail("it never ended")
