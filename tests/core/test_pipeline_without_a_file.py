"""A pipeline of components, of names, and of a recipe that was never written to a file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import FolderTaken, RecipeError, UnknownName
from callwright.pipeline import build_pipeline, open_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.recipe_run import run_recipe
from callwright.walk import SINGLE_TURN

SMALL = {
    "name": "small",
    "seed": 3,
    "corpus": "toolworld-mini-v1",
    "algorithm": {"name": "grpo", "kl_weight": 0.0},
    "turns": {"assistant_turns": 2},
}


def gold(pipeline: cw.Pipeline) -> float | None:
    task = next(task for task in pipeline.tasks(pipeline.evaluation) if task.program and task.program.calls)
    assert task.program is not None
    return pipeline.score(pipeline.attempt(task, pipeline.parser.render(task.program))).total


def test_components_are_a_pipeline_in_one_line() -> None:
    pipeline = cw.Pipeline(corpus=cw.corpus("toolworld-mini-v1"), reward=cw.reward("simple"), parser=cw.parser("xml"))
    assert gold(pipeline) == 1.0
    assert pipeline.conditions == cw.Conditions()
    assert pipeline.source is None


def test_names_stand_for_registered_components() -> None:
    pipeline = cw.Pipeline("toolworld-mini-v1", "prove", "direct", "dapo", conditions=cw.Conditions(seed=4))
    assert (pipeline.corpus.name, pipeline.reward.name, pipeline.parser.name) == (
        "toolworld-mini-v1",
        "prove",
        "direct",
    )
    assert pipeline.algorithm is not None
    assert pipeline.algorithm.name == "dapo"
    assert pipeline.conditions.seed == 4
    with pytest.raises(UnknownName, match=r"no reward recipe named 'teir'\. Did you mean 'tier'"):
        cw.Pipeline("toolworld-mini-v1", "teir")


def test_a_pipeline_is_a_value() -> None:
    pipeline = cw.Pipeline("toolworld-mini-v1")
    other = evolve(pipeline, reward=cw.reward("simple"), conditions=cw.Conditions(limits=cw.TurnLimits(3)))
    assert (pipeline.reward.name, other.reward.name) == ("tier", "simple")
    assert (pipeline.conditions.limits, other.conditions.limits.assistant_turns) == (SINGLE_TURN, 3)
    assert other.registry is pipeline.registry


def test_a_recipe_in_memory_is_what_the_file_would_say(tmp_path: Path) -> None:
    loaded = load_recipe(SMALL)
    path = tmp_path / "small.toml"
    path.write_text(loaded.effective_text(), encoding="utf-8")
    assert load_recipe(path).recipe == loaded.recipe
    pipeline = build_pipeline(loaded)
    assert pipeline.conditions == cw.Conditions(seed=3, limits=cw.TurnLimits(assistant_turns=2), isolation="auto")
    assert pipeline.recipe is loaded
    assert SMALL["corpus"] == "toolworld-mini-v1"  # what was given is left as it is


def test_a_recipe_in_memory_can_be_overridden_and_loaded_again() -> None:
    loaded = load_recipe(SMALL, ["algorithm=dapo", "seed=9"])
    assert (loaded.recipe.algorithm.name, loaded.recipe.seed) == ("dapo", 9)
    assert load_recipe(loaded) is loaded
    assert load_recipe(loaded, ["seed=11"]).recipe.seed == 11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": {}}, "the recipe: corpus.name is missing"),
        ({"sede": 1}, "the recipe: .*'sede'. Did you mean 'seed'"),
        ({"turns": {"assistant_turns": 0}}, "the recipe: turns.assistant_turns: .*greater than or equal to 1"),
    ],
)
def test_a_bad_recipe_in_memory_names_the_key(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe({**SMALL, **change})


def test_names_of_a_recipe_in_memory_are_blamed_on_it() -> None:
    with pytest.raises(RecipeError, match=r"the recipe: .*no corpus named 'toolword-mini-v1'"):
        build_pipeline(load_recipe({**SMALL, "corpus": "toolword-mini-v1"}))


def test_what_trains_needs_a_recipe() -> None:
    with pytest.raises(cw.UsageError, match=r"made without a recipe, .* use callwright.train"):
        _ = cw.Pipeline("toolworld-mini-v1").recipe


class Noted:
    """A trainer that keeps the pipeline that it is given."""

    name = "noted"

    def __init__(self, seen: list[cw.Pipeline]) -> None:
        self.seen = seen

    def train(self, pipeline: cw.Pipeline, run: Any, *, reporter: Any = None) -> None:
        self.seen.append(pipeline)


def test_training_takes_a_recipe_in_memory_and_a_reward_object(tmp_path: Path) -> None:
    seen: list[cw.Pipeline] = []
    from callwright.plugins import load_plugins

    ours = SimpleNamespace(callwright_trainers=cw.hookimpl(lambda: [cw.Lazy("noted", lambda: Noted(seen))]))
    registry = load_plugins(extra={"ours": ours})
    recipe = {**SMALL, "trainer": "noted"}
    mine = evolve(cw.reward("simple"), name="mine")
    run = cw.train(recipe, output=tmp_path / "run", reward=mine, registry=registry)
    assert seen[0].reward is mine
    assert 'reward = "mine"' in (run.path / "recipe.toml").read_text(encoding="utf-8")
    again = run_recipe(recipe, output=tmp_path / "run", reward=mine, registry=registry)
    assert again.path == run.path
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("mine", encoding="utf-8")
    with pytest.raises(FolderTaken, match=r"is not empty and holds no run \(chapter.tex\)"):
        cw.train(recipe, output=other, reward=mine, registry=registry)
    assert [path.name for path in other.iterdir()] == ["chapter.tex"]


def test_a_pipeline_for_scoring_of_whatever_there_is() -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    assert gold(open_pipeline("tier", corpus)) == 1.0
    assert gold(open_pipeline(cw.reward("simple"), "toolworld-mini-v1", "xml")) == 1.0
    assert open_pipeline("tier-mini").source is not None
    pipeline = cw.Pipeline(corpus)
    assert open_pipeline(pipeline) is pipeline
    with pytest.raises(cw.UsageError, match="is a reward recipe; pass corpus="):
        open_pipeline("tier")
    with pytest.raises(cw.UsageError, match="needs a corpus"):
        open_pipeline(cw.reward("tier"))
