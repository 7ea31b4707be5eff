"""Reading tasks from a file: looked through once, and made one by one when they are asked for.

Of a plain file only the places of its rows are kept in memory, and their ids; a compressed one and a Parquet file are
kept as the lines of JSON that they hold.
"""

from __future__ import annotations

import functools
import os
import re
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, overload

from callwright.compression.packing import unpacked
from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError, DataError, UnknownName, UsageError, cannot_read
from callwright.language.long_numbers import json_value
from callwright.language.strict_json import kind as json_kind
from callwright.plugins import Registry, default_registry
from callwright.walk.task_rows.head import Head, is_head
from callwright.walk.task_rows.rows import TaskReader
from callwright.walk.task_rows.stated import Stated, differences, fingerprint, make
from callwright.walk.tasks import Task

#: Tasks that are kept once they are made.
_KEPT: Final = 4096
#: How a row begins that this module's counterpart wrote.
_BEGIN: Final = re.compile(rb'\{"id": "((?:[^"\\])+)", "split": "([^"\\]+)", "depth": ([0-9]{1,9}), ')
_PARQUET: Final = b"PAR1"


def read_tasks(
    path: str | Path,
    *,
    any_version: bool = False,
    trust: bool = False,
    environments: Sequence[Environment] = (),
    registry: Registry | None = None,
) -> TaskFile:
    """The tasks of a file, which is recognised by its first bytes.

    ``any_version``: environments of other versions will do, as long as their tools are the same. ``trust``: those will,
    too, that start programs, send secrets or run code of a folder. ``environments`` are those that no registry knows.

    Raises :class:`callwright.errors.DataError`, with file and line, for a file that is none of tasks, and for one whose
    environments are not as they were; a row that is no task raises it when it is asked for.
    """
    return TaskFile(Path(path), registry or default_registry(), any_version, trust, environments)


def read_rows(path: str | Path) -> tuple[Head, Iterator[dict[str, Any]]]:
    """The head of a file of tasks and its rows as they stand there: nothing is made of them, and nothing is started.

    Raises :class:`callwright.errors.DataError` for what is no file of tasks, and for a damaged row when it comes.
    """
    path = Path(path)
    rows, head = _opened(path)
    try:
        told = Head.from_json(head)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return told, (_parsed(line, rows.where(place)) for place, line in enumerate(rows))


