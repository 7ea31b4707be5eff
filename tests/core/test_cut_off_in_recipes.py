"""What a pipeline recipe says of cut-off completions, what it may be combined with, and what a run keeps of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import RecipeError
from callwright.pipeline import build_pipeline
from callwright.plugins import default_registry, load_plugins
from callwright.recipe_file import parse_recipe, shipped_recipes
from callwright.training import ShapesOverlong
from callwright.training.truncation import alarm_of_truncation, as_in_run

RECIPE = """
corpus = "toolworld-mini-v1"

[algorithm]
name = "grpo"

[reward]
name = "tier"
"""


def policy(reward: str, *overrides: str) -> tuple[str, float | None]:
    made = build_pipeline(parse_recipe(RECIPE + reward, "mine.toml", overrides)).reward
    return made.truncation, made.floor


@pytest.mark.parametrize(
    ("reward", "overrides", "expected"),
    [
        ("", (), ("floor", 0.0)),
        ("floor = -1", (), ("floor", -1.0)),
        ('truncated = "mask"', (), ("mask", 0.0)),
        ('truncated = "as_is"', (), ("as_is", 0.0)),
        ("", ("reward=tier-released",), ("as_is", None)),
        ("", ("reward=toolrl",), ("floor", -3.0)),
        ("", ("algorithm.name=dapo",), ("overlong", 0.0)),
        ("floor = -1", ("algorithm.name=dapo",), ("overlong", -1.0)),
        ('truncated = "overlong"', ("algorithm.name=dapo",), ("overlong", 0.0)),
        ('truncated = "as_is"', ("algorithm.name=dapo",), ("as_is", 0.0)),
        ('truncated = "mask"', ("algorithm.name=dapo",), ("mask", 0.0)),
        ("", ("algorithm.name=dapo", "reward=tier-released"), ("as_is", None)),
        ("", ("algorithm.name=dapo", "algorithm.overlong_buffer=0"), ("floor", 0.0)),
        ("", ("algorithm.name=dapo", "algorithm.overlong_penalty=0"), ("floor", 0.0)),
        ('truncated = "floor"', ("algorithm.name=dapo", "algorithm.overlong_buffer=0"), ("floor", 0.0)),
        ("", ("reward.truncated=mask",), ("mask", 0.0)),
    ],
)
def test_the_policy_of_a_recipe(reward: str, overrides: tuple[str, ...], expected: tuple[str, float | None]) -> None:
    assert policy(reward, *overrides) == expected


@pytest.mark.parametrize(
    ("reward", "overrides", "message"),
    [
        ('truncated = "overlong"', (), r'^mine\.toml:9: truncated = "overlong" .*\'grpo\' does not'),
        (
            'truncated = "overlong"',
            ("algorithm.name=dapo", "algorithm.overlong_buffer=0"),
            r"^mine\.toml:9: .*'dapo' does not",
        ),
        (
            'truncated = "floor"',
            ("algorithm.name=dapo",),
            r"^mine\.toml:9: .*twice: set algorithm\.overlong_buffer = 0",
        ),
        ('truncated = "flor"', (), r"^mine\.toml:9: reward\.truncated: Input should be 'as_is', 'mask', 'floor'"),
        ("floor = inf", (), r"^mine\.toml:9: reward\.floor: Input should be a finite number"),
        ('floor = "0"', (), r"^mine\.toml:9: reward\.floor: Input should be a valid number"),
        ("", ("reward.truncated=overlong",), r"^--set reward\.truncated=overlong: "),
        ('truncated = "floor"', ("reward.name=tier-released",), r"^mine\.toml:9: .*states no floor"),
    ],
)
def test_what_does_not_go_together_is_refused_at_its_line(
    reward: str, overrides: tuple[str, ...], message: str
) -> None:
    with pytest.raises(RecipeError, match=message):
        policy(reward, *overrides)


def test_pipelines_of_objects_follow_the_same_rules() -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    assert cw.Pipeline(corpus, "tier", algorithm="grpo").reward.truncation == "floor"
    assert cw.Pipeline(corpus, "tier", algorithm="dapo").reward.truncation == "overlong"
    assert cw.Pipeline(corpus, cw.reward("tier", truncated="mask"), algorithm="dapo").reward.truncation == "mask"
    assert cw.Pipeline(corpus, cw.reward("tier", truncated="overlong")).reward.truncation == "overlong", "not ours"
    with pytest.raises(cw.UsageError, match="would punish a cut-off completion twice"):
        cw.Pipeline(corpus, cw.reward("tier", truncated="floor"), algorithm="dapo")
    with pytest.raises(cw.UsageError, match="'grpo' does not shape"):
        cw.Pipeline(corpus, cw.reward("tier", truncated="overlong"), algorithm="grpo")


def test_only_dapo_shapes_and_says_so() -> None:
    registry = default_registry()
    shaping = [
        name
        for name in registry.names("algorithm")
        if isinstance(made := registry.create("algorithm", name), ShapesOverlong) and made.shapes_overlong
    ]
    assert shaping == ["dapo"]


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_every_shipped_recipe_has_a_policy(name: str) -> None:
    pytest.importorskip("torch", reason="algorithms need the train extra")
    loaded = parse_recipe(shipped_recipes()[name].read_text(encoding="utf-8"), name)
    corpus: Any = SimpleNamespace(name="any", splits={"train": 1, "evaluation": 1, "validation": 1, "test": 1})
    reward = build_pipeline(loaded, corpus=corpus).reward
    expected = "as_is" if "released" in reward.name else "overlong" if name.endswith("dapo-yu") else "floor"
    assert reward.truncation == expected
    assert reward.truncation != "floor" or reward.floor == (-3.0 if reward.name.startswith("toolrl") else 0.0)


# Runs -----------------------------------------------------------------------------------------------------------------


class Noted:
    name = "noted"

    def train(self, pipeline: cw.Pipeline, run: cw.Run, *, reporter: Any = None) -> None:
        self.pipeline = pipeline


@pytest.fixture
def registry() -> cw.Registry:
    ours = SimpleNamespace(callwright_trainers=cw.hookimpl(lambda: [cw.Lazy("noted", Noted)]))
    return load_plugins(extra={"ours": ours})


SMALL = {
    "corpus": {"name": "toolworld-mini-v1", "train_size": 10, "evaluation_size": 1},
    "algorithm": "grpo",
    "trainer": "noted",
}


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ({}, {"name": "tier", "truncated": "floor", "floor": 0.0}),
        ({"algorithm": "dapo"}, {"name": "tier", "truncated": "overlong"}),
        ({"reward": {"name": "tier", "truncated": "mask"}}, {"name": "tier", "truncated": "mask"}),
        ({"reward": {"name": "toolrl", "floor": -4}}, {"name": "toolrl", "truncated": "floor", "floor": -4.0}),
    ],
)
def test_the_manifest_says_what_was_in_force(
    tmp_path: Path, registry: cw.Registry, recipe: dict[str, Any], expected: dict[str, Any]
) -> None:
    run = cw.train({**SMALL, **recipe}, output=tmp_path / "run", registry=registry)
    assert run.manifest["reward"] == expected
    again = as_in_run(cw.reward(expected["name"]), run.manifest)
    assert (again.truncation, again.floor) == (expected["truncated"], expected.get("floor", again.floor))


def test_a_run_from_before_there_was_a_choice_paid_what_the_text_was_worth() -> None:
    assert as_in_run(cw.reward("tier"), {"python": "3.12"}).truncation == "as_is"


def test_the_run_folder_says_what_an_object_has_of_its_own(tmp_path: Path, registry: cw.Registry) -> None:
    ours = cw.reward("tier", truncated="mask", floor=-2.0)
    run = cw.train(SMALL, output=tmp_path / "a", reward=ours, registry=registry)
    again = build_pipeline(parse_recipe((run.path / "recipe.toml").read_text(encoding="utf-8")), registry).reward
    assert (again.truncated, again.floor) == ("mask", -2.0)
    plain = cw.train(SMALL, output=tmp_path / "b", reward=cw.reward("tier"), registry=registry)
    assert "floor" not in (plain.path / "recipe.toml").read_text(encoding="utf-8")
    assert evolve(cw.reward("tier")).floor == 0.0


# The alarm ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "raised"),
    [
        ([0.11] * 5, True),
        ([0.1] * 5, False),
        ([0.0, 0.0, 0.0, 0.0, 0.6], True),
        ([0.0, 0.0, 0.0, 0.0, 0.5], False),
        ([1.0] * 4, False),
        ([1.0, 1.0, None, 1.0, 1.0], False),
        ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], False),
        ([0.0, 0.2, 0.2, 0.2, 0.2, 0.2], True),
        ([], False),
    ],
)
def test_the_alarm_is_about_a_tenth_of_the_last_five_steps(shares: list[float | None], raised: bool) -> None:
    said = alarm_of_truncation([{} if share is None else {"truncated": share} for share in shares])
    assert (said is not None) is raised
    if said is not None:
        assert "of the samples of the last 5 steps were cut off by a limit of tokens, more than 10%" in said
