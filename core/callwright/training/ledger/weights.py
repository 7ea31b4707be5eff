"""Digests of the models that rows are made with: the files of a folder that a recipe or a sampler names.

The digest of a file is computed once and kept in ``ledger-weights.json`` with the file's size and time of change; while
those are the same it is not read again. A model that is named by a hub's name is not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.errors import RunError
from callwright.training.ledger.seals import file_digest
from callwright.training.run_folder import write_atomically

WEIGHTS: Final = "ledger-weights.json"
#: What makes a folder one of a model.
_CONFIG: Final = "config.json"


def model_folder(named: Any) -> Path | None:
    """The folder of the model that a value names; of a run folder its trained model. ``None`` if there is none."""
    if not isinstance(named, str) or not named:
        return None
    try:
        for folder in (Path(named) / "checkpoints" / "final", Path(named)):
            if (folder / _CONFIG).is_file():
                return folder
    except (OSError, ValueError):  # a text that is too long for a path, or holds a null byte
        pass
    return None


def weight_digests(folder: Path, named: Iterable[Any]) -> dict[str, dict[str, str]]:
    """By each value that names a model's folder the SHA-256 of its files by their names; hidden ones are left out.

    ``folder`` is where the digests are kept. Raises :class:`callwright.errors.RunError` if a file cannot be read.
    """
    kept = _kept(folder)
    found: dict[str, dict[str, str]] = {}
    looked_at: dict[str, list[Any]] = {}
    for one in named:
        model = model_folder(one)
        if model is None:
            continue
        files = found[str(one)] = {}
        for path in sorted(model.iterdir()):
            if path.is_file() and not path.name.startswith("."):
                known = looked_at[str(path.resolve())] = _looked_at(path, kept.get(str(path.resolve())))
                files[path.name] = known[2]
    if looked_at and looked_at != kept:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / WEIGHTS, json.dumps(looked_at, indent=0, sort_keys=True) + "\n")
    return found


def _looked_at(path: Path, known: Any) -> list[Any]:
    """Size, time of change in ns, and digest of a file; what is ``known`` of it if it is the same by the first two."""
    try:
        told = path.stat()
        same = isinstance(known, list) and known[:2] == [told.st_size, told.st_mtime_ns]
        if same and len(known) == 3 and isinstance(known[2], str):
            return list(known)
        return [told.st_size, told.st_mtime_ns, file_digest(path)]
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error


def _kept(folder: Path) -> Mapping[str, Any]:
    """What was written down; nothing where that cannot be read, for then every file is read again."""
    try:
        found = json.loads((folder / WEIGHTS).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
