"""Reading and writing rows: JSONL files, plain or ``.gz``, or the standard streams, in constant memory."""

from __future__ import annotations

import gzip
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from callwright.errors import DataError, RunError

#: Bytes that are gathered before they are written, so that a row costs no system call.
_CHUNK: Final = 1 << 18
#: Rows that a worker is given at a time.
ROWS: Final = 256


class BadRow(Exception):
    """A row that cannot be used. It is reported with its line; the others go on."""


class RowFile:
    """The rows of a JSONL file. Iterating gives an object, or a :class:`BadRow` for a line that does not hold one."""

    def __init__(self, source: str) -> None:
        self.name = "<stdin>" if source == "-" else source
        #: The number of the line that was read last.
        self.number = 0
        #: The size of the file in bytes; 0 for stdin and what has no size.
        self.size = 0
        self._source = source
        self._raw: IO[bytes] | None = None
        self._file: IO[bytes] | None = None

    def __enter__(self) -> RowFile:
        """Open the file. Raises :class:`callwright.errors.DataError` if it cannot be read."""
        if self._source == "-":
            self._file = sys.stdin.buffer
            return self
        try:
            if Path(self._source).is_dir():
                raise DataError(f"{self._source} is a folder, not a file of rows")
            self._raw = self._file = Path(self._source).open("rb")
            self.size = os.fstat(self._raw.fileno()).st_size
        except OSError as error:
            raise DataError(f"{self._source} cannot be read: {error.strerror or error}") from error
        if self._source.endswith(".gz"):
            self._file = gzip.GzipFile(fileobj=self._raw)  # type: ignore[assignment]  # binary IO in all but name
        return self

    @property
    def position(self) -> int:
        """How many bytes of the file were read."""
        return self._raw.tell() if self._raw is not None else 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file, unless it is stdin."""
        for file in (self._file, self._raw):
            if file is not None and self._source != "-":
                file.close()

    def __iter__(self) -> Iterator[dict[str, Any] | BadRow]:
        """Every line that is not blank.

        Raises :class:`callwright.errors.DataError` where the file itself is damaged.
        """
        from pydantic_core import from_json  # here: who only asks for help need not wait for it

        assert self._file is not None
        try:
            for line in self._file:
                self.number += 1
                if self.number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.isspace():
                    continue
                try:
                    row = from_json(line, cache_strings="keys")  # three times as fast, on rows of completions
                except ValueError:
                    # It takes less than json.loads does (no halves of surrogate pairs, 200 levels), and what it takes
                    # means the same. So whatever it does not take is read again: a test compares the two.
                    try:
                        row = json.loads(line)
                    except (ValueError, RecursionError) as error:
                        yield BadRow(f"not valid JSON: {_reason(error)}")
                        continue
                yield row if type(row) is dict else BadRow(f"expected an object, found {type(row).__name__}")
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"{self.name}: cannot be read after line {self.number}: {reason}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


class RowSink:
    """A JSONL file that is written from the start. After a failure it holds whole lines only.

    ``-`` is stdout; a name that ends in ``.gz`` is compressed, each chunk as a member of its own.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        #: The lines that are not yet written, and the place in the file where they go: one value, so that Ctrl-C at any
        #: moment leaves either what was before a flush or what is after it, and a flush can be done again.
        self._pending: tuple[list[str], int] = ([], 0)
        self._held = 0
        self._descriptor = -1
        self._regular = False
        self._full = False  # what could not be written once is not tried again

    def __enter__(self) -> RowSink:
        """Open and empty the file. Raises :class:`callwright.errors.RunError` if it cannot be written."""
        if self.target == "-":
            return self
        try:
            self._descriptor = os.open(self.target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        except OSError as error:
            raise RunError(f"{self.target} cannot be written: {error.strerror or error}") from error
        return self

    def write(self, line: str) -> None:
        """Add a line, with its line end."""
        self._pending[0].append(line)
        self._held += len(line)
        if self._held >= _CHUNK:
            self._flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Write what is held, also while an error or Ctrl-C is on its way out: nothing that was scored is lost."""
        try:
            if not self._full:
                self._flush()
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)

    def _flush(self) -> None:
        lines, begin = self._pending
        data = "".join(lines).encode("utf-8", "surrogatepass")
        self._held = 0
        if self._descriptor < 0:
            self._pending = ([], 0)
            sys.stdout.write(data.decode("utf-8", "surrogatepass"))
            sys.stdout.flush()
            return
        if data and self.target.endswith(".gz"):
            data = gzip.compress(data, compresslevel=6, mtime=0)
        view = memoryview(data)
        try:
            if self._regular:
                os.lseek(self._descriptor, begin, os.SEEK_SET)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except BaseException as error:  # a full disk, or Ctrl-C between two writes
            whole = 0
            if self._regular:  # whole lines only: up to the last one that fitted, unless they are compressed together
                fitted = len(data) - len(view)
                whole = 0 if self.target.endswith(".gz") else data.rfind(b"\n", 0, fitted) + 1
                os.truncate(self._descriptor, begin + whole)
            if isinstance(error, OSError):
                self._pending, self._full = ([], begin + whole), True
                reason = error.strerror or error
                raise RunError(f"{self.target} cannot be written: {reason}. The rows that fitted are kept") from error
            if not self._regular:  # what went down a pipe is gone
                self._pending = ([], 0)
            raise
        self._pending = ([], begin + len(data))


def is_same_file(source: str, target: str) -> bool:
    """Whether two names are one file, which would be emptied before it is read."""
    try:
        return source != "-" and target != "-" and Path(source).samefile(target)
    except OSError:
        return False


def chunks_of(rows: RowFile, size: int = ROWS) -> Iterator[list[tuple[int, dict[str, Any] | str]]]:
    """Rows of a file in parts of ``size``, each row with its line number; a text in its place says what is wrong."""
    chunk: list[tuple[int, dict[str, Any] | str]] = []
    for row in rows:
        chunk.append((rows.number, str(row) if isinstance(row, BadRow) else row))
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
