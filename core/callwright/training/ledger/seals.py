"""Seals: a checkpoint keeps the digests of its files, and how long each JSONL file was, in a file of its own.

A seal is the last file that is written into a checkpoint's folder before that appears under its name::

    {"position": [1, 25], "needs": ["reference"], "files": {"model.safetensors": "<sha256>"},
     "rows": {"metrics.jsonl": {"rows": 25, "bytes": 9120, "sha256": "<of these bytes>"}}}

``position`` orders those from which a run can go on; a folder that is only kept (``final``) has none. ``needs`` are
folders beside it without which it is of no use. Checkpoints of earlier versions have no seal and are taken as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from callwright.errors import RunError
from callwright.training.ledger.account import Change, note_changes
from callwright.training.run_folder import Run

SEAL: Final = "digests.json"
#: What a damaged folder is called from then on.
SET_ASIDE: Final = "set-aside-"
_PIECE: Final = 1 << 20


def seal(
    folder: Path,
    *,
    position: Sequence[int] | None = None,
    needs: Iterable[str] = (),
    rows: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write the digests of all files of a folder into it. Raises :class:`OSError`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SEAL)
    held = {
        **({} if position is None else {"position": list(position)}),
        **({"needs": sorted(needs)} if needs else {}),
        "files": {path.relative_to(folder).as_posix(): file_digest(path) for path in files},
        **({} if rows is None else {"rows": {name: dict(length) for name, length in rows.items()}}),
    }
    (folder / SEAL).write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Lengths:
    """How long the JSONL files of a folder are, with a running digest: each byte is read once."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._folder = folder
        self._read: dict[str, tuple[int, int, Any]] = {name: (0, 0, hashlib.sha256()) for name in names}

    def now(self) -> dict[str, dict[str, Any]]:
        """Rows, bytes and digest of each file."""
        return {name: self._of(name) for name in self._read}

    def _of(self, name: str) -> dict[str, Any]:
        rows, size, digest = self._read[name]
        path = self._folder / name
        if path.exists():
            with path.open("rb") as file:
                file.seek(size)
                while piece := file.read(_PIECE):
                    rows, size = rows + piece.count(b"\n"), size + len(piece)
                    digest.update(piece)
            self._read[name] = rows, size, digest
        return {"rows": rows, "bytes": size, "sha256": digest.hexdigest()}


# Looking --------------------------------------------------------------------------------------------------------------


