"""Every shipped recipe passes a dry run where neither data nor models lie, and drops no key in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli.root import root
from callwright.commands.app import App
from callwright.plugins import Registry, default_registry
from callwright.recipe_file import load_recipe, shipped_recipes

#: Parts of memory that every plan has.
PARTS = {"weights", "gradients", "optimizer", "activations", "logits", "keys and values", "peak", "layout"}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return default_registry()


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def dry(registry: Registry, *words: str) -> Result:
    return CliRunner().invoke(root, ["run", *words, "--dry-run"], obj=App(registry=registry))


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_it_passes_a_dry_run_without_a_file(name: str, registry: Registry, tmp_path: Path) -> None:
    done = dry(registry, name, "--json")
    assert done.exit_code == 0, done.output
    recipe = load_recipe(name).recipe
    plan: list[dict[str, Any]] = json.loads(done.stdout).get("memory", [])
    if recipe.trainer.name != "sft" and "path" in recipe.model:
        assert {row["key"] for row in plan} >= PARTS
        fits = next(row for row in plan if row["key"] == "layout")["fits"]
        # ToolRL's released runs are exact by the trainer local alone, all weights in float32 on one GPU.
        assert fits or (recipe.trainer.name == "local" and name.endswith("-released")), plan
        assert all(row["formula"] for row in plan)
    assert list(tmp_path.iterdir()) == []


def test_the_copies_that_sample_ahead_of_training_are_planned(registry: Registry) -> None:
    plans = []
    for staleness in (0, 2):
        words = ("--set", f"trainer.staleness={staleness}", "--json")
        done = dry(registry, "tier-gpu", *words)
        plans.append({row["key"]: row.get("GiB") for row in json.loads(done.stdout)["memory"]})
    assert "rollouts" not in plans[0]
    assert plans[1]["rollouts"] == pytest.approx(3 * plans[1]["reference"], rel=0.01)


def test_each_option_that_saves_memory_makes_its_part_smaller(registry: Registry) -> None:
    """18 bytes a weight and 2 in the reference with float32 masters, 16 and 4 without (docs/local-trainer.md)."""

    def planned(*changes: str) -> dict[str, float]:
        words = [word for change in changes for word in ("--set", change)]
        done = dry(registry, "tier-gpu", *words, "--json")
        assert done.exit_code == 0, done.output
        return {row["key"]: row["GiB"] for row in json.loads(done.stdout)["memory"]}

    kept = ("weights", "gradients", "optimizer")
    usual = planned("trainer.dtype=float32")
    each = usual["weights"] / 4
    assert sum(usual[key] for key in kept) == pytest.approx(16 * each, rel=0.01)
    assert usual["reference"] == pytest.approx(4 * each, rel=0.01)
    mixed = planned("trainer.dtype=bfloat16")
    assert mixed["weights"] == pytest.approx(6 * each, rel=0.01)
    small = planned("trainer.dtype=bfloat16", "trainer.weights=bfloat16")
    assert sum(small[key] for key in kept) == pytest.approx(18 * each, rel=0.01)
    assert small["reference"] == pytest.approx(2 * each, rel=0.01)
    assert mixed["activations"] == small["activations"] == pytest.approx(usual["activations"] / 2, rel=0.01)
    assert planned("trainer.gradient_checkpointing=true")["activations"] < mixed["activations"] / 4
    few = planned("trainer.tokens_per_micro_batch=8192")
    assert few["activations"] < mixed["activations"]
    assert few["logits"] <= mixed["logits"] <= 0.75  # three slices of 256 MB; a table is larger


def test_what_is_kept_between_turns_is_planned(registry: Registry) -> None:
    """As much as the option allows, or as there is; nothing of a single turn."""
    plans = []
    for name, gib in (("prove-gpu", 0.5), ("prove-gpu", 0), ("prove-gpu", 4000), ("tier-gpu", 0.5)):
        done = dry(registry, name, "--set", f"trainer.turn_cache_gib={gib}", "--json")
        plans.append({row["key"]: row.get("GiB") for row in json.loads(done.stdout)["memory"]})
    kept = [plan.get("kept between turns") for plan in plans]
    assert [kept[0], kept[1], kept[3]] == [0.5, None, None]
    assert kept[2] >= plans[2]["keys and values"] > 0.5
    assert "keys and values" in plans[1]


def test_what_is_not_there_is_said(registry: Registry) -> None:
    done = dry(registry, "toolrl-qwen2.5-1.5b-released")
    assert done.exit_code == 0
    assert "rlla_4k/train.parquet" in done.stderr
    assert "there is no Qwen/Qwen2.5-1.5B-Instruct" in done.stderr


def test_a_run_still_needs_them(registry: Registry) -> None:
    done = CliRunner().invoke(root, ["run", "toolrl-qwen2.5-1.5b-released"], obj=App(registry=registry))
    assert done.exit_code == 2
    assert "there is no file rlla_4k/train.parquet" in done.stderr
    assert "is not a Hugging Face model directory" in done.stderr


def test_a_folder_that_is_no_model_is_a_mistake_all_the_same(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "is not a Hugging Face model directory" in dry(registry, "tier-gpu", "--set", "model=empty").stderr
    assert dry(registry, "tier-gpu", "--set", "trainer.steps=x").exit_code == 2


def shapes() -> list[str]:
    """A shipped recipe of each trainer, set of keys and algorithm: many differ by a model or a number alone."""
    found = {}
    for name in sorted(shipped_recipes(), reverse=True):
        recipe = load_recipe(name).recipe
        found[recipe.trainer.name, frozenset(recipe.trainer.options), recipe.algorithm.name] = name
    return sorted(found.values())


@pytest.mark.parametrize("name", shapes())
@pytest.mark.parametrize("trainer", ["trl", "openrlhf"])
def test_another_trainer_keeps_names_or_refuses_every_key(name: str, trainer: str, registry: Registry) -> None:
    """``--set trainer=NAME`` changes who trains; what the table says is followed, listed, or refused by its name."""
    words = [name, "--set", f"trainer={trainer}", "--set", "model=models/Qwen3-8B", "--json"]
    done = dry(registry, *words)
    recipe = load_recipe(name).recipe
    table = recipe.trainer.options
    if done.exit_code:  # by name
        assert done.exit_code == 2
        assert any(word in done.stderr for key in table for word in (f"'{key}'", f"{key} ")) or (
            "algorithm." in done.stderr
        )
        return
    assert recipe.trainer.name != "sft"
    told = json.loads(done.stdout)
    if trainer == "trl":
        arguments = told["arguments"]
        assert arguments["learning_rate"] == table.get("learning_rate", 3e-4)
        assert arguments["max_steps"] == table["steps"] * table.get("mini_batches", 1) * table.get("iterations", 1)
        return
    argv = told["argv"]
    listed = {one["key"] for one in told["approximated"] + told["unsupported"]}

    def value(flag: str) -> float:
        return float(argv[argv.index(flag) + 1])

    assert f"holds {table['steps'] * table['prompts']} prompts" in json.dumps(told["files"]).replace('": "', " ")
    assert value("--actor.adam.lr") == table.get("learning_rate", 1e-6)
    assert value("--rollout.batch_size") == table["prompts"]
    assert value("--rollout.n_samples_per_prompt") == table["group"]
    for key in ("warm_start", "curriculum", "depths"):
        assert (f"trainer.{key}" in listed) == (key in table), key
    assert not set(told["defaults"]) & set(table)


def test_the_whole_table_is_replaced_where_that_is_said(registry: Registry) -> None:
    words = ["--set", 'trainer={name="openrlhf", steps=7}', "--set", "model=models/Qwen3-8B", "--json"]
    told = json.loads(dry(registry, "tier-cpu", *words).stdout)
    assert "trainer.warm_start" not in {one["key"] for one in told["unsupported"]}
    assert "learning_rate" in told["defaults"]


def test_what_does_not_fit_is_warned_of(registry: Registry) -> None:
    """Eight billion parameters, all of them trained, on one GPU: 16 bytes each."""
    words = ["--set", "trainer=openrlhf", "--set", "model=Qwen/Qwen3-8B", "--json"]
    done = dry(registry, "tier-cpu", *words)
    told = json.loads(done.stdout)
    sizes = {row["key"]: row["GiB"] for row in told["memory"]}
    whole = sum(sizes[key] for key in ("weights", "gradients", "optimizer"))
    assert whole == pytest.approx(16 * 8_190_735_360 / 2**30, rel=0.01)
    assert sizes["peak"] > whole
    assert "this may not fit" in done.stderr
