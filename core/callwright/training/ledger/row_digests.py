"""Digests of finished rows: whether any row of a JSONL file was edited or damaged since it was written, and which one.

Beside ``verdicts.jsonl`` lies ``verdicts.jsonl.sha256``. Its n-th line is the SHA-256 of the first n rows, as
``head -n N verdicts.jsonl | sha256sum`` prints it. A digest is written before its row: a kill between the two leaves a
digest too many, which is forgotten, and never a row that nothing vouches for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.errors import RunError
from callwright.training.ledger.account import Change, note_changes
from callwright.training.run_folder import append_bytes, jsonl_lines, write_atomically

#: What is behind the name of the rows in that of their digests.
SUFFIX: Final = ".sha256"
#: Of a line of digests: 64 hex digits and the line end.
_WIDTH: Final = 65


@frozen
class RowDamage:
    """The first row that is not as it was written; everything after it is in doubt."""

    #: From 1.
    line: int
    #: Where the line begins.
    byte: int
    #: From this one on.
    rows: int
    #: Whether they are not there at all.
    missing: bool = False

    def __str__(self) -> str:
        if self.missing:
            return f"line {self.line}: missing, and {self.rows - 1} rows after it"
        return f"line {self.line}: not as it was written, and {self.rows - 1} rows after it"


class DigestedRows:
    """A file of rows with a digest for each, in a folder with one owner. Opened by :meth:`resume`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digests = path.with_name(path.name + SUFFIX)
        self._rows = 0
        self._running = hashlib.sha256()

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows in one write and force them to the disk.

        Raises :class:`callwright.errors.RunError` as :func:`callwright.training.run_folder.append_jsonl` does; the file
        then holds the whole rows that were there before.
        """
        lines = jsonl_lines(self.path, rows)
        running, made = self._running.copy(), bytearray()
        for line in lines:
            running.update(line)
            made += _line(running)
        self._cut_digests()
        append_bytes(self.digests, bytes(made))
        append_bytes(self.path, b"".join(lines))
        self._running, self._rows = running, self._rows + len(lines)

    def resume(
        self,
        keep: Callable[[int], int] = int,
        *,
        accept: bool = False,
        say: Callable[[str], object] = str,
    ) -> int:
        """Go on after the rows that are there: all of them, or so many as ``keep`` makes of their number.

        What comes after those is cut off. Returns how many are left. Rows from before there were digests are taken as
        they are, with a word. Raises :class:`callwright.errors.RunError` naming the first row that is not as it was
        written, unless ``accept``: the folder's ledger then says so, and the rows are digested as they are now.
        """
        damage, rows = self._compare()
        folder = self.path.parent
        if damage is not None and not damage.missing:
            reason = f"{self.path.name}, {damage}"
            if not accept:
                raise RunError(
                    f"{folder}: {reason}. Put the file back, have the rows from there on made again (callwright doctor "
                    f"{folder} --repair), or go on as it is with --accept-changes, as the ledger will say"
                )
            note_changes(folder, [Change(reason, "", "")])
            say(f"going on though {reason}; written down in the ledger")
        elif rows and not self.digests.exists():
            say(f"the {rows} rows of {self.path} are from before there were digests of rows: not compared")
        self._take(keep(rows))
        return self._rows

    def damage(self, *, finished: bool = True) -> RowDamage | None:
        """What is not as it was written; ``None`` if all is, or nothing can be said.

        Where the work is not ``finished``, rows that are missing at the end are no damage: it may have been killed
        after their digests were written.
        """
        damage, _ = self._compare()
        return None if damage is not None and damage.missing and not finished else damage

    def _compare(self) -> tuple[RowDamage | None, int]:
        """The first damage, and the number of whole rows. Without any digests nothing is damaged."""
        known = _digests(self.digests)
        running, byte, number = hashlib.sha256(), 0, 0
        bad: tuple[int, int] | None = None
        for number, line in enumerate(_rows(self.path), 1):
            if known is not None and bad is None:
                running.update(line)
                if number > len(known) or running.hexdigest().encode() != known[number - 1]:
                    bad = number, byte
                byte += len(line)
        if bad is not None:
            return RowDamage(*bad, number - bad[0] + 1), number
        if known is not None and number < len(known):
            return RowDamage(number + 1, byte, len(known) - number, missing=True), number
        return None, number

    def _take(self, keep: int) -> None:
        """Cut rows and digests to the first ``keep``, and write the digests anew if they are not those of the rows."""
        running, made, byte, rows = hashlib.sha256(), bytearray(), 0, 0
        for line in _rows(self.path):
            if rows == keep:
                break
            running.update(line)
            made += _line(running)
            byte, rows = byte + len(line), rows + 1
        try:
            if self.path.exists():
                with self.path.open("rb+") as file:
                    file.truncate(byte)
                    os.fsync(file.fileno())
            if not self.digests.exists() or self.digests.read_bytes() != made:
                write_atomically(self.digests, bytes(made))
        except OSError as error:
            raise RunError(f"{self.path} cannot be written: {error.strerror or error}") from error
        self._running, self._rows = running, rows

    def _cut_digests(self) -> None:
        """Forget digests whose rows were never written."""
        try:
            with self.digests.open("ab") as file:
                if file.seek(0, os.SEEK_END) > self._rows * _WIDTH:
                    file.truncate(self._rows * _WIDTH)
        except OSError as error:
            raise RunError(f"{self.digests} cannot be written: {error.strerror or error}") from error


def _line(running: Any) -> bytes:
    return f"{running.hexdigest()}\n".encode()


def _rows(path: Path) -> Iterable[bytes]:
    """The lines of a file that are whole."""
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line


def _digests(path: Path) -> list[bytes] | None:
    """The whole lines of a file of digests; ``None`` if there is no such file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error
    return data.split(b"\n")[:-1]