@frozen
class Seal:
    """What a folder says of itself."""

    path: Path
    position: tuple[int, ...] | None = None
    needs: tuple[str, ...] = ()
    files: Mapping[str, str] = field(factory=dict, repr=False)
    rows: Mapping[str, Mapping[str, Any]] = field(factory=dict, repr=False)
    #: Whether there is a seal, and it can be read.
    sealed: bool = True
    readable: bool = True

    @classmethod
    def of(cls, path: Path) -> Seal:
        """The seal of a folder, whatever state that is in."""
        if not (path / SEAL).is_file():
            return cls(path, sealed=False)
        try:
            held = json.loads((path / SEAL).read_bytes())
            position = held.get("position")
            return cls(
                path,
                None if position is None else tuple(int(part) for part in position),
                tuple(str(name) for name in held.get("needs", ())),
                {str(name): str(digest) for name, digest in held["files"].items()},
                {
                    str(name): {"rows": int(one["rows"]), "bytes": int(one["bytes"]), "sha256": str(one["sha256"])}
                    for name, one in held.get("rows", {}).items()
                },
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(path, readable=False)

    def damage(self) -> list[str]:
        """What is wrong with its files, and with the folders that it needs: one sentence each."""
        if not self.readable:
            return [f"{self.path.name}/{SEAL} cannot be read"]
        found = []
        for name, digest in self.files.items():
            path = self.path / name
            try:
                if not path.is_file():
                    found.append(f"{self.path.name}/{name} is missing")
                elif file_digest(path) != digest:
                    found.append(f"{self.path.name}/{name} is damaged: its digest is not the one that was written down")
            except OSError as error:
                found.append(f"{self.path.name}/{name} cannot be read: {error.strerror or error}")
        for name in self.needs:
            needed = self.path.parent / name
            found += Seal.of(needed).damage() if needed.is_dir() else [f"{name} is missing"]
        return found

    def lost_rows(self, folder: Path) -> list[str]:
        """Which JSONL files no longer begin with the rows that they had: one sentence each."""
        found = []
        for name, length in self.rows.items():
            rows, digest = _beginning(folder / name, length["bytes"])
            if rows < length["rows"]:
                held = f"it holds {rows} of {length['rows']} rows" if (folder / name).exists() else "it is missing"
                found.append(f"{name} is not as {self.path.name} left it: {held}")
            elif digest != length["sha256"]:
                found.append(f"{name} is not as {self.path.name} left it: its first {length['rows']} rows were changed")
        return found


def _beginning(path: Path, size: int) -> tuple[int, str]:
    """Lines and digest of the first bytes of a file; of none if it is missing."""
    rows, digest = 0, hashlib.sha256()
    try:
        with path.open("rb") as file:
            while size > 0 and (piece := file.read(min(_PIECE, size))):
                rows, size = rows + piece.count(b"\n"), size - len(piece)
                digest.update(piece)
    except FileNotFoundError:
        pass
    return rows, digest.hexdigest()


def refuse_lost_rows(lost: Sequence[str], run: Run, say: Callable[[str], object]) -> None:
    """Raise :class:`callwright.errors.RunError` for rows that a checkpoint lacks, what :meth:`Seal.lost_rows` says.

    Where the run goes on in spite of it (``Run.accept_changes``), its ledger then says so.
    """
    if not lost:
        return
    if not run.accept_changes:
        raise RunError(
            f"{run.path}: {'; '.join(lost)}. Put the file back, go back to the last checkpoint that it fits "
            f"(callwright doctor {run.path} --repair), or go on as it is with --accept-changes, as its ledger will say"
        )
    note_changes(run.path, [Change(reason, "", "") for reason in lost])
    say(f"going on though {'; '.join(lost)}; written down in the ledger")


def aside_of(path: Path) -> Path:
    """A name that nobody reads, and that nothing has yet, beside a file or folder."""
    target = path.with_name(SET_ASIDE + path.name)
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{SET_ASIDE}{path.name}-{number}")
    return target


def set_aside(path: Path) -> Path:
    """Give a folder a name that nobody reads. Raises :class:`callwright.errors.RunError`."""
    try:
        return path.rename(aside_of(path))
    except OSError as error:
        raise RunError(f"{path} cannot be set aside: {error.strerror or error}") from error


def last_good(checkpoints: Sequence[Path], say: Callable[[str], object], run: Path) -> Path | None:
    """The newest of some checkpoints (oldest first) whose files are as they were written; ``None`` if there is none.

    Damaged ones that are newer are set aside, with a word. Raises :class:`callwright.errors.RunError` if all of them
    are damaged: nothing is begun anew without being asked for.
    """
    damaged: list[tuple[Path, list[str]]] = []
    for path in reversed(checkpoints):
        damage = Seal.of(path).damage()
        if not damage:
            for bad, wrong in damaged:
                say(f"{'; '.join(wrong)}: {bad.name} is set aside; going on from {path.name}")
                set_aside(bad)
            return path
        damaged.append((path, damage))
    if damaged:
        reasons = "; ".join(dict.fromkeys(reason for _, listed in damaged for reason in listed))
        raise RunError(
            f"{run}: no checkpoint is whole: {reasons}. Put the files back, or let the run begin again from there "
            f"where it can: callwright doctor {run} --repair"
        )
    return None


# Doctor ---------------------------------------------------------------------------------------------------------------


@define
class Examination:
    """What is wrong with the checkpoints of a run, and from where it can go on."""

    folder: Path
    #: One sentence for each thing that is wrong.
    damage: list[str] = field(factory=list)
    #: The newest checkpoint whose files are whole and whose rows are there; "" for the beginning.
    good: str = ""
    #: Rows that are there, or should be, and will be made again, by their file.
    lost: dict[str, int] = field(factory=dict)
    #: The folders that a repair sets aside.
    bad: list[Path] = field(factory=list)
    checkpoints: int = 0
    unsealed: list[str] = field(factory=list)


def _sealed_within(path: Path, hidden: tuple[str, ...]) -> list[Path]:
    """A folder; or those deeper in it that have seals, which are another program's checkpoints, and their like."""
    deeper = sorted(one.parent for one in path.rglob(SEAL) if one.parent != path)
    sealed = [one for one in deeper if not any(part.startswith(hidden) for part in one.relative_to(path).parts)]
    if not sealed:
        return [path]
    if (path / SEAL).is_file():
        return sealed
    beside = [one for base in dict.fromkeys(one.parent for one in sealed) for one in sorted(base.iterdir())]
    return sealed + [
        one
        for one in beside
        if one.is_dir() and not one.name.startswith(hidden) and not any(whole.is_relative_to(one) for whole in sealed)
    ]


def examine(folder: Path) -> Examination:
    """Look over the checkpoints of a run folder, and the rows that belong to them. Every file is read once or twice."""
    found = Examination(folder)
    base = folder / "checkpoints"
    hidden = (".", SET_ASIDE)
    paths = sorted(path for path in base.glob("*") if path.is_dir() and not path.name.startswith(hidden))
    seals = [Seal.of(one) for path in paths for one in _sealed_within(path, hidden)]
    found.unsealed = list(dict.fromkeys(one.path.name for one in seals if not one.sealed))
    ordered = sorted((one for one in seals if one.position is not None), key=lambda one: one.position or ())
    found.checkpoints = len(ordered)
    good: Seal | None = None
    for one in reversed(ordered):
        reasons = one.damage() + one.lost_rows(folder)
        if not reasons:
            good = one
            break
        found.damage += reasons
        found.bad.append(one.path)
    for one in seals:
        broken = [] if one.position is not None else one.damage()
        if broken:
            found.damage += broken
            needed = good is not None and one.path.name in good.needs
            if not needed:
                found.bad.append(one.path)
    if any(one.path in found.bad for one in ordered):
        # What came of them is of rows that will be made again.
        found.bad += [base / name for name in ("final",) if (base / name).is_dir() and base / name not in found.bad]
        newest = ordered[-1]
        for name, length in newest.rows.items():
            kept = good.rows.get(name, {}).get("rows", 0) if good is not None else 0
            found.lost[name] = max(length["rows"], _beginning(folder / name, 1 << 62)[0]) - kept
    found.good = good.path.name if good is not None else ""
    found.damage = list(dict.fromkeys(found.damage))
    return found
