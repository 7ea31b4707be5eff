"""A run whose environments live with threads, processes or actors is, byte for byte, the run in one thread."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import RunError, UsageError
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry, load_plugins
from callwright.recipe_file import parse_recipe
from callwright.training.run_folder import Run
from callwright_plugins import json_ir, local_trainer, policy_gradient, tier_rewards, toolworld
from callwright_plugins.local_trainer.sampling import collecting
from callwright_plugins.local_trainer.supervised.trainer import SupervisedTrainer
from callwright_plugins.local_trainer.trainer import LocalTrainer

SUPPORT = Path(__file__).parent / "support"

TURNS = """
[turns]
assistant_turns = 3
total_tokens = 160
observation_tokens = 60
"""
#: A warm start that is long enough for calls that execute, so that there are sessions to hold.
WARM_START = (
    "model.tiny.width=32",
    "model.tiny.ffn=64",
    "trainer.warm_start={steps=70, count=30, batch=12, warm_up=5, learning_rate=0.01, demonstrations={simple=1.0}}",
)
LEARNING = (
    "trainer.warm_start={steps=0}",
    "trainer.max_new_tokens=24",
    "trainer.depths=[1]",
    "trainer.rollouts_per_step=6",
    "trainer.steps=2",
    "trainer.prompts=3",
    "trainer.sampling_rows=4",
)
MEASURED = ("timings.jsonl", "recipe.toml", "digests.json", "manifest.json", "training.pt")

Make = Callable[..., Pipeline]


@pytest.fixture(scope="module")
def warm_recipe(
    registry: Registry, small_recipe: str, small_corpus: Any, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The small recipe from a model that has had the warm start: most of a run, and none of it done by an executor."""
    folder = tmp_path_factory.mktemp("warm")
    loaded = parse_recipe(small_recipe, "small.toml", (*WARM_START, "trainer.steps=0", "trainer.evaluation_tasks=1"))
    train(build_pipeline(loaded, registry, corpus=small_corpus), folder)
    model = f'[model]\npath = "{folder / "checkpoints" / "final"}"\n\n'
    return re.sub(r"\[model.tiny\][^\[]*", lambda _: model, small_recipe)


@pytest.fixture
def make(registry: Registry, warm_recipe: str, small_corpus: Any) -> Make:
    """A pipeline of the small recipe, of one turn or several."""

    def make(*overrides: str, turns: bool = True, reward: str = "tier", **more: Any) -> Pipeline:
        text = (warm_recipe + TURNS if turns else warm_recipe).replace('name = "tier"', f'name = "{reward}"')
        loaded = parse_recipe(text, "small.toml", (*LEARNING, *overrides))
        return build_pipeline(loaded, registry, corpus=small_corpus, **more)

    return make


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of parts, which processes find too."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    import worker_parts

    yield worker_parts
    sys.modules.pop("worker_parts")


def train(pipeline: Pipeline, folder: Path) -> dict[str, bytes]:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
    return files(folder)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in MEASURED
    }


@pytest.mark.parametrize("turns", [False, True])
def test_the_run_is_the_same_for_every_executor(tmp_path: Path, make: Make, turns: bool) -> None:
    reward = "tier" if turns else "tier-released"  # whose rules execute an attempt again, where it is scored
    expected = train(make(turns=turns, reward=reward), tmp_path / "serial")
    assert b'"executed": 0.0' not in expected["metrics.jsonl"]
    for executor, workers in (("thread", 3), ("process", 2)):
        made = make(f"trainer.executor={executor}", f"trainer.workers={workers}", turns=turns, reward=reward)
        assert train(made, tmp_path / executor) == expected, executor


