"""Numbers and combinations with which nothing can be learnt are refused before a run begins, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import RecipeError
from callwright.pipeline import Pipeline, build_pipeline, create_trainer
from callwright.plugins import Registry
from callwright.recipe_file import parse_recipe
from callwright.training.recipe_run import check_group, run_pipeline

Pipelines = Callable[..., Pipeline]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.learning_rate=inf", "'learning_rate': Input should be a finite number"),
        ("trainer.learning_rate=nan", "'learning_rate'"),
        ("trainer.learning_rate=1e30", "'learning_rate': Input should be less than or equal to 1"),
        ("trainer.critic.learning_rate=inf", "'critic'.learning_rate: Input should be a finite number"),
        ("trainer.critic.learning_rate=2", "'critic'.learning_rate: Input should be less than or equal to 1"),
        ("trainer.warm_start.learning_rate=inf", "'warm_start'.learning_rate: Input should be a finite number"),
        ("trainer.warm_start.learning_rate=1e30", "'warm_start'.learning_rate: Input should be less"),
        ("trainer.weight_decay=1e9", "'learning_rate' 0.0003 times 'weight_decay' 1e\\+09 is 1 or more"),
        ("trainer.warm_start.weight_decay=1e9", "'warm_start'.*times 'weight_decay' 1e\\+09 is 1 or more"),
        ("trainer.critic.weight_decay=1e9", "'critic'.*times 'weight_decay' 1e\\+09 is 1 or more"),
        ("trainer.temperature=1e-30", "'temperature': Input should be greater than or equal to 0.01"),
        ("trainer.temperature=inf", "'temperature'"),
        ("trainer.clip_norm=inf", "'clip_norm': Input should be a finite number"),
        ("trainer.betas=[0.9, 1.0]", "'betas' are"),
        ("trainer.depths=[]", "'depths' is empty"),
        ("trainer.not_finite_limit=0", "'not_finite_limit'"),
        ("trainer.group=0", "'group'"),
    ],
)
def test_bad_numbers_of_the_trainer(override: str, message: str, make_pipeline: Pipelines) -> None:
    recipe = make_pipeline(override).recipe
    with pytest.raises(RecipeError, match=message) as caught:
        create_trainer(recipe, make_pipeline().registry)
    assert str(caught.value).startswith(("--set trainer", "small.toml:"))


@pytest.mark.parametrize(
    "override",
    [
        "algorithm.kl_weight=inf",
        "algorithm.epsilon=nan",
        "algorithm.std_epsilon=inf",
        "algorithm.entropy_weight=inf",
        'algorithm={name="ppo", gamma=nan}',
        'algorithm={name="ppo", kl_horizon=inf}',
        'algorithm={name="dapo", overlong_penalty=inf}',
    ],
)
def test_numbers_of_algorithms_that_are_not_finite(override: str, make_pipeline: Pipelines) -> None:
    with pytest.raises(RecipeError, match=r"must be a number .*but is (inf|nan)") as caught:
        make_pipeline(override)
    assert str(caught.value).startswith(("--set algorithm", "small.toml:"))


COMPARING = ("grpo", "bn-grpo", "dapo", "dr-grpo", "rloo", "reinforce++-baseline")


@pytest.mark.parametrize("name", [*COMPARING, "reinforce++", "ppo"])
def test_which_algorithms_need_more_than_one_completion_a_prompt(
    name: str, tmp_path: Path, registry: Registry, small_corpus: Any, small_recipe: str
) -> None:
    text = small_recipe.replace("group = 3", "group = 1").replace(
        'name = "bn-grpo"\nkl_weight = 0.1', f'name = "{name}"'
    )
    loaded = parse_recipe(text, "small.toml", ["trainer.steps=0", "trainer.warm_start=0"])
    pipeline = build_pipeline(loaded, registry, corpus=small_corpus)
    trainer = create_trainer(loaded, registry)
    line = 1 + text.split("\n").index("group = 1")
    if name not in COMPARING:
        check_group(pipeline, trainer)
        return
    with pytest.raises(RecipeError, match=rf"^small.toml:{line}: group = 1 teaches nothing: '.*' compares"):
        check_group(pipeline, trainer)
    with pytest.raises(RecipeError, match="needs a group of 2 or more"):
        run_pipeline(pipeline, output=tmp_path / "run")
    assert not (tmp_path / "run").exists(), "nothing is made of it"
    check_group(pipeline, create_trainer(parse_recipe(text, "small.toml", ["trainer.group=2"]), registry))


def test_a_divergence_in_the_reward_does_not_make_up_for_a_group(registry: Registry, small_recipe: str) -> None:
    loaded = parse_recipe(small_recipe, "small.toml", ["trainer.group=1", "algorithm.kl_in=reward"])
    with pytest.raises(RecipeError, match=r"^--set trainer.group=1: group = 1 teaches nothing"):
        check_group(build_pipeline(loaded, registry), create_trainer(loaded, registry))


def test_a_trainer_that_samples_nothing_is_not_asked(registry: Registry, small_recipe: str) -> None:
    sft = 'trainer={name="sft", source="references", steps=1}'
    loaded = parse_recipe(small_recipe, "small.toml", [sft])
    check_group(build_pipeline(loaded, registry), create_trainer(loaded, registry))
