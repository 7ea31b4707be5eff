from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry, load_plugins
from callwright.recipe_file import parse_recipe
from callwright.training.recipe_run import run_pipeline
from callwright.training.run_folder import Run
from callwright_plugins import json_ir, local_trainer, policy_gradient, tier_rewards, toolworld, trl_trainer

for package in ("torch", "trl", "peft", "datasets"):
    pytest.importorskip(package, reason="needs the extra 'trl': pip install 'callwright[trl]'")

RECIPE = """
name = "small"
seed = 7
corpus = { name = "toolworld-mini-v1", train_size = 20, evaluation_size = 1 }
reward = "variety"

[algorithm]
name = "bn-grpo"
kl_weight = 0.1

[model.tiny]
width = 16
layers = 1
heads = 2
ffn = 16

[trainer]
name = "trl"
steps = 2
prompts = 2
group = 4
max_new_tokens = 12
learning_rate = 1e-3
warm_up = 1
checkpoint_every = 2
evaluation_batch = 8
evaluation_tasks = 1
rollouts_per_step = 2
device = "cpu"

[trainer.warm_start]
steps = 4
batch = 4
warm_up = 2
count = 8
"""

#: A plugin that other processes can import. Untrained completions differ in their tokens, so groups have a gradient.
PLUGIN = '''
import os, signal

from callwright import InfrastructureFailure, Lazy, hookimpl
from callwright.walk.reward import Evidence, RewardComponent, RewardRecipe, Score, Term


class Variety(RewardComponent):
    """How many different tokens there are."""

    name = "variety"

    def score(self, attempt):
        progress = attempt.conditions.progress
        if progress is not None and str(progress.step) == os.environ.get("STOPPED_AT"):
            raise KeyboardInterrupt
        ids = attempt.completion.token_ids
        value = len(set(ids)) / max(12, len(ids))
        return Score(value, 0.0, 1.0, () if value == 1 else (Evidence("repeats", "some tokens repeat"),))


class Patchy(Variety):
    """The same, but it cannot be found out for completions that begin with certain tokens."""

    name = "patchy"

    def score(self, attempt):
        if attempt.completion.token_ids[0] % 3 == 0:
            raise InfrastructureFailure("the judge is away")
        return super().score(attempt)


def variety():
    return RewardRecipe("variety", (Term(Variety(), 1),), truncated="as_is")


def patchy():
    return RewardRecipe("patchy", (Term(Patchy(), 1),), truncated="as_is")


@hookimpl
def callwright_reward_recipes():
    yield Lazy("variety", variety)
    yield Lazy("patchy", patchy)


@hookimpl
def callwright_training_step(metrics):
    if str(metrics["step"]) == os.environ.get("KILLED_AT"):
        os.kill(os.getpid(), signal.SIGKILL)
'''


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "variety_rewards.py").write_text(PLUGIN, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def registry(plugin_folder: Path) -> Registry:
    sys.path.insert(0, str(plugin_folder))
    modules = (json_ir, tier_rewards, toolworld, policy_gradient, local_trainer, trl_trainer)
    modules = (*modules, importlib.import_module("variety_rewards"))
    return load_plugins(entry_points=False, extra={module.__name__: module for module in modules})


@pytest.fixture(scope="session")
def recipe() -> str:
    return RECIPE


@pytest.fixture(scope="session")
def make_pipeline(registry: Registry) -> Callable[..., Pipeline]:
    """A pipeline of the small recipe with ``--set`` overrides."""

    def make(*overrides: str, text: str = RECIPE) -> Pipeline:
        return build_pipeline(parse_recipe(text, "small.toml", overrides), registry)

    return make


@pytest.fixture(scope="session")
def train(make_pipeline: Callable[..., Pipeline]) -> Callable[..., Run]:
    """Train the small recipe with overrides into a folder."""

    def run(folder: Path, *overrides: str, **more: Any) -> Run:
        return run_pipeline(make_pipeline(*overrides, **more), output=folder)

    return run