def _parsed(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json_value(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON: {error}") from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, found {json_kind(row)}")
    return row


class TaskFile(Sequence[Task]):
    """All tasks of a file, in its order. ``splits`` has those of each split, ``head`` what the file says of itself."""

    def __init__(
        self,
        path: Path,
        registry: Registry,
        any_version: bool = False,
        trust: bool = False,
        environments: Sequence[Environment] = (),
    ) -> None:
        self.path = path
        self._registry, self._any_version, self._trust = registry, any_version, trust
        self._given = {one.name: one for one in environments}
        self._rows: _Rows
        self._rows, head = _opened(path)
        try:
            self.head = Head.from_json(head)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        self._places: dict[str, int] = {}
        self._splits: dict[str, array[int]] = {}
        self._depths = array("q")
        self._look_through()
        self._made: dict[Stated, Environment] = {}
        for one in self.head.environments:
            self._check(one)
        self._reader = TaskReader(self._environment)
        self._task = functools.lru_cache(_KEPT)(self._read)
        self.splits: Mapping[str, Part] = {name: Part(self, name, places) for name, places in self._splits.items()}

    def __reduce__(self) -> Any:
        """As the file, which must be where it is unpickled."""
        given = tuple(self._given.values())
        return TaskFile, (self.path.absolute(), self._registry, self._any_version, self._trust, given)

    def _look_through(self) -> None:
        for place, line in enumerate(self._rows):
            begin = _BEGIN.match(line)
            if begin is not None:
                task_id, split, depth = begin[1].decode("utf-8", "replace"), begin[2].decode(), int(begin[3])
            else:
                row = _parsed(line, self.where(place))
                task_id, split, depth = row.get("id"), row.get("split"), row.get("depth", 0)
                if not isinstance(task_id, str) or not isinstance(split, str) or type(depth) is not int:
                    raise DataError(f"{self.where(place)}: a task has an 'id', a 'split' and a 'depth'")
            other = self._places.setdefault(task_id, place)
            if other != place:
                raise DataError(f"{self.where(place)}: the id {task_id!r:.80} stands in {self.where(other)}, too")
            self._splits.setdefault(split, array("q")).append(place)
            self._depths.append(depth)

    def _check(self, one: Stated) -> None:
        try:
            found = self._environment(one)
        except CallwrightError as error:
            if isinstance(error, UsageError):
                raise DataError(f"{self.path}: {error}") from error
            raise
        now = fingerprint(one, found, self._registry)
        changed = differences(self.head.environments[one], now, any_version=self._any_version)
        if not changed:
            return
        if changed.startswith("version "):
            mend = (
                "If its worlds are the same, any_version = true reads it; callwright tasks check says whether its "
                "answers still hold"
            )
        else:
            mend = "Its answers may be wrong there: make the tasks again, or put back what was changed"
        raise DataError(f"{self.path} is of another environment {one}: {changed}. {mend}")

    def _environment(self, one: Stated) -> Environment:
        found = self._made.get(one)
        if found is None:
            if one not in self.head.environments:
                raise DataError(f"the head does not name the environment {one}, so nothing says which one it was")
            if one.options == "{}" and one.name in self._given:
                found = self._given[one.name]
            else:
                found = make(one, self._registry, trust=self._trust)
            self._made[one] = found
        return found

    def where(self, place: int) -> str:
        """``file:line`` of a row."""
        return self._rows.where(place)

    def row(self, place: int) -> dict[str, Any]:
        """A row as it stands in the file. Raises :class:`callwright.errors.DataError` for a damaged one."""
        return _parsed(self._rows[place], self.where(place))

    def _read(self, place: int) -> Task:
        try:
            return self._reader.task(self.row(place))
        except UsageError as error:
            if str(error).startswith(str(self.path)):
                raise
            raise DataError(f"{self.where(place)}: {error}") from error

    def __len__(self) -> int:
        return len(self._depths)

    @property
    def depths(self) -> Sequence[int]:
        """The depth of each task, without making any."""
        return self._depths

    @property
    def environments(self) -> Sequence[Environment]:
        """Those of its tasks, in the order of the head."""
        return [self._environment(one) for one in self.head.environments]

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        if isinstance(index, slice):
            return [self._task(place) for place in range(*index.indices(len(self)))]
        return self._task(range(len(self))[index])

    def place(self, task_id: str) -> int:
        """Where a task stands. Raises :class:`callwright.errors.UnknownName`."""
        if task_id not in self._places:
            raise UnknownName(f"task of {self.path.name}", task_id, self._places)
        return self._places[task_id]

    def task(self, task_id: str) -> Task:
        """The task with this id. Raises :class:`callwright.errors.UnknownName`."""
        return self._task(self.place(task_id))


class Part(Sequence[Task]):
    """The tasks of a split, or some of them."""

    def __init__(self, file: TaskFile, name: str, places: Sequence[int], whole: bool = True) -> None:
        self.file, self.name, self._places, self._whole = file, name, places, whole

    def __reduce__(self) -> Any:
        return _part, (self.file, self.name, None if self._whole else list(self._places))

    def only(self, places: Container[int]) -> Part:
        """Those of the split that stand at some places of the file."""
        return Part(self.file, self.name, array("q", (one for one in self._places if one in places)), whole=False)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def depths(self) -> Sequence[int]:
        """The depth of each task, without making any."""
        return [self.file.depths[place] for place in self._places]

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        if isinstance(index, slice):
            return [self.file[place] for place in self._places[index]]
        return self.file[self._places[index]]


def _part(file: TaskFile, name: str, places: Sequence[int] | None = None) -> Sequence[Task]:
    return file.splits[name] if places is None else Part(file, name, array("q", places), whole=False)


# Rows as they stand there ---------------------------------------------------------------------------------------------


class _Rows(Protocol):
    """The lines of the rows of a file, without its head."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> bytes: ...

    def __iter__(self) -> Iterator[bytes]: ...

    def where(self, place: int) -> str: ...


def _opened(path: Path) -> tuple[_Rows, Any]:
    """The rows of a file, and its head. Raises :class:`callwright.errors.DataError`."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a file of tasks")
        with path.open("rb") as raw:
            if raw.read(len(_PARQUET)) == _PARQUET:
                from callwright.walk.task_rows.parquet import read_parquet

                head, lines = read_parquet(path)
                return _InMemory(path, lines, 1), head
            raw.seek(0)
            file = unpacked(raw, str(path))
            if file is raw:
                places = _Places(path)
                return places, _head(path, places.head)
            with file:
                first = file.readline()
                return _InMemory(path, file, 2), _head(path, first)
    except (OSError, EOFError) as error:
        raise cannot_read(path, error) from error


def read_head(path: Path) -> Head:
    """What a file says of itself; its rows are not looked at. Raises :class:`callwright.errors.DataError`."""
    try:
        with path.open("rb") as raw:
            if raw.read(len(_PARQUET)) == _PARQUET:
                from callwright.walk.task_rows.parquet import read_parquet

                head = read_parquet(path)[0]
            else:
                raw.seek(0)
                head = _head(path, unpacked(raw, str(path)).readline())
        return Head.from_json(head)
    except (OSError, EOFError) as error:
        raise cannot_read(path, error) from error
    except DataError as error:
        said = str(error)
        raise error if said.startswith(str(path)) else DataError(f"{path}: {said}") from error


def _head(path: Path, line: bytes) -> Any:
    try:
        found = json_value(line)
    except (ValueError, RecursionError):
        found = None
    if not is_head(found):
        raise DataError(
            f"{path} is no file of tasks: its first line is not the head that callwright tasks export writes "
            "(docs/task-files.md)"
        )
    return found


class _InMemory:
    def __init__(self, path: Path, lines: Iterable[bytes], first: int) -> None:
        self._path, self._first = path, first
        self._lines = [line for line in lines if line.strip()]

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: int) -> bytes:
        return self._lines[place]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._lines)

    def where(self, place: int) -> str:
        return f"{self._path}:{self._first + place}"


class _Places:
    """Where the rows of a plain file are; they are read again when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._starts = array("q")
        self._numbers = array("q")
        self.head = b""
        start = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    self.head = line
                elif line.strip():
                    self._starts.append(start)
                    self._numbers.append(number)
                start += len(line)
        self._end = start

    def __del__(self) -> None:
        file, self._file = getattr(self, "_file", -1), -1
        if file >= 0:
            os.close(file)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, place: int) -> bytes:
        start = self._starts[place]
        end = self._starts[place + 1] if place + 1 < len(self._starts) else self._end
        line = os.pread(self._file, end - start, start)
        if len(line) != end - start:
            raise DataError(f"{self.where(place)}: the file was cut off while it was read")
        return line

    def __iter__(self) -> Iterator[bytes]:
        return (self[place] for place in range(len(self)))

    def where(self, place: int) -> str:
        return f"{self._path}:{self._numbers[place]}"
