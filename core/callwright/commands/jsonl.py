"""Reading and writing rows: JSONL files, plain or compressed, or the standard streams, in constant memory."""

from __future__ import annotations

import json
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from callwright.commands.row_files.remarks import key_twice
from callwright.compression.packing import is_packed, packed, unpacked
from callwright.errors import CallwrightError, DataError, RunError, UsageError, cannot_read
from callwright.language.strict_json import kind

#: Bytes that are gathered before they are written, so that a row costs no system call.
_CHUNK: Final = 1 << 18
#: Rows that a worker is given at a time.
ROWS: Final = 256


class BadRow(Exception):
    """A row that cannot be used. It is reported with its line; the others go on."""


class RowFile:
    """The rows of a JSONL file. Iterating gives an object, or a :class:`BadRow` for a line that does not hold one.

    What is compressed by gzip or Zstandard is recognised by its first bytes.
    """

    def __init__(self, source: str, loads: Callable[[bytes], Any] = json.loads) -> None:
        self._loads = loads
        self.name = "<stdin>" if source == "-" else source
        #: The number of the line that was read last.
        self.number = 0
        #: CRC-32 of the lines up to there: whoever goes on after them sees whether they are still the same.
        self.crc = 0
        #: The size of the file in bytes; 0 for stdin and what has no size.
        self.size = 0
        self._source = source
        self._raw: IO[bytes] | None = None
        self._file: IO[bytes] | None = None

    def __enter__(self) -> RowFile:
        """Open the file.

        Raises :class:`callwright.errors.DataError` if it cannot be read, and
        :class:`callwright.errors.MissingExtra` for Zstandard without its package.
        """
        if self._source == "-":
            if sys.stdin is None:
                raise UsageError("stdin is closed, so there is nothing to read from '-': name a file")
            self._file = unpacked(sys.stdin.buffer, self.name)
            return self
        try:
            if Path(self._source).is_dir():
                raise DataError(f"{self._source} is a folder, not a file of rows")
            self._raw = self._file = Path(self._source).open("rb")
            self.size = os.fstat(self._raw.fileno()).st_size
            self._file = unpacked(self._raw, self._source)
        except (OSError, CallwrightError) as error:
            if self._raw is not None:
                self._raw.close()
            if isinstance(error, CallwrightError):
                raise
            raise cannot_read(self._source, error) from error
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
        loads = self._loads
        fast = loads is json.loads
        try:
            for line in self._file:
                self.number += 1
                self.crc = zlib.crc32(line, self.crc)
                if self.number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.isspace():
                    continue
                try:
                    row = from_json(line, cache_strings="keys") if fast else loads(line)
                except (ValueError, RecursionError):
                    # It takes less than json.loads does (no halves of surrogate pairs, 200 levels), and what it takes
                    # means the same. So whatever it does not take is read again: a test compares the two.
                    try:
                        row = loads(line)
                    except (ValueError, RecursionError) as error:
                        yield BadRow(f"not valid JSON: {_reason(error)}")
                        continue
                if type(row) is not dict:
                    yield BadRow(f"expected an object, found {kind(row)}")
                elif (twice := key_twice(line, row)) is not None:
                    yield BadRow(f"the key {twice!r} stands twice")
                else:
                    yield row
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"{self.name}: cannot be read after line {self.number}: {reason}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


