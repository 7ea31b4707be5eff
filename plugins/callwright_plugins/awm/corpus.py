"""The tasks of worlds as a corpus. Tasks of one world are never in two splits."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from callwright.digests import digest_of
from callwright.errors import DataError, UnknownName
from callwright.options import read_options
from callwright.walk.corpora.on_demand import TasksOnDemand
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Answer, Corpus, Task
from callwright.walk.users.world import GOAL
from callwright_plugins.awm.environment import WorldEnvironment
from callwright_plugins.awm.options import TaskOptions, WorldOptions
from callwright_plugins.awm.rows import normalised, rows, scenarios
from callwright_plugins.awm.verifiers import verifiers

NAME: Final = "awm"
_FILE: Final = "gen_tasks.jsonl"
#: One world in so many is for evaluation, by a hash of its name.
_HELD_OUT: Final = 10
#: Worlds whose tools are kept at the same time: each has its code and its first database.
_WORLDS: Final = 1000


class WorldTasks(Corpus):
    """The corpus ``awm``: the tasks of each world that have a verifier in code, for the reward ``awm``.

    Raises :class:`callwright.errors.DataError` for files that cannot be read or hold no such task, and
    :class:`callwright.errors.UnknownName` for a world without tasks.
    """

    def __init__(self, data: str | Path | None = None, **options: Any) -> None:
        given = {**options, **({} if data is None else {"data": data})}
        self._options = read_options(TaskOptions, given, f"the corpus {NAME!r}")
        self._given = given
        folder = Path(self._options.data).absolute()
        known = scenarios(folder / _FILE)
        wanted = list(dict.fromkeys(map(normalised, self._options.worlds))) or list(known)
        self._places: dict[str, list[tuple[str, int, str]]] = {"train": [], "evaluation": []}
        for world in wanted:
            queries, checked = _queries(folder, world), verifiers(folder, world)
            self._places[split_of(world)] += [(world, at, text) for at, text in enumerate(queries) if at in checked]
        if not any(self._places.values()):
            raise DataError(f"{folder}: no task of {_FILE} that is wanted has a verifier in code")
        self._make = _Maker(str(folder))
        self._tasks = {
            split: TasksOnDemand(len(places), _TaskMaker(self._make, split, tuple(places)))
            for split, places in self._places.items()
        }

    def __reduce__(self) -> Any:
        return _made, (self._given,)

    @property
    def name(self) -> str:
        """The registered name."""
        return NAME

    @property
    def limits(self) -> TurnLimits:
        """As many turns as AWM's own agent has, if the option ``turns`` says nothing else."""
        return TurnLimits(assistant_turns=self._options.turns)

    @property
    def environment(self) -> WorldEnvironment:
        """The world of the first task: each task has its own."""
        places = self._places["train"] or self._places["evaluation"]
        return self._make.environment(places[0][0])

    @property
    def splits(self) -> Mapping[str, int]:
        """Name and number of tasks of each split that has any."""
        return {split: len(places) for split, places in self._places.items() if places}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self.splits:
            raise UnknownName(f"split of {NAME}", split, self.splits)
        return self._tasks[split]

    def task(self, task_id: str) -> Task:
        """A task by the name of its world and its number there. Raises :class:`callwright.errors.UnknownName`."""
        ids = {split: [_id(world, at) for world, at, _ in places] for split, places in self._places.items()}
        for split, names in ids.items():
            if task_id in names:
                return self._tasks[split][names.index(task_id)]
        raise UnknownName(f"task of {NAME}", task_id, [name for names in ids.values() for name in names])

    def fingerprint(self, split: str) -> dict[str, Any] | None:
        """What fixes the tasks of a split: their worlds, numbers and texts. No world is opened for it."""
        return {"tasks": digest_of(self._places[split])} if split in self.splits else None


def split_of(world: str) -> str:
    """The split of a world's tasks."""
    return "evaluation" if int(digest_of(world)[:8], 16) % _HELD_OUT == 0 else "train"


def _queries(folder: Path, world: str) -> list[str]:
    path = folder / _FILE
    found = rows(path, world)[0].get("tasks")
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise DataError(f"{path}: the tasks of {world!r} are no list of texts")
    return found


def _id(world: str, at: int) -> str:
    return f"{world}-{at}"


class _Maker:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.environment = lru_cache(maxsize=_WORLDS)(self._opened)

    def __reduce__(self) -> Any:
        return _Maker, (self._folder,)

    def _opened(self, world: str) -> WorldEnvironment:
        return WorldEnvironment(WorldOptions(data=self._folder, world=world))


class _TaskMaker:
    def __init__(self, make: _Maker, split: str, places: tuple[tuple[str, int, str], ...]) -> None:
        self._make, self._split, self._places = make, split, places

    def __call__(self, number: int) -> Task:
        world, at, query = self._places[number]
        environment = self._make.environment(world)
        return Task(
            _id(world, at),
            query,
            environment.tools,
            Answer(),
            environment,
            split=self._split,
            facts={GOAL: {NAME: world, "task": at}, "world": world},
        )


def _made(given: dict[str, Any]) -> WorldTasks:
    return WorldTasks(**given)


WorldTasks.__signature__ = inspect.signature(TaskOptions)  # type: ignore[attr-defined]
