"""Outputs that are gone on with: a ledger beside ``OUT`` says whose it is and how far it has come.

    with RowFile(source) as rows, UnfinishedOutput(target, rows, about) as output:
        summary = output.read_state(Summary.from_state)     # of {} at a fresh start
        for found in executor.map(work, output.watched(chunks_of(rows))):
            with output.part():                             # lines and summary belong together
                output.write(found.lines)
                summary.merge(found.summary)
            output.keep(summary.to_state)
        output.finish(summary.to_state)

A killed command is given again: the lines of the input that are done are read over and compared, ``OUT`` is cut off at
the last place that the ledger knows, and the rest is written. The bytes are those of a command that was never killed,
since the ledger also keeps the lines that were not yet written. A finished ``OUT`` is never emptied unless asked for.
``-``, pipes and devices have no ledger.
"""

from __future__ import annotations

import json
import os
import stat
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from callwright.commands.jsonl import BadRow, RowFile, RowSink
from callwright.commands.safe_text import say
from callwright.errors import DataError, RunError, UsageError
from callwright.training.ledger.owner import owned_file
from callwright.training.run_folder import write_atomically

Chunk = TypeVar("Chunk")
State = TypeVar("State")

#: What is behind the name of ``OUT`` in that of its ledger.
SUFFIX: Final = ".ledger.json"
#: Seconds between two states that are kept; more where keeping one takes long, so that it never costs over 5%.
EVERY: Final = 1.0
_SHARE: Final = 20.0
_VERSION: Final = 1
_BLOCK: Final = 1 << 20
_OVERWRITE: Final = "name another -o, or start anew with --overwrite"


