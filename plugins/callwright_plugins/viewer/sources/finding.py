"""Sources: what there is to look at behind a path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import field, frozen

from callwright.episodes.logs.files import head_of, peeked
from callwright.errors import DataError, near_path
from callwright.measuring.folders import VERDICTS
from callwright.training.run_folder import METRICS, ROLLOUTS
from callwright.walk.task_rows.head import is_head

if TYPE_CHECKING:
    from callwright.plugins import Registry

Kind = Literal["run", "evaluation", "scored", "tasks", "log"]
TASKS: Final = "tasks.jsonl"
#: How deep folders of runs are searched: a grid has its runs two folders down.
_DEPTH: Final = 3
_PLAIN: Final = re.compile(r"[^\w.-]+")


@frozen
class Source:
    """Rows to look at. ``key`` names it in addresses, ``rows`` is the file that they stand in.

    ``folder`` is that of a run, an evaluation or a synthesis; a file by itself has none. ``format`` is that of a log.
    """

    key: str
    name: str
    kind: Kind
    rows: Path
    folder: Path | None = None
    format: str = field(default="", repr=False)

    @property
    def is_lines(self) -> bool:
        """Whether a row is a line that can be read by its place: not of a compressed file, and not of a log."""
        return self.kind != "log" and self.rows.suffix in (".jsonl", ".json", ".ndjson")

    def json(self, name: str) -> Any:
        """A JSON file of the folder; ``None`` where there is none that is whole."""
        if self.folder is None:
            return None
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def sources_of(paths: Iterable[Path], registry: Registry) -> list[Source]:
    """What the paths hold, each under a key of its own.

    Raises :class:`callwright.errors.DataError` for a path that is not there, and for one with nothing to look at.
    """
    found: list[Source] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"there is no {path}{near_path(path)}")
        some = list(_in_folder(path, _DEPTH)) if path.is_dir() else [_of_file(path, registry)]
        if not some:
            raise DataError(
                f"{path} holds nothing to look at: give a run, an evaluation, a synthesis, or a file of scored rows, "
                "tasks or traces"
            )
        found += some
    return _keyed(found)


def _in_folder(folder: Path, depth: int) -> Iterator[Source]:
    name = folder.resolve().name
    if (folder / METRICS).exists() or (folder / ROLLOUTS).exists():
        yield Source("", name, "run", folder / ROLLOUTS, folder)
    elif (folder / VERDICTS).exists():
        yield Source("", name, "evaluation", folder / VERDICTS, folder)
    elif (folder / TASKS).exists():
        yield Source("", name, "tasks", folder / TASKS, folder)
    elif (folder / "recipe.toml").exists() and (folder / "manifest.json").exists():
        yield Source("", name, "run", folder / ROLLOUTS, folder)  # one that has only begun
    elif depth:
        for one in sorted(folder.iterdir()):
            if one.is_dir() and not one.name.startswith("."):
                yield from _in_folder(one, depth - 1)


def _of_file(path: Path, registry: Registry) -> Source:
    row = peeked(head_of(path))
    name = path.name.partition(".")[0]
    if is_head(row):
        return Source("", name, "tasks", path)
    if "scores" in row and "total" in row:
        return Source("", name, "run" if "step" in row and "completion" in row else "scored", path)
    if {"task", "answer", "valid", "failure"} <= row.keys():
        return Source("", name, "evaluation", path)
    from callwright.episodes.logs.reading import recognised

    return Source("", name, "log", path, format=recognised(path, registry).name)


def _keyed(found: Iterable[Source]) -> list[Source]:
    made: dict[str, Source] = {}
    seen: set[Path] = set()
    for one in found:
        if (place := one.rows.resolve()) in seen:
            continue
        seen.add(place)
        plain = _PLAIN.sub("-", one.name).strip("-") or "source"
        key, number = plain, 1
        while key in made:
            number += 1
            key = f"{plain}-{number}"
        name = one.name if number == 1 else str(one.folder or one.rows)
        made[key] = Source(key, name, one.kind, one.rows, one.folder, one.format)
    return list(made.values())
