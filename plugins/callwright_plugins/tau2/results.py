"""Official result files: one file of all simulations, or a folder with a file for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.compression.packing import unpacked
from callwright.errors import DataError

_META: Final = "results.json"
_FOLDER: Final = "simulations"


def simulations(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
    """The simulations of a result file or folder, each with its place: ``{"id", "simulation", "task"}``; ``None`` for
    any other file.

    ``task`` is the task as the file states it; left out where it does not. Raises
    :class:`callwright.errors.DataError` for a folder without results and for a file of them that is damaged.
    """
    if path.is_dir():
        file = path / _META
        if not file.is_file():
            raise DataError(f"{path} has no {_META}: it is no folder of results of tau2-bench")
        read = _read(file)
        if read is None:
            raise DataError(f"{file} holds no results of tau2-bench")
    else:
        file = path
        read = _read(file) if path.is_file() else None
        if read is None:
            return None
    return _rows(file, read)


def _read(file: Path) -> Mapping[str, Any] | None:
    """The object of a result file; ``None`` for what is none, such as a file of rows."""
    try:
        with file.open("rb") as raw, unpacked(raw, str(file)) as opened:
            read = json.loads(opened.read())
    except (OSError, EOFError, ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) and isinstance(read.get("tasks"), list) else None


def _rows(file: Path, read: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    stated = {one.get("id"): one for one in read["tasks"] if isinstance(one, Mapping)}
    listed = read.get("simulations")
    found: list[tuple[str, Any]] = []
    if isinstance(listed, list) and listed:
        found = [(f"{file}: simulations[{number}]", one) for number, one in enumerate(listed)]
    for one in sorted((file.parent / _FOLDER).glob("*.json")) if not found else ():
        try:
            found.append((str(one), json.loads(one.read_text("utf-8"))))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{one} cannot be read as JSON: {error}") from error
    for where, simulation in found:
        if not isinstance(simulation, Mapping) or not isinstance(simulation.get("task_id"), str):
            raise DataError(f"{where}: a simulation is an object with 'task_id' and 'messages'")
        task = stated.get(simulation["task_id"])
        yield where, {"id": simulation["task_id"], "simulation": simulation, **({} if task is None else {"task": task})}