class UnfinishedOutput:
    """A file of rows and its ledger. ``target`` is ``None`` where nothing is written.

    ``about`` says what the output is of: JSON values by name, and only the same ones go on with it. ``beside`` is a
    file that rows are appended to (those that are set aside), cut off where the ledger knew it. ``see`` hears of every
    row of an earlier start.
    """

    def __init__(
        self,
        target: str | None,
        rows: RowFile,
        about: Mapping[str, Any],
        *,
        overwrite: bool = False,
        beside: str | None = None,
        see: Callable[[int, Mapping[str, Any]], object] | None = None,
    ) -> None:
        self.target = target
        #: What the summary was when the ledger was kept last; empty at a fresh start.
        self.state: dict[str, Any] = {}
        #: Whether everything was done by an earlier start.
        self.finished = False
        self._rows = rows
        self._about = json.loads(json.dumps(about, default=str))
        self._overwrite, self._beside, self._see = overwrite, beside, see
        self._sink: RowSink | None = None
        self._ledger: Path | None = None
        self._descriptor = -1
        self._lock = ExitStack()
        self._marks: deque[tuple[int, int]] = deque()
        self._mark = (0, 0)  # the line up to which everything is done, and the CRC-32 up to there
        self._checked = (0, 0)  # bytes of OUT, and the CRC-32 of them
        self._whole = True
        self._part = _Part(self)
        self._next = 0.0
        self._latest: Callable[[], dict[str, Any]] | None = None

    def __enter__(self) -> UnfinishedOutput:
        """Open the output, and go on with it if it is this command's.

        Raises :class:`callwright.UsageError` if it holds something else, :class:`callwright.errors.DataError` if input
        or output were changed since, and :class:`callwright.errors.RunError` if it cannot be written or another process
        writes it.
        """
        if self.target is None:
            return self
        try:
            begin, held = self._go_on() if self.target != "-" and self._own() else (0, "")
            if not self.finished:
                self._sink = RowSink(self.target, begin, held)
                self._save(self.state)  # before anything is cut off
                self._sink.__enter__()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Keep the state, if lines and summary agree, and then write what is held."""
        try:
            if self._sink is not None:
                try:
                    if error is not None and self._whole and self._latest is not None:
                        self._save(self._latest())
                finally:
                    self._sink.__exit__(kind, error, at)
        finally:
            self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._lock.close()

    @property
    def resumable(self) -> bool:
        """Whether the same command would go on with it."""
        return self._ledger is not None

    def read_state(self, read: Callable[[Mapping[str, Any]], State]) -> State:
        """The state as what it was made of. Raises :class:`callwright.errors.DataError` if it is none."""
        try:
            return read(self.state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{self._ledger}: its state is damaged: {_OVERWRITE}") from error

    def watched(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The same chunks; each one's place in the input is remembered until its results are there."""
        for chunk in chunks:
            self._marks.append((self._rows.number, self._rows.crc))
            yield chunk

    def part(self) -> _Part:
        """A block in which all that comes of one chunk is taken in. What interrupts it leaves the ledger as it was."""
        return self._part

    def write(self, lines: Iterable[str]) -> None:
        """Add lines, each with its line end."""
        if self._sink is not None:
            for line in lines:
                self._sink.write(line)

    def keep(self, state: Callable[[], dict[str, Any]]) -> None:
        """Keep the state if it is time to; called after each :meth:`part`."""
        self._latest = state
        if self._ledger is not None and time.monotonic() >= self._next:
            self._save(state())

    def finish(self, state: Callable[[], dict[str, Any]]) -> None:
        """Everything is done: write what is held, and say so in the ledger."""
        if self._sink is None:
            return
        self._whole = False  # a full disk now leaves the state that was kept last
        self._sink.flush()
        self._mark = (self._rows.number, self._rows.crc)
        self._save(state(), finished=True)

    def _own(self) -> bool:
        """Lock the file; whether it is one that can be gone on with."""
        assert self.target is not None
        try:
            if not stat.S_ISREG(Path(self.target).stat().st_mode) and not Path(self.target).is_dir():
                return False  # a pipe, which is opened once only, or a device
        except OSError:
            pass  # it is made now, or what is wrong is said now
        try:
            self._descriptor = os.open(self.target, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise RunError(f"{self.target} cannot be written: {error.strerror or error}") from error
        self._lock.enter_context(owned_file(Path(self.target)))
        self._ledger = Path(self.target + SUFFIX)
        return True

    def _go_on(self) -> tuple[int, str]:
        """Where to begin in the output, and the lines that come first."""
        assert self._ledger is not None
        size = os.fstat(self._descriptor).st_size
        if self._overwrite:
            return 0, ""
        if not self._ledger.exists():
            if size:
                raise UsageError(f"{self.target} exists, and no ledger beside it says what it is of: {_OVERWRITE}")
            return 0, ""
        ledger = self._read()
        differing = _differing(ledger["about"], self._about)
        if differing:
            raise UsageError(f"{self.target} is the output of another command ({differing}): {_OVERWRITE}")
        begin, finished = ledger["output"]["bytes"], ledger["finished"]
        if size < begin or (finished and size != begin) or self._crc_up_to(begin) != ledger["output"]["crc"]:
            raise DataError(f"{self.target} was changed since it was written: {_OVERWRITE}")
        self._read_over(ledger["input"]["lines"], ledger["input"]["crc"], to_the_end=finished)
        self.state, self.finished = ledger["state"], finished
        if self._beside is not None and not finished:
            _cut_off(self._beside, ledger["beside"])
        if not finished and self._mark[0]:
            say(f"going on after line {self._mark[0]} of {self._rows.name}")
        return begin, ledger["held"]

    def _read(self) -> dict[str, Any]:
        assert self._ledger is not None
        try:
            ledger = json.loads(self._ledger.read_bytes())
        except OSError as error:
            raise DataError(f"{self._ledger} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self._ledger} is damaged ({error}): {_OVERWRITE}") from error
        if not _is_ledger(ledger):
            raise DataError(f"{self._ledger} is not a ledger of this version of Callwright: {_OVERWRITE}")
        found: dict[str, Any] = ledger
        return found

    def _read_over(self, lines: int, crc: int, *, to_the_end: bool) -> None:
        """Read the lines that are done."""
        rows = self._rows
        while rows.number < lines:
            for row in rows:
                if self._see is not None and not isinstance(row, BadRow):
                    self._see(rows.number, row)
                if rows.number >= lines:
                    break
            else:
                break
        if (rows.number, rows.crc) != (lines, crc):
            raise DataError(
                f"{rows.name} was changed: its first {lines} lines are not those that {self.target} is of: {_OVERWRITE}"
            )
        if to_the_end and any(True for _ in rows):
            raise DataError(f"{rows.name} has more lines than when {self.target} was finished: {_OVERWRITE}")
        self._mark = lines, crc

    def _crc_up_to(self, end: int) -> int:
        """The CRC-32 of the first bytes of the output; what was read once is not read again."""
        position, crc = self._checked
        while position < end:
            block = os.pread(self._descriptor, min(_BLOCK, end - position), position)
            if not block:
                break
            position += len(block)
            crc = zlib.crc32(block, crc)
        self._checked = position, crc
        return crc

    def _save(self, state: dict[str, Any], *, finished: bool = False) -> None:
        if self._ledger is None or self._sink is None:
            return
        began = time.monotonic()
        begin, held = self._sink.place
        if begin:
            try:
                os.fsync(self._descriptor)  # never does the ledger know of more than the disk holds
            except OSError as error:
                raise RunError(f"{self.target} cannot be written: {error.strerror or error}") from error
        lines, crc = self._mark
        ledger = {
            "ledger": _VERSION,
            "finished": finished,
            "about": self._about,
            "input": {"lines": lines, "crc": crc},
            "output": {"bytes": begin, "crc": self._crc_up_to(begin)},
            "beside": _size(self._beside),
            "state": state,
            "held": held,
        }
        write_atomically(self._ledger, json.dumps(ledger, indent=1) + "\n")
        now = time.monotonic()
        self._next = now + max(EVERY, _SHARE * (now - began))


def change_of(path: Path) -> str | None:
    """In words, that a file is not as its ledger left it; ``None`` if it is, or no ledger that can be read says so.

    Rows behind those of the ledger are no change where the command was stopped. Raises :class:`OSError`.
    """
    try:
        ledger = json.loads(Path(f"{path}{SUFFIX}").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not _is_ledger(ledger):
        return None
    written, crc = ledger["output"]["bytes"], 0
    size, left = path.stat().st_size, written
    with path.open("rb") as file:
        while left and (block := file.read(min(_BLOCK, left))):
            left -= len(block)
            crc = zlib.crc32(block, crc)
    if left or crc != ledger["output"]["crc"] or (ledger["finished"] and size != written):
        return f"{path.name} is not as it was written: {path.name}{SUFFIX} keeps the digest of other bytes"
    return None


class _Part:
    """The block of :meth:`UnfinishedOutput.part`: one object for all of them, since it is entered for each row."""

    __slots__ = ("_output",)

    def __init__(self, output: UnfinishedOutput) -> None:
        self._output = output

    def __enter__(self) -> None:
        self._output._whole = False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._output._mark = self._output._marks.popleft()
            self._output._whole = True


def _is_ledger(value: Any) -> bool:
    """Whether a ledger has everything that is read of it."""
    if not isinstance(value, dict) or value.get("ledger") != _VERSION:
        return False
    places = (value.get("input"), value.get("output"))
    if not all(isinstance(place, dict) for place in places):
        return False
    numbers = (
        value["input"].get("lines"),
        value["input"].get("crc"),
        value["output"].get("bytes"),
        value["output"].get("crc"),
        value.get("beside"),
    )
    return (
        all(type(number) is int and number >= 0 for number in numbers)
        and type(value.get("finished")) is bool
        and isinstance(value.get("about"), dict)
        and isinstance(value.get("state"), dict)
        and isinstance(value.get("held"), str)
    )


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What is not the same, in words; empty if everything is."""
    keys = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    return ", ".join(f"{key} was {before.get(key)!r:.80}, is now {now.get(key)!r:.80}" for key in keys)


def _size(path: str | None) -> int:
    try:
        return Path(path).stat().st_size if path is not None else 0
    except OSError:
        return 0


def _cut_off(path: str, size: int) -> None:
    if _size(path) > size:
        try:
            os.truncate(path, size)
        except OSError as error:
            raise RunError(f"{path} cannot be written: {error.strerror or error}") from error
