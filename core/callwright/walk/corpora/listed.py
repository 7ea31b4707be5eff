"""A corpus of tasks that you hold in a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from callwright.environments.protocol import Environment
from callwright.errors import UnknownName, UsageError
from callwright.walk.tasks import Corpus, Task, check_task_id


class ListedCorpus(Corpus):
    """The corpus ``name`` of tasks that are there already, in the splits that they name (``Task.split``).

    For tasks that a program has made itself: ``cw.train(recipe, corpus=cw.ListedCorpus("errands", tasks))``.

    Raises :class:`callwright.UsageError` for a name that is none, no task at all, and two tasks with one id.
    """

    def __init__(self, name: str, tasks: Iterable[Task]) -> None:
        if not isinstance(name, str) or not name:
            raise UsageError(f"a corpus has a name, not {name!r:.80}")
        self._name = name
        self._tasks: dict[str, Task] = {}
        self._splits: dict[str, list[Task]] = {}
        for task in tasks:
            if not isinstance(task, Task):
                raise UsageError(f"the corpus {name!r} is of tasks, not of {task!r:.80}")
            if task.id in self._tasks:
                raise UsageError(f"the corpus {name!r} has two tasks with the id {task.id!r}")
            self._tasks[task.id] = task
            self._splits.setdefault(task.split, []).append(task)
        if not self._tasks:
            raise UsageError(f"the corpus {name!r} has no task")

    def __reduce__(self) -> Any:
        return ListedCorpus, (self._name, tuple(self._tasks.values()))

    @property
    def name(self) -> str:
        return self._name

    @property
    def environment(self) -> Environment:
        """The first task's; each has its own."""
        return next(iter(self._tasks.values())).environment

    @property
    def splits(self) -> Mapping[str, int]:
        """The splits with their sizes, in the order in which they begin."""
        return {split: len(tasks) for split, tasks in self._splits.items()}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in the order given. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self._splits:
            raise UnknownName(f"split of {self._name}", split, self._splits)
        return self._splits[split]

    def task(self, task_id: str) -> Task:
        """The task with this id. Raises :class:`callwright.errors.UnknownName`."""
        check_task_id(task_id)
        if task_id not in self._tasks:
            raise UnknownName(f"task of {self._name}", task_id, self._tasks)
        return self._tasks[task_id]
