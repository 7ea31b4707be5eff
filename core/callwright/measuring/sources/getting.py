"""Getting: sources come into a folder of data, whole or not at all, and are known again there."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError
from callwright.measuring.sources.index import fetch, place_of
from callwright.measuring.sources.source import Source
from callwright.measuring.sources.unpacking import unpack

#: What the folder knows of its files: which archive each came of.
RECORD: Final = "sources.json"
_PARTIAL: Final = ".partial"


def missing(sources: Sequence[Source], folder: Path) -> list[Source]:
    """The sources that a folder does not hold as they were unpacked."""
    kept = _record(folder)
    return [source for source in sources if not _is_whole(kept.get(source.file), source, folder)]


def get(
    source: Source, folder: Path, index: str, said: Callable[[int], object] = lambda have: None
) -> Mapping[str, str]:
    """Bring a source into a folder; its files with their sha256. ``said`` hears how many bytes have come.

    What came of an archive stays when this is stopped, and is gone on with. Files are put in place when all of them
    are there. Raises :class:`callwright.errors.DataError` for another digest than the pinned one, for an archive that
    cannot be unpacked, and for a file that is there and is another one;
    :class:`callwright.InfrastructureFailure` where the connection fails.
    """
    partial = folder / _PARTIAL / source.file
    partial.parent.mkdir(parents=True, exist_ok=True)
    fetch(place_of(source, index), partial, source.size, said)
    with partial.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.sha256:
        partial.unlink()
        raise DataError(
            f"{source.file} of {index} is another one than was pinned: sha256 {found}, not {source.sha256}; it was "
            "removed, and nothing of it was unpacked"
        )
    aside = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder))
    try:
        files = unpack(partial, source, aside)
        _put(files, aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    kept = {**_record(folder), source.file: {"package": source.package, "sha256": source.sha256, "files": files}}
    _write(folder / RECORD, kept)
    partial.unlink()
    if not any(partial.parent.iterdir()):
        partial.parent.rmdir()
    return files


def _put(files: Mapping[str, str], aside: Path, folder: Path) -> None:
    for name, digest in files.items():
        there = folder / name
        if there.is_symlink() or (there.exists() and not (there.is_file() and _digest(there) == digest)):
            raise DataError(f"{there} is there, and another file than the archive's: move it away, or name another DIR")
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (aside / name).replace(folder / name)


def _is_whole(kept: Any, source: Source, folder: Path) -> bool:
    if not isinstance(kept, Mapping) or kept.get("sha256") != source.sha256:
        return False
    files = kept.get("files")
    if not isinstance(files, Mapping) or not files:
        return False
    return all((folder / name).is_file() and _digest(folder / name) == digest for name, digest in files.items())


def _record(folder: Path) -> dict[str, Any]:
    try:
        read = json.loads((folder / RECORD).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{folder / RECORD} cannot be read: {error}; remove it, and get the sources again") from error
    return read if isinstance(read, dict) else {}


def _write(path: Path, kept: Mapping[str, Any]) -> None:
    from callwright.training.run_folder import write_atomically

    write_atomically(path, json.dumps(kept, indent=1, sort_keys=True) + "\n")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
