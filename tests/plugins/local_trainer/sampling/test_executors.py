"""A run whose environments live with threads, processes or actors is, byte for byte, the run in one thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry
from callwright.recipe_file import parse_recipe
from callwright.training.run_folder import Run
from callwright_plugins.local_trainer.trainer import LocalTrainer

TURNS = """
[turns]
assistant_turns = 3
total_tokens = 160
observation_tokens = 60
"""
#: A warm start that is long enough for calls that execute, so that there are sessions to hold.
LEARNING = (
    "model.tiny.width=32",
    "model.tiny.ffn=64",
    "trainer.warm_start={steps=70, count=30, batch=12, warm_up=5, learning_rate=0.01, demonstrations={simple=1.0}}",
    "trainer.max_new_tokens=24",
    "trainer.depths=[1]",
    "trainer.rollouts_per_step=6",
    "trainer.steps=2",
    "trainer.prompts=3",
    "trainer.sampling_rows=4",
)
MEASURED = ("timings.jsonl", "recipe.toml", "digests.json", "manifest.json", "training.pt")

Make = Callable[..., Pipeline]


@pytest.fixture
def make(registry: Registry, small_recipe: str, small_corpus: Any) -> Make:
    """A pipeline of the small recipe, of one turn or several."""

    def make(*overrides: str, turns: bool = True, reward: str = "tier", **more: Any) -> Pipeline:
        text = (small_recipe + TURNS if turns else small_recipe).replace('name = "tier"', f'name = "{reward}"')
        loaded = parse_recipe(text, "small.toml", (*LEARNING, *overrides))
        return build_pipeline(loaded, registry, corpus=small_corpus, **more)

    return make


def train(pipeline: Pipeline, folder: Path) -> dict[str, bytes]:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
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
