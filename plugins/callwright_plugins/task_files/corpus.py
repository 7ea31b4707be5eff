"""The corpus ``tasks``: whatever tasks a file holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, overload

from attrs import evolve, frozen

from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError, DataError, UnknownName, UsageError
from callwright.measuring.difficulty import Band
from callwright.pickling import made_by
from callwright.plugins import Registry, default_registry
from callwright.registration import Reach
from callwright.walk.limits import TurnLimits
from callwright.walk.task_rows.head import Head
from callwright.walk.task_rows.reading import TaskFile, read_head, read_tasks
from callwright.walk.task_rows.stated import reaches as reaches_of
from callwright.walk.tasks import Corpus, Task
from callwright_plugins.task_files import NAME

#: The split of a second file.
TEST: Final = "test"
#: Of larger splits the file is told apart by its bytes, of others by each task.
_EACH: Final = 5_000


class TasksCorpus(Corpus):
    """The corpus ``tasks`` of a file that ``callwright tasks export`` or ``synthesize`` wrote, or anybody else.

    Its splits are those of the tasks. Tasks are made when they are asked for. ``any_version``: environments of other
    versions will do, as long as their tools are the same. ``trust``: the environments of the file may start programs,
    send secrets and run code of a folder. Raises :class:`callwright.errors.DataError` for a file that cannot be read,
    that holds no tasks, or whose environments are not as they were.

    ``pass_from`` and ``pass_to``: only tasks whose measured pass@1 (``facts.difficulty``) is at least, and at most,
    that, in each split of which somebody measured tasks. There a task that nobody measured is left out; a file of which
    no measured task is left is refused.

    ``test_file`` is a second file, all tasks of which are the split ``test``; the band does not hold for them. Raises
    :class:`callwright.UsageError` where ``file`` has such a split itself.
    """

    def __init__(
        self,
        file: str | Path,
        any_version: bool = False,
        trust: bool = False,
        registry: Registry | None = None,
        pass_from: float | None = None,
        pass_to: float | None = None,
        test_file: str | Path | None = None,
    ) -> None:
        if not isinstance(file, str | Path):
            raise UsageError(f"option 'file' of {NAME} is a path, not {file!r:.80}")
        for option, value in (("any_version", any_version), ("trust", trust)):
            if not isinstance(value, bool):
                raise UsageError(f"option {option!r} of {NAME} is true or false, not {value!r:.80}")
        self._options = (Path(file).absolute(), any_version, trust)
        self._file = read_tasks(file, any_version=any_version, trust=trust, registry=registry)
        if not self._file:
            raise DataError(f"{file} holds no tasks")
        self._band = (pass_from, pass_to)
        self._splits: Mapping[str, Sequence[Task]] = self._file.splits
        if self._band != (None, None):
            self._splits = _in_band(self._file, *self._band)
        self._test_file = None if test_file is None else Path(test_file).absolute()
        self._test: TaskFile | None = None
        if self._test_file is not None:
            if TEST in self._splits:
                raise UsageError(f"{file} has a split {TEST!r} itself, so {NAME} takes no test_file beside it")
            self._test = read_tasks(self._test_file, any_version=any_version, trust=trust, registry=registry)
            if not self._test:
                raise DataError(f"{test_file} holds no tasks")
            self._splits = {**self._splits, TEST: _Tests(self._test)}

    def __reduce__(self) -> Any:
        """As the files, which must be where it is unpickled."""
        return made_by(self, TasksCorpus, *self._options, None, *self._band, self._test_file)

    @property
    def name(self) -> str:
        return NAME

    @property
    def head(self) -> Head:
        """What the file says of itself."""
        return self._file.head

    @property
    def limits(self) -> TurnLimits | None:
        """How long episodes of its tasks may become, where the file says so."""
        return self._file.head.limits

    @property
    def environment(self) -> Environment:
        """The first one of the file; each task has its own."""
        return self._file.environments[0]

    @property
    def splits(self) -> Mapping[str, int]:
        """The splits with their sizes, in the order in which they begin; ``test`` of a ``test_file`` comes last."""
        return {name: len(tasks) for name, tasks in self._splits.items()}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in the order of its file. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self._splits:
            raise UnknownName(f"split of {self._options[0].name}", split, self._splits)
        return self._splits[split]

    def task(self, task_id: str) -> Task:
        """The task with this id.

        Raises :class:`callwright.errors.UnknownName`, and :class:`callwright.errors.DataError` for an id that stands in
        both files for two different tasks, as those of two syntheses of one environment do.
        """
        try:
            found = self._file.task(task_id)
        except UnknownName:
            if self._test is None:
                raise
            return evolve(self._test.task(task_id), split=TEST)
        if self._test is not None and _differ(self._file, self._test, task_id):
            raise DataError(
                f"the task {task_id!r:.80} of {self._file.path} is another one than that of {self._test.path}, so the "
                "id says neither: give the tasks of one of the files other ids"
            )
        return found

    def fingerprint(self, split: str) -> Any:
        """What fixes the tasks of a large split: the bytes of the file."""
        if len(self[split]) <= _EACH:
            return None
        of_test = self._test_file is not None and split == TEST
        with (self._test_file if self._test_file is not None and of_test else self._options[0]).open("rb") as file:
            digest = {"file": hashlib.file_digest(file, "sha256").hexdigest()}
        return digest if of_test or self._band == (None, None) else {**digest, "pass": list(self._band)}


def _differ(file: TaskFile, other: TaskFile, task_id: str) -> bool:
    """Whether two files have different tasks under an id, whatever their splits."""
    try:
        theirs = other.row(other.place(task_id))
    except UnknownName:
        return False
    return {**file.row(file.place(task_id)), "split": ""} != {**theirs, "split": ""}


@frozen(eq=False)
class _Tests(Sequence[Task]):
    """All tasks of a second file, as those of the split ``test``."""

    file: TaskFile

    def __len__(self) -> int:
        return len(self.file)

    @overload
    def __getitem__(self, place: int) -> Task: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Task]: ...
    def __getitem__(self, place: int | slice) -> Task | Sequence[Task]:
        """The task at a place, or those of a slice."""
        found = self.file[place]
        return evolve(found, split=TEST) if isinstance(found, Task) else [evolve(one, split=TEST) for one in found]


def _in_band(file: TaskFile, low: float | None, high: float | None) -> Mapping[str, Sequence[Task]]:
    """The splits of a file with the tasks of some difficulty. One that nobody measured stays as it is, and one of which
    nothing is left is none.
    """
    band = Band(0.0 if low is None else low, 1.0 if high is None else high)
    known = frozenset(Band().places(map(file.row, range(len(file)))))
    chosen = frozenset(place for place in known if band.places([file.row(place)]))
    found: dict[str, Sequence[Task]] = {}
    for name, part in file.splits.items():
        left = part.only(chosen) if len(part.only(known)) else part
        if len(left):
            found[name] = left
    if not chosen:
        raise DataError(
            f"{file.path} holds no task with pass@1 from {band.low:g} to {band.high:g}; callwright synthesize "
            "difficulty measures tasks, and the page of its folder says what was found"
        )
    return found


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the environments of trusted files would reach for. Others are refused when they are made."""
    if options.get("trust") is not True:
        return
    for key in ("file", "test_file"):
        if not isinstance(options.get(key), str):
            continue
        try:
            head = read_head(Path(options[key]))
            found = reaches_of(head.environments, default_registry())
        except CallwrightError:  # said when the corpus is made
            continue
        for reach in found:
            yield Reach(reach.kind, reach.what, (key, "trust"), reach.dry_run)