def test_a_run_goes_on_when_a_worker_dies(tmp_path: Path, make: Make, parts: Any) -> None:
    sign = tmp_path / "sign"
    sign.touch()
    expected = train(make(extra_rewards=[parts.DiesOnce(str(sign))]), tmp_path / "serial")
    sign.unlink()
    pipeline = make("trainer.executor=process", "trainer.workers=2", extra_rewards=[parts.DiesOnce(str(sign))])
    assert train(pipeline, tmp_path / "process") == expected
    assert sign.read_text() not in ("", str(os.getpid()))


def test_a_run_that_stopped_goes_on_with_another_executor(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = train(make("trainer.checkpoint_every=1"), tmp_path / "serial")
    real, calls = collecting.sample_groups, []

    def stopping(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise RunError("stopped")
        return real(*given)

    monkeypatch.setattr(collecting, "sample_groups", stopping)
    with pytest.raises(RunError, match="stopped"):
        train(make("trainer.checkpoint_every=1", "trainer.executor=thread", "trainer.workers=2"), tmp_path / "other")
    (tmp_path / "other" / "recipe.toml").unlink()
    (tmp_path / "other").rename(tmp_path / "again")
    pipeline = make("trainer.checkpoint_every=1", "trainer.executor=process", "trainer.workers=2")
    run = Run(tmp_path / "again")
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
    assert files(tmp_path / "again") == expected


@pytest.mark.parametrize("turns", [False, True])
def test_rewards_that_wait_do_so_beside_the_workers(tmp_path: Path, make: Make, parts: Any, turns: bool) -> None:
    expected = train(make(extra_rewards=[parts.Waits()], turns=turns), tmp_path / "serial")
    made = make("trainer.executor=thread", "trainer.workers=3", extra_rewards=[parts.Waits()], turns=turns)
    assert train(made, tmp_path / "thread") == expected


def test_hooks_hear_of_calls_in_the_workers_and_of_rewards_here(
    tmp_path: Path, small_recipe: str, small_corpus: Any, parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = (json_ir, tier_rewards, toolworld, policy_gradient, local_trainer, parts)
    registry = load_plugins(entry_points=False, extra={module.__name__: module for module in modules})
    told = []
    for executor in ("serial", "process"):
        seen = tmp_path / f"seen-{executor}"
        seen.mkdir()
        monkeypatch.setenv("CALLS_SEEN", str(seen))
        workers = () if executor == "serial" else ("trainer.executor=process", "trainer.workers=2")
        loaded = parse_recipe(small_recipe + TURNS, "small.toml", (*LEARNING, *WARM_START, *workers))
        train(build_pipeline(loaded, registry, corpus=small_corpus), tmp_path / executor)
        places = {path.name for path in seen.iterdir() if not path.name.startswith("scored")}
        here = str(os.getpid())
        # A warm start, which has calls too, is executed here.
        assert places == {here} if executor == "serial" else len(places - {here}) in (1, 2)
        (scored,) = seen.glob("scored-*")
        assert scored.name == f"scored-{here}"
        told.append(scored.read_text())
    assert told[0] == told[1]
    assert told[0].count("\n") == 18


def test_supervised_runs_evaluate_in_workers(tmp_path: Path, make: Make) -> None:
    found = []
    for executor in ("serial", "process"):
        pipeline = make()
        options = {
            "steps": 2,
            "batch": 4,
            "max_new_tokens": 60,
            "evaluate_every": 1,
            "limit": 20,
            "too_long": "leave_out",
        }
        workers = {} if executor == "serial" else {"executor": executor, "workers": 2}
        run = Run.create(tmp_path / executor, recipe_text="", manifest={})
        SupervisedTrainer(**options, **workers).train(pipeline, run)
        found.append(files(run.path))
    assert found[0] == found[1]
    assert "rollouts.jsonl" in found[0]


def test_more_workers_need_an_executor(make: Make) -> None:
    with pytest.raises(UsageError, match=r"'workers' is 3, but the executor is serial.*executor = \"process\""):
        LocalTrainer(workers=3)
    with pytest.raises(UsageError, match="'executor'"):
        LocalTrainer(executor="proces", workers=3)
