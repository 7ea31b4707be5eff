"""Rows of the files by scenario. A file is gone through once: after that, where each scenario's rows are is known."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from callwright.errors import DataError, UnknownName, cannot_read


def normalised(scenario: str) -> str:
    """A scenario's name as the files' own reader compares it."""
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_]", "_", scenario.lower())).strip("_")


def scenarios(path: Path) -> dict[str, tuple[int, ...]]:
    """The scenarios of a file in its order, and the bytes at which the rows of each begin.

    Raises :class:`callwright.errors.DataError` for a file that cannot be read, with the line that is wrong.
    """
    try:
        state = path.stat()
        return _scenarios(path, state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise cannot_read(path, error) from error


@lru_cache(maxsize=32)
def _scenarios(path: Path, _size: int, _changed: int) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    begin = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    name = normalised(json.loads(line)["scenario"])
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise DataError(f"{path}:{number}: no object with a scenario: {error!r}") from error
                found[name] = (*found.get(name, ()), begin)
            begin += len(line)
    return found


def rows(path: Path, world: str) -> list[dict[str, Any]]:
    """The rows of a scenario, by its normalised name.

    Raises :class:`callwright.errors.DataError` for a file that cannot be read, and
    :class:`callwright.errors.UnknownName` for a scenario that is not in it.
    """
    places = scenarios(path)
    if world not in places:
        raise UnknownName(f"world of {path}", world, places)
    try:
        with path.open("rb") as file:
            found = []
            for place in places[world]:
                file.seek(place)
                found.append(json.loads(file.readline()))
            return found
    except OSError as error:
        raise cannot_read(path, error) from error
