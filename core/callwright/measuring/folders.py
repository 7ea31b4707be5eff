"""Evaluation folders as others read them: what was measured on what, with every verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from callwright.errors import DataError, near_path
from callwright.measuring.rows import Row, rewards_of, verdict_of
from callwright.training.run_folder import Run
from callwright.training.summary import summarise
from callwright.training.verdicts import Verdict

SETTINGS: Final = "settings.json"
VERDICTS: Final = "verdicts.jsonl"
RESULT: Final = "evaluation.json"
#: Options of a sampler by which people call a checkpoint, the first that it has.
_NAMING: Final = ("model", "run", "path", "checkpoint")


@frozen(eq=False)
class Evaluated:
    """What ``callwright evaluate -o`` left in a folder, finished or not. ``name`` is the checkpoint's in tables."""

    path: Path
    name: str
    settings: Mapping[str, Any] = field(repr=False)
    verdicts: Sequence[Verdict] = field(repr=False)
    #: Byte at which the row of each verdict begins.
    places: Sequence[int] = field(repr=False)
    rewards: Mapping[tuple[str, int], float] = field(repr=False)
    #: What the finished result says of its benchmark: ``benchmark`` (official or not, and why) and ``values``.
    stated: Mapping[str, Any] = field(factory=dict, repr=False)

    @property
    def benchmark(self) -> str:
        """What it was measured on: the benchmark, else corpus and split."""
        stated = self.settings.get("benchmark")
        if isinstance(stated, str):
            return stated
        corpus = self.settings.get("corpus")
        corpus = corpus if isinstance(corpus, Mapping) else {}
        return f"{corpus.get('name', '?')}, {corpus.get('split', '?')}"

    def summary(self, by: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
        """The result, made of the rows, with what the benchmark made of them."""
        return {**summarise(self.verdicts, by, self.rewards), **self.stated}

    @property
    def unofficial(self) -> Sequence[str]:
        """Why the result is not official, in words; empty where it is, and where nothing says."""
        benchmark = self.stated.get("benchmark")
        why = benchmark.get("why") if isinstance(benchmark, Mapping) else None
        return [str(reason) for reason in why] if isinstance(why, list) else []

    def row(self, place: int) -> Row:
        """The row of the n-th verdict, read again."""
        with (self.path / VERDICTS).open("rb") as file:
            file.seek(self.places[place])
            row: Row = json.loads(file.readline())
            return row


def inner_evaluations(path: Path) -> list[str]:
    """The names of evaluations inside of a folder, as that of a suite has them."""
    return sorted(one.parent.name for one in path.glob(f"*/{SETTINGS}"))


def read_evaluated(path: Path, name: str | None = None) -> Evaluated:
    """Read an evaluation folder. A torn last line of one that was stopped is left out.

    Raises :class:`callwright.errors.DataError` for a folder that holds no evaluation, and for a row that the command
    did not write.
    """
    settings = Run(path).read_json(SETTINGS) if path.is_dir() else None
    if not isinstance(settings, dict):
        if (path / "recipe.toml").is_file():
            raise DataError(
                f"{path} is a run, no evaluation: evaluate its model into a folder of its own (evaluate -o)"
            )
        if inner := inner_evaluations(path):
            which = f"{path / inner[0]}, for one" if len(inner) > 1 else f"{path / inner[0]}"
            raise DataError(f"{path} is no evaluation, and has some in it: name {which} ({', '.join(inner)})")
        raise DataError(
            f"{path} is no evaluation: it has no {SETTINGS}; callwright evaluate -o {path} makes one{near_path(path)}"
        )
    verdicts, places = [], []
    rewards: dict[tuple[str, int], float] = {}
    try:
        with (path / VERDICTS).open("rb") as file:
            offset = 0
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    row = _row(line, number, path / VERDICTS)
                    verdicts.append(verdict_of(row, number, path / VERDICTS))
                    places.append(offset)
                    rewards |= rewards_of([row])
                offset += len(line)
    except FileNotFoundError as error:
        raise DataError(f"{path} has no {VERDICTS} yet: the same evaluation given again goes on") from error
    result = Run(path).read_json(RESULT)
    result = result if isinstance(result, dict) else {}
    stated = {key: result[key] for key in ("benchmark", "values") if isinstance(result.get(key), dict)}
    return Evaluated(
        path,
        name or checkpoint_name(settings.get("sampler"), path.resolve().name),
        settings,
        verdicts,
        places,
        rewards,
        stated,
    )


def _row(line: bytes, number: int, path: Path) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: no JSON: {error}") from error
    if not isinstance(row, dict):
        raise DataError(f"{path}:{number}: no object")
    return row


def checkpoint_name(sampler: Any, otherwise: str) -> str:
    """What tables call a checkpoint: the model of a sampler's settings, else the sampler with its options."""
    if not isinstance(sampler, Mapping):
        return otherwise
    for option in _NAMING:
        stated = sampler.get(option)
        if isinstance(stated, str) and stated:
            return stated
    options = [f"{key}={value}" for key, value in sampler.items() if key != "name"]
    return " ".join([str(sampler.get("name", otherwise)), *options[:2]])
