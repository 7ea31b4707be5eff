"""Writing tasks to a file: JSON lines, plain or compressed, or Parquet.

The rows go to a file beside the target first, since the head says which environments they are of; the target is there
whole or not at all. Equal tasks give equal bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.environments.protocol import Environment
from callwright.errors import DataError, RunError, UsageError
from callwright.plugins import Registry, default_registry
from callwright.walk.limits import TurnLimits
from callwright.walk.task_rows.head import Head
from callwright.walk.task_rows.lines import LineWriter, RowWriter
from callwright.walk.task_rows.rows import task_row
from callwright.walk.task_rows.stated import Fingerprint, Stated, fingerprint, make, stated
from callwright.walk.tasks import Task

#: What a file of tasks may be called.
SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")


def write_tasks(
    path: str | Path,
    tasks: Iterable[Task],
    *,
    limits: TurnLimits | None = None,
    about: Mapping[str, Any] | None = None,
    environments: Sequence[Environment] = (),
    registry: Registry | None = None,
) -> int:
    """Write tasks of any environments to a file, and return how many.

    The name of the file says its form: ``.jsonl``, ``.jsonl.gz``, ``.jsonl.zst`` or ``.parquet``. ``limits`` are those
    of the tasks' episodes, ``about`` is JSON for the head. ``environments`` are those that no registry knows; whoever
    reads the file has to give them, too.

    Raises :class:`callwright.UsageError` for a task that cannot be written (:func:`.rows.task_row`), for two of one id
    and for another name of a file, :class:`callwright.errors.MissingExtra` for a form whose package is not there, and
    :class:`callwright.errors.RunError` for a file that cannot be written.
    """
    known = registry or default_registry()
    seen = Environments(known, environments)
    with writer(Path(path)) as file:
        ids: set[str] = set()
        for task in tasks:
            if task.id in ids:
                raise UsageError(f"two tasks have the id {task.id!r}; in a file each has its own")
            ids.add(task.id)
            file.write(task_row(task, known, seen.of(task.environment)))
        file.finish(Head(seen.found, limits, about or {}))
    return len(ids)


def write_rows(
    path: str | Path,
    rows: Iterable[Mapping[str, Any]],
    *,
    limits: TurnLimits | None = None,
    about: Mapping[str, Any] | None = None,
    trust: bool = False,
    registry: Registry | None = None,
) -> int:
    """The same of rows that are written already, such as those of a synthesizer. Raises as :func:`write_tasks` does.

    ``trust``: environments that start programs and the like may be made, to be looked at.
    """
    known = registry or default_registry()
    seen = Environments(known)
    with writer(Path(path)) as file:
        ids: set[str] = set()
        for row in rows:
            task_id = row.get("id")
            if not isinstance(task_id, str) or task_id in ids:
                raise UsageError(f"{task_id!r:.80} is no id for a task, or two have it; in a file each has its own")
            ids.add(task_id)
            seen.stated(Stated.from_json(row.get("environment")), trust=trust)
            file.write(row)
        file.finish(Head(seen.found, limits, about or {}))
    return len(ids)


class Environments:
    """The environments of a file, with what tells them from others; each is looked at once."""

    def __init__(self, registry: Registry, given: Sequence[Environment] = ()) -> None:
        self._registry = registry
        self._given = {environment.name: environment for environment in given}
        #: By ``id``, with the environment, so that no other one can get its id.
        self._known: dict[int, tuple[Environment, Stated]] = {}
        self.found: dict[Stated, Fingerprint] = {}

    def of(self, environment: Environment) -> Stated:
        """How an environment is stated."""
        known = self._known.get(id(environment))
        if known is None:
            if self._given.get(environment.name) is environment:
                one = Stated(environment.name)
            else:
                one = stated(environment, self._registry)
            known = self._known[id(environment)] = environment, one
            self.found.setdefault(one, fingerprint(one, environment, self._registry))
        return known[1]

    def stated(self, one: Stated, *, trust: bool = False) -> None:
        """Take in an environment that is stated already."""
        if one not in self.found:
            self.found[one] = fingerprint(one, make(one, self._registry, trust=trust), self._registry)


# Files ----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def writer(path: Path) -> Iterator[RowWriter]:
    """A file that is written row by row, and finished with its head. Otherwise nothing is left of it."""
    name = path.name
    if not name.endswith(SUFFIXES):
        raise UsageError(f"{path}: a file of tasks is called {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file")
    made: RowWriter
    if name.endswith(".parquet"):
        from callwright.walk.task_rows.parquet import ParquetWriter

        made = ParquetWriter(path)
    else:
        made = LineWriter(path)
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.open()
            yield made
        except OSError as error:
            raise RunError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        made.close()
