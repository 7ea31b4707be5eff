"""Folders: what a synthesis left, read for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.errors import DataError

_MANIFEST: Final = "manifest.json"
_REJECTED: Final = "rejected.jsonl"


def task_file(path: Path) -> Path:
    """The file of tasks that is meant: a file itself, or that of a finished synthesis.

    Raises :class:`callwright.errors.DataError` for a folder that holds none.
    """
    return path if not path.is_dir() else path / _named_in(path, read_manifest(path))


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """The manifest of a finished synthesis. Raises :class:`callwright.errors.DataError` where there is none."""
    path = folder / _MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        within = sorted(one.parent for one in folder.glob(f"*/{_MANIFEST}"))  # of synthesize mcp, in its folder
        meant = f". Did you mean {within[0]}?" if within else ""
        raise DataError(
            f"{folder} holds no finished synthesis: {_why(path, error)}; callwright synthesize leaves one, and goes on "
            f"with one that was stopped{meant}"
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("yields"), dict):
        raise DataError(f"{folder / _MANIFEST} is no manifest of a synthesis")
    return found


def _why(path: Path, error: OSError | ValueError) -> str:
    if not path.parent.exists():
        return "there is no such folder"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"no file {path.name} is in it"
    told = error.strerror if isinstance(error, OSError) else "it is not JSON"
    return f"{path.name} cannot be read ({told})"


def _named_in(folder: Path, manifest: Mapping[str, Any]) -> str:
    files = manifest.get("files")
    for name in files if isinstance(files, dict) else {}:
        if name != _REJECTED:
            return str(name)
    raise DataError(f"{folder / _MANIFEST} names no file of tasks")


@frozen
class Rejection:
    """A unit that became no task: the stage that said so, why, and what shows it."""

    unit: str
    stage: str
    reason: str
    evidence: Any


def rejections(folder: Path) -> Iterator[Rejection]:
    """The units of a synthesis that became no task; none where the file is missing."""
    path = folder / _REJECTED
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                yield Rejection(str(row["unit"]), str(row["stage"]), str(row["reason"]), row.get("evidence"))
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"{path}:{number}: no rejected unit ({error})") from error