class RowSink:
    """A JSONL file that is written from the start. After a failure it holds whole lines only.

    ``-`` is stdout; a name that ends in ``.gz`` or ``.zst`` is compressed, each chunk as a member or frame of its own.
    ``begin`` and ``held`` go on with a file: what is behind that many bytes of it is cut off, and those lines are
    the next to be written (:attr:`place` said both).
    """

    def __init__(self, target: str, begin: int = 0, held: str = "") -> None:
        self.target = target
        #: The lines that are not yet written, and the place in the file where they go: one value, so that Ctrl-C at any
        #: moment leaves either what was before a flush or what is after it, and a flush can be done again.
        self._pending: tuple[list[str], int] = ([held] if held else [], begin)
        self._held = len(held)
        self._descriptor = -1
        self._regular = False
        self._new = False  # whether it was this sink that made the file
        self._old = False  # whether the file still holds what was in it before
        self._kept = ExitStack()
        self._stdout: IO[str] = sys.stdout
        self._full = False  # what could not be written once is not tried again

    def __enter__(self) -> RowSink:
        """Open the file and cut it off where it begins. What is replaced stays until there is something to write.

        Raises :class:`callwright.errors.RunError` if it cannot be written, and
        :class:`callwright.errors.MissingExtra` for Zstandard without its package.
        """
        if self.target == "-":
            if sys.stdout is None or getattr(sys.stdout, "name", "") == os.devnull:  # see callwright.cli.streams
                raise UsageError("stdout is closed, so there is nothing to write '-' to: name a file")
            self._stdout = self._kept.enter_context(own_stdout())
            return self
        packed(b"", self.target)
        begin = self._pending[1]
        try:
            how = os.O_WRONLY | os.O_CREAT
            try:
                self._descriptor = os.open(self.target, how | os.O_EXCL, 0o666)
                self._new = True
            except FileExistsError:
                self._descriptor = os.open(self.target, how, 0o666)
            self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
            self._old = self._regular and not self._new and not begin
            if begin:
                os.truncate(self._descriptor, begin)
        except OSError as error:
            raise RunError(f"{self.target} cannot be written: {error.strerror or error}") from error
        return self

    def write(self, line: str) -> None:
        """Add a line, with its line end."""
        self._pending[0].append(line)
        self._held += len(line)
        if self._held >= _CHUNK:
            self._flush()

    @property
    def place(self) -> tuple[int, str]:
        """How many bytes are in the file, and the lines that come after them."""
        lines, begin = self._pending
        return begin, "".join(lines)

    def flush(self) -> None:
        """Write what is held. Raises :class:`callwright.errors.RunError` if it does not fit."""
        self._flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Write what is held, also while an error or Ctrl-C is on its way out: nothing that was scored is lost.

        After an error a new file that nothing was written to is not left behind, for the next command to trip over,
        and an old one that nothing was written to is what it was.
        """
        try:
            if not self._full:
                self._flush()
            if kind is None:
                self._cut_old()
            if kind is not None and self._new and not os.fstat(self._descriptor).st_size:
                with suppress(OSError):
                    Path(self.target).unlink()
        finally:
            self._kept.close()
            if self._descriptor >= 0:
                os.close(self._descriptor)

    def _cut_old(self) -> None:
        if self._old:
            os.truncate(self._descriptor, 0)
            self._old = False

    def _flush(self) -> None:
        lines, begin = self._pending
        data = "".join(lines).encode("utf-8", "surrogatepass")
        self._held = 0
        if self._descriptor < 0:
            self._pending = ([], 0)
            self._stdout.write(data.decode("utf-8", "surrogatepass"))
            self._stdout.flush()
            return
        if data:
            data = packed(data, self.target)
        view = memoryview(data)
        try:
            if data:
                self._cut_old()
            if self._regular:
                os.lseek(self._descriptor, begin, os.SEEK_SET)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except BaseException as error:  # a full disk, or Ctrl-C between two writes
            whole = 0
            if self._regular:  # whole lines only: up to the last one that fitted, unless they are compressed together
                fitted = len(data) - len(view)
                whole = 0 if is_packed(self.target) else data.rfind(b"\n", 0, fitted) + 1
                os.truncate(self._descriptor, begin + whole)
            if isinstance(error, OSError):
                self._pending, self._full = ([], begin + whole), True
                reason = error.strerror or error
                raise RunError(f"{self.target} cannot be written: {reason}. The rows that fitted are kept") from error
            if not self._regular:  # what went down a pipe is gone
                self._pending = ([], 0)
            raise
        self._pending = ([], begin + len(data))


@contextmanager
def own_stdout() -> Iterator[IO[str]]:
    """Standard output for rows alone: what tools, plugins and their workers print meanwhile goes to standard error."""
    before, rows, descriptor = sys.stdout, sys.stdout, -1
    with suppress(OSError, ValueError, AttributeError):  # a stream that is no file, as in a notebook, or closed
        if before.fileno() == 1:
            before.flush()
            descriptor = os.dup(1)
            rows = os.fdopen(os.dup(descriptor), "w", encoding=before.encoding, errors=before.errors, newline="")
            os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield rows
    finally:
        sys.stdout = before
        if descriptor >= 0:
            with suppress(OSError):  # a pipe that nobody reads any more was told of already
                rows.close()
            os.dup2(descriptor, 1)
            os.close(descriptor)


def chunks_of(rows: RowFile, size: int | Callable[[], int] = ROWS) -> Iterator[list[tuple[int, dict[str, Any] | str]]]:
    """Rows of a file in parts of ``size``, each row with its line number; a text in its place says what is wrong.

    ``size`` may be asked for each part (:class:`callwright.commands.pace.Pace`).
    """
    chunk: list[tuple[int, dict[str, Any] | str]] = []
    full = size if isinstance(size, int) else size()
    for row in rows:
        chunk.append((rows.number, str(row) if isinstance(row, BadRow) else row))
        if len(chunk) >= full:
            yield chunk
            chunk = []
            if not isinstance(size, int):
                full = size()
    if chunk:
        yield chunk
