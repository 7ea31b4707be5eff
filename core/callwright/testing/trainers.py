"""Checks of trainers: what can be told without training, and, where a recipe is given, of short runs by it."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from callwright.capability import has
from callwright.errors import MissingExtra, UsageError
from callwright.pipeline import build_pipeline
from callwright.plugins import Registry, default_registry
from callwright.recipe_file import LoadedRecipe, load_recipe, parse_recipe
from callwright.testing.checks import CheckSkipped
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown
from callwright.training.recipe_run import run_pipeline
from callwright.training.reporter import SILENT, Reporter
from callwright.training.run_folder import METRICS
from callwright.training.trainer import Checking, Planning, SamplesGroups, Trainer

#: A recipe whose model is nowhere: a trainer that looks at it before it trains has something to say.
_NO_MODEL: Final = """\
name = "kit"
corpus = "nothing"
ir = "json"
reward = "nothing"
trainer = "nothing"

[model]
path = "a-folder-that-does-not-exist"
"""

_Given = str | Path | Mapping[str, Any] | LoadedRecipe
Recipe = _Given | None


class _Stopped(BaseException):
    """What ends a run in the middle. No exception of the code under test, so that nobody catches it as one."""


class _Listening:
    """A reporter that counts, and that stops the run when the first unit of a stage is done, if it is to."""

    def __init__(self, stop: bool = False) -> None:
        self.stop = stop
        self.begun = self.ended = self.advanced = 0

    def start(self, stage: str, total: int, done: int = 0) -> None:
        self.begun += 1

    def advance(self, units: int = 1, **figures: float) -> None:
        self.advanced += units
        if self.stop:
            raise _Stopped

    def say(self, text: str) -> None:
        pass

    def finish(self) -> None:
        self.ended += 1


def check_trainer(trainer: Trainer) -> None:
    """It has the members of :class:`callwright.Trainer` and a name."""
    expect_members(trainer, Trainer)
    expect_name(trainer)


def check_signature(trainer: Trainer) -> None:
    """``train`` takes a pipeline and a run, and a reporter by name that may be left out."""
    signature = inspect.signature(trainer.train)
    for names in ({}, {"reporter": SILENT}):
        try:
            signature.bind(None, None, **names)
        except TypeError as error:
            called = "train(pipeline, run" + "".join(f", {name}=…" for name in names) + ")"
            raise AssertionError(f"{called} cannot be called: {error}; it has the parameters {signature}") from error


def check_group(trainer: Trainer) -> None:
    """How many completions it samples for a prompt, where it says so, is a whole number from 1 on."""
    if has(trainer, SamplesGroups):
        group = trainer.group
        expect(type(group) is int and group >= 1, f"group must be a whole number, 1 or more, but is {group!r}")


def check_mistakes(trainer: Trainer) -> None:
    """The mistakes of a recipe that it tells before it trains are UsageErrors in words, the same when asked again."""
    if not has(trainer, Checking):
        return
    told = []
    for _ in range(2):
        try:
            with_no_model = parse_recipe(_NO_MODEL)
            found = list(trainer.check(with_no_model, None))
        except MissingExtra:
            return
        except Exception as error:
            raise AssertionError(
                f"check(loaded, None) raised {type(error).__name__}: {error}; it returns mistakes, and is asked "
                "without a pipeline where the other components cannot be made"
            ) from error
        for mistake in found:
            expect(isinstance(mistake, UsageError), f"check() gave {shown(mistake)}, which is no UsageError")
            expect(bool(str(mistake).strip()), "check() gave a mistake without words")
        told.append([str(mistake) for mistake in found])
    expect(told[0] == told[1], f"check() told {shown(told[0])}, then {shown(told[1])}, of the same recipe")


def check_plan(trainer: Trainer, recipe: Recipe = None, registry: Registry | None = None) -> None:
    """What it would do, where it says so beforehand, is JSON and the same when it is asked again."""
    if not has(trainer, Planning):
        return
    pipeline = build_pipeline(load_recipe(_given(recipe)), registry or default_registry())
    plans = []
    for _ in range(2):
        with never_raises("dry_run(pipeline)"):
            plan = trainer.dry_run(pipeline)
        try:
            plans.append(json.dumps(dict(plan), sort_keys=True, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise AssertionError(f"dry_run() is no JSON object: {error}") from error
    expect(plans[0] == plans[1], f"dry_run() said {shown(plans[0])}, then {shown(plans[1])}")


def check_run(trainer: Trainer, recipe: Recipe = None, registry: Registry | None = None) -> None:
    """A run leaves rows of finite numbers and an evaluation, tells its stages, and is over when it is trained again."""
    given = _given(recipe)
    with tempfile.TemporaryDirectory() as folder:
        heard = _Listening()
        with never_raises("train()"):
            _train(trainer, given, registry, Path(folder), heard)
        rows = _rows(Path(folder))
        expect(bool(rows), f"{METRICS} has no row")
        for number, row in enumerate(rows, 1):
            for name, value in row.items():
                finite = not isinstance(value, float) or math.isfinite(value)
                expect(finite, f"row {number} of {METRICS} has {name} = {value!r}; a figure that is none is null")
        evaluation = Path(folder, "evaluation.json")
        expect(evaluation.is_file(), "the run left no evaluation.json")
        expect(isinstance(json.loads(evaluation.read_text("utf-8")), dict), "evaluation.json is no JSON object")
        expect(heard.begun > 0, "the reporter heard of no stage: call reporter.start(stage, total, done)")
        expect(heard.ended >= 1, "the reporter heard of no end of a stage: call reporter.finish()")
        before = _kept(Path(folder))
        with never_raises("train() of a run that is finished"):
            _train(trainer, given, registry, Path(folder), SILENT)
        _expect_equal(before, _kept(Path(folder)), "trained again, a finished run")


def check_goes_on(trainer: Trainer, recipe: Recipe = None, registry: Registry | None = None) -> None:
    """A run that was stopped in the middle and goes on ends in the same rows as one that was not."""
    given = _given(recipe)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as parts:
        _train(trainer, given, registry, Path(whole), SILENT)
        heard = _Listening(stop=True)
        with contextlib.suppress(_Stopped):
            _train(trainer, given, registry, Path(parts), heard)
        expect(heard.advanced > 0, "the reporter heard of no progress: call reporter.advance(1) after each unit")
        with never_raises("train() of a run that was stopped"):
            _train(trainer, given, registry, Path(parts), SILENT)
        _expect_equal(_kept(Path(whole)), _kept(Path(parts)), "the run that was stopped and went on")


def _given(recipe: Recipe) -> _Given:
    if recipe is None:
        raise CheckSkipped("it trains by a recipe, and none was given: check_component(…, recipe='short.toml')")
    return recipe


def _train(trainer: Trainer, recipe: _Given, registry: Registry | None, folder: Path, to: Reporter) -> None:
    run_pipeline(
        build_pipeline(load_recipe(recipe), registry or default_registry()), trainer, output=folder, reporter=to
    )


def _rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / METRICS
    expect(path.is_file(), f"the run left no {METRICS}")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    expect(all(isinstance(row, dict) for row in rows), f"{METRICS} holds lines that are no JSON objects")
    return rows


def _kept(folder: Path) -> dict[str, Any]:
    """What a run ends in; how long things took is another time's matter."""
    rows = [{name: value for name, value in row.items() if "seconds" not in name} for row in _rows(folder)]
    evaluation = folder / "evaluation.json"
    return {
        METRICS: rows,
        "evaluation.json": json.loads(evaluation.read_text("utf-8")) if evaluation.is_file() else None,
    }


def _expect_equal(wanted: dict[str, Any], found: dict[str, Any], what: str) -> None:
    for name, value in wanted.items():
        if found[name] != value:
            raise AssertionError(f"{what} has another {name}: {shown(found[name])} in place of {shown(value)}")


TRAINER_CHECKS: Final = (
    check_trainer,
    check_signature,
    check_group,
    check_mistakes,
    check_plan,
    check_run,
    check_goes_on,
)
