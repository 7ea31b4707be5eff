"""How files of tasks come about: beside their target first, as JSON lines or (:mod:`.parquet`) as columns."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from callwright.compression.packing import packed
from callwright.errors import UsageError
from callwright.language.long_numbers import json_line
from callwright.walk.task_rows.head import Head

#: Bytes of rows that are compressed together.
_CHUNK: Final = 1 << 20


class RowWriter:
    """What is written beside the target, and takes its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scratch = path.with_name(path.name + ".part")

    def open(self) -> None:
        raise NotImplementedError

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row. Raises :class:`callwright.UsageError` for one that is no JSON."""
        raise NotImplementedError

    def finish(self, head: Head) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Leave nothing beside the target."""
        with contextlib.suppress(OSError):
            self.scratch.unlink()


class LineWriter(RowWriter):
    """JSON lines. The head is a gzip member or a Zstandard frame of its own, and so is each megabyte of rows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rows = path.with_name(path.name + ".rows")
        self._file: IO[bytes] | None = None
        self._held = bytearray()

    def open(self) -> None:
        """Raises :class:`callwright.errors.MissingExtra` for Zstandard without its package."""
        packed(b"", self.path.name)
        self._file = self._rows.open("wb")

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row. Raises :class:`callwright.UsageError` for one that is no JSON."""
        self._held += row_line(row)
        if len(self._held) >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        assert self._file is not None
        if self._held:
            self._file.write(packed(bytes(self._held), self.path.name))
            self._held.clear()

    def finish(self, head: Head) -> None:
        """Everything is written: put the head before it."""
        assert self._file is not None
        self._flush()
        self._file.close()
        with self.scratch.open("wb") as file, self._rows.open("rb") as rows:
            file.write(packed(row_line(head.to_json()), self.path.name))
            shutil.copyfileobj(rows, file, _CHUNK)
            file.flush()
            os.fsync(file.fileno())
        self.scratch.replace(self.path)

    def close(self) -> None:
        """Leave nothing beside the target."""
        if self._file is not None:
            self._file.close()
        with contextlib.suppress(OSError):
            self._rows.unlink()
        super().close()


def row_line(row: Mapping[str, Any]) -> bytes:
    """The line of a row. Raises :class:`callwright.UsageError` for one that is no JSON."""
    try:
        return json_line(row)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the row {row.get('id')!r:.80} is no JSON: {error}") from error
