"""What a grid is made of: a recipe, the values of some of its keys, and seeds."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
from attrs import evolve, frozen

from callwright.errors import FolderTaken, RunError
from callwright.training.ledger.owner import LOCK
from callwright.training.run_folder import Run, write_atomically

PLAN: Final = "plan.json"
#: More runs than anybody means.
MOST: Final = 10_000


@frozen
class Setting:
    """One combination of values. ``name`` is for people, ``folder`` for its runs; ``overrides`` are ``key=value``."""

    name: str
    folder: str
    overrides: tuple[str, ...]


@frozen
class GridRun:
    """One run of a grid: a setting and a seed; ``key`` is its folder inside the grid's."""

    setting: Setting
    seed: int

    @property
    def key(self) -> str:
        return f"{self.setting.folder}/seed-{self.seed}"

    @property
    def name(self) -> str:
        """The setting and the seed, for people."""
        return f"{self.setting.name}, seed {self.seed}"


@frozen
class Plan:
    """A grid. ``text`` is the recipe with the overrides of every run (``fixed``) applied.

    ``over`` are the keys that vary with their values, in the order of the command line: the last varies fastest.
    """

    recipe: str
    text: str
    fixed: tuple[str, ...]
    over: tuple[tuple[str, tuple[str, ...]], ...]
    seeds: tuple[int, ...]

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Every combination of values; one with nothing set where no key varies."""
        if not self.over:
            return (Setting("as it stands", "recipe", ()),)
        labels = _labels([key for key, _ in self.over])
        made: list[Setting] = []
        for values in itertools.product(*(values for _, values in self.over)):
            named = [f"{label}={value.strip()}" for label, value in zip(labels, values, strict=True)]
            overrides = tuple(f"{key}={value}" for (key, _), value in zip(self.over, values, strict=True))
            folder = re.sub(r"[^\w.+=-]+", "_", ",".join(named), flags=re.ASCII)[:80].strip("._") or "setting"
            if any(folder.lower() == one.folder.lower() for one in made):
                folder = f"{folder}-{len(made) + 1}"
            made.append(Setting(", ".join(named), folder, overrides))
        return tuple(made)

    @property
    def runs(self) -> tuple[GridRun, ...]:
        """The first seed of every setting, then the second: whatever is there compares."""
        return tuple(GridRun(setting, seed) for seed in self.seeds for setting in self.settings)

    def to_json(self) -> dict[str, Any]:
        """What ``plan.json`` holds."""
        return {
            "recipe": self.recipe,
            "set": list(self.fixed),
            "over": {key: list(values) for key, values in self.over},
            "seeds": list(self.seeds),
            "recipe_text": self.text,
        }

    def settle(self, folder: Path) -> Plan:
        """Make the folder of this grid, or take it up again; returns the plan with the seeds of both.

        A grid may get more seeds, which change nothing about the runs that are there. Raises
        :class:`callwright.errors.FolderTaken` if the folder holds another grid or anything else, and
        :class:`callwright.errors.RunError` if it cannot be written.
        """
        whole = self
        stored = Run(folder).read_json(PLAN)
        if isinstance(stored, dict):
            stated = self.to_json()
            differing = [key for key in ("set", "over", "recipe_text") if stored.get(key) != stated[key]]
            if "recipe_text" in differing and stored.get("set") != stated["set"]:
                differing.remove("recipe_text")  # which follows from the first
            if differing:
                said = ", ".join(
                    {"set": "--set or --unset", "over": "--over", "recipe_text": "the recipe"}[key] for key in differing
                )
                raise FolderTaken(f"{folder} holds another grid (other: {said}); choose another folder (-o)")
            whole = evolve(self, seeds=tuple(sorted({*self.seeds, *_seeds_of(stored)})))
        elif folder.is_dir() and any(not path.name.startswith(LOCK) for path in folder.iterdir()):
            raise FolderTaken(f"{folder} is not empty and holds no grid; choose another folder (-o)")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{folder} cannot be written: {error.strerror or error}") from error
        write_atomically(folder / PLAN, json.dumps(whole.to_json(), indent=2) + "\n")
        return whole


def _seeds_of(stored: dict[str, Any]) -> list[int]:
    found = stored.get("seeds")
    return [seed for seed in found if type(seed) is int] if isinstance(found, list) else []


def _labels(keys: Sequence[str]) -> list[str]:
    """Short names of keys: ``learning_rate`` of ``trainer.learning_rate``, ``reward`` of ``reward.name``."""
    shortened = [key.removesuffix(".name").rpartition(".")[2] for key in keys]
    return [short if shortened.count(short) == 1 else key for short, key in zip(shortened, keys, strict=True)]


def read_over(options: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The ``--over KEY=V1,V2`` options. Commas inside of brackets and quotes do not part values.

    Raises :class:`click.UsageError`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for option in options:
        key, sign, text = option.partition("=")
        key = ".".join(part.strip() for part in key.split("."))
        values = tuple(value.strip() for value in _parted(text))
        if not sign or not key or not all(values):
            raise click.UsageError(f"--over {option}: expected KEY=V1,V2,…, such as trainer.learning_rate=1e-4,3e-4")
        if key == "seed":
            raise click.UsageError("--over seed=…: seeds are given by --seeds, such as --seeds 0-3")
        if key in found:
            raise click.UsageError(f"--over {key} is given twice; give all its values in one")
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise click.UsageError(f"--over {option}: the value {twice} is given twice")
        found[key] = values
    return tuple(found.items())


def _parted(text: str) -> Iterator[str]:
    start = depth = 0
    quote = ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not (quote == '"' and _escaped(text, at)) else quote
        elif character in "\"'":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _escaped(text: str, at: int) -> bool:
    before = text[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def read_seeds(text: str) -> tuple[int, ...]:
    """``0-3`` or ``1,5,9`` or both, sorted and each once. Raises :class:`click.UsageError`."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,12})\s*(?:-\s*([0-9]{1,12})\s*)?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise click.UsageError(f"--seeds {text}: expected numbers and ranges, such as 0-3 or 1,5,9")
        if last - first >= MOST:
            raise click.UsageError(f"--seeds {text}: more than {MOST:,} seeds")
        found.update(range(first, last + 1))
    return tuple(sorted(found))
