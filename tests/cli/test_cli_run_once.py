"""``callwright run`` reads its recipe once and makes every component once, also where the trainer is asked first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cli_fakes
import pytest
from click.testing import Result

import callwright as cw
from callwright import recipe_file
from callwright.errors import RecipeError
from callwright.training.reporter import SILENT, Reporter

Invoke = Callable[..., Result]


class Careful(cli_fakes.Slow):
    """A trainer that says beforehand what it would do."""

    name = "careful"

    def train(self, pipeline: cw.Pipeline, run: cw.Run, *, reporter: Reporter = SILENT) -> None:
        run.append("metrics.jsonl", [{"step": step + 1, "reward": 0.5} for step in range(self.steps)])

    def dry_run(self, pipeline: cw.Pipeline, *, strict: bool = False) -> Mapping[str, Any]:
        if strict and self.pause:
            raise RecipeError("pauses are not to the letter")
        return {"steps": self.steps}


@pytest.fixture
def made(registry: cw.Registry, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kind of component was made, and how often a recipe was read."""
    lazy = cw.Lazy("careful", Careful, "plans")
    registry.add(SimpleNamespace(callwright_trainers=cw.hookimpl(lambda: [lazy])), name="careful")
    counted: Counter[str] = Counter()
    create, parse = registry.create, recipe_file.parse_recipe

    def creating(kind: str, name: str, /, **options: Any) -> Any:
        counted[kind] += 1
        return create(kind, name, **options)

    def parsing(*arguments: Any) -> Any:
        counted["recipe"] += 1
        return parse(*arguments)

    monkeypatch.setattr(registry, "create", creating)
    monkeypatch.setattr(recipe_file, "parse_recipe", parsing)
    return counted


OPTIONS = ("--set", "trainer.name=careful", "--set", "trainer.steps=2", "--set", "corpus.count=9")
ONCE = {"recipe": 1, "corpus": 1, "parser": 1, "reward recipe": 1, "algorithm": 1, "trainer": 1}


@pytest.mark.parametrize("more", [(), ("--strict",)], ids=["as it is", "strict"])
def test_a_run(invoke: Invoke, recipe: Path, tmp_path: Path, made: Counter[str], more: tuple[str, ...]) -> None:
    result = invoke("run", recipe, *OPTIONS, *more, "-o", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert made == ONCE


@pytest.mark.parametrize("more", [(), ("--strict",)], ids=["as it is", "strict"])
def test_a_dry_run(invoke: Invoke, recipe: Path, made: Counter[str], more: tuple[str, ...]) -> None:
    assert invoke("run", recipe, *OPTIONS, "--dry-run", *more).stdout == "steps: 2\n"
    assert made == ONCE


def test_a_trainer_that_was_written_before_it_has_no_strict_except(
    invoke: Invoke, recipe: Path, made: Counter[str]
) -> None:
    result = invoke("run", recipe, *OPTIONS, "--strict-except", "trainer.pause", "--dry-run")
    said = "error: the trainer 'careful' was written for --strict alone; it has no --strict-except\n"
    assert (result.exit_code, result.stderr) == (2, said)


def test_what_is_refused_trains_nothing(invoke: Invoke, recipe: Path, tmp_path: Path, made: Counter[str]) -> None:
    result = invoke("run", recipe, *OPTIONS, "--set", "trainer.pause=0.1", "--strict", "-o", tmp_path / "run")
    assert (result.exit_code, result.stderr) == (2, "error: pauses are not to the letter\n")
    assert made == ONCE
    assert not (tmp_path / "run").exists()
