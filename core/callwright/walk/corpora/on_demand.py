"""Tasks on demand: a split knows how many tasks it has and how deep they are, and makes each when it is asked for.

    class Sums(CorpusOnDemand):
        def __init__(self, train_size=1000, seed=0):
            check_sizes("sums-v1", train_size=train_size)
            splits = {"train": Split(train_size, fixed={"seed": seed}), "evaluation": Split(50, fixed={"seed": seed})}
            super().__init__("sums-v1", SUMS, splits)
            self.seed = seed

        def make(self, split, number):
            rng = random.Random(f"sums-v1/{self.seed}/{split}/{number}")
            ...

A task is made of its split and its number alone, never of those that were made before it or of the size: then a corpus
of another size begins with the same tasks, and every process makes the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any, Final, overload

from attrs import field, frozen

from callwright.environments.protocol import Environment
from callwright.errors import UnknownName, UsageError
from callwright.walk.tasks import Corpus, Task, check_task_id

#: Digits of the largest number that an id may hold.
_DIGITS: Final = 9


class TasksOnDemand(Sequence[Task]):
    """``size`` tasks that ``make(position)`` makes when they are first asked for; they are then kept.

    ``depths`` are the depths that they have, in turn: one for all of them, or a list of ``size``. It is pickled as its
    size, its depths and ``make``, so that a process that gets it makes its tasks itself.
    """

    def __init__(self, size: int, make: Callable[[int], Task], depths: Sequence[int] = (1,)) -> None:
        self._size, self._make, self._turns = size, make, depths
        self._made: dict[int, Task] = {}

    def __reduce__(self) -> Any:
        return TasksOnDemand, (self._size, self._make, self._turns)

    def __len__(self) -> int:
        return self._size

    @property
    def depths(self) -> Sequence[int]:
        """The depth of each task; none is made."""
        return list(islice(cycle(self._turns), self._size))

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(self._size))]
        position = range(self._size)[index]  # raises IndexError, and counts from the end below 0
        task = self._made.get(position)
        if task is None:
            task = self._made[position] = self._make(position)
        return task


@frozen
class Split:
    """How many tasks a split has, the depths that they have in turn, and what fixes them beside the plugin's version:
    options, as JSON (:meth:`CorpusOnDemand.fingerprint`).
    """

    size: int
    depths: Sequence[int] = (1,)
    fixed: Mapping[str, Any] = field(factory=dict)


class CorpusOnDemand(Corpus):
    """A corpus over one environment whose task ``train-17`` is what :meth:`make` makes of ``"train"`` and ``17``.

    A subclass says how (:meth:`make`). One that shall reach other processes can be pickled: by its options
    (:func:`callwright.pickling.made_by`), or as objects are.
    """

    def __init__(self, name: str, environment: Environment, splits: Mapping[str, Split]) -> None:
        self._name, self._environment, self._stated = name, environment, dict(splits)
        self._splits = {
            split: TasksOnDemand(stated.size, _Maker(self, split), stated.depths) for split, stated in splits.items()
        }

    def make(self, split: str, number: int) -> Task:
        """The task of a split with this number, counted from 0; its id is ``split-number``."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The registered, versioned name."""
        return self._name

    @property
    def environment(self) -> Environment:
        """Where the tasks' programs are executed."""
        return self._environment

    @property
    def splits(self) -> Mapping[str, int]:
        """Name and number of tasks of each split."""
        return {split: len(tasks) for split, tasks in self._splits.items()}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self._splits:
            raise UnknownName(f"split of {self._name}", split, self._splits)
        return self._splits[split]

    def task(self, task_id: str) -> Task:
        """The task with this id (``train-17``, ``evaluation-3``). Raises :class:`callwright.errors.UnknownName`."""
        check_task_id(task_id)
        split, _, number = task_id.rpartition("-")
        tasks: Sequence[Task] = self._splits.get(split, ())
        is_number = number.isascii() and number.isdecimal() and len(number) <= _DIGITS and number == str(int(number))
        if not is_number or int(number) >= len(tasks):
            last = [f"{name}-{size - 1}" for name, size in self.splits.items() if size]
            raise UnknownName(f"task of {self._name}", task_id, last, hint="(the last of each split; the first is 0)")
        return tasks[int(number)]

    def fingerprint(self, split: str) -> dict[str, Any] | None:
        """What fixes the tasks of a split, which are made on demand: the options, and this plugin's version.

        ``None`` for a split that is not its own, such as a benchmark makes of it: its tasks are looked at one by one.
        """
        stated = self._stated.get(split)
        return None if stated is None else dict(stated.fixed)


@frozen
class _Maker:
    """What makes the tasks of one split."""

    corpus: CorpusOnDemand
    split: str

    def __call__(self, number: int) -> Task:
        return self.corpus.make(self.split, number)


def check_sizes(corpus: str, **sizes: Any) -> None:
    """Raise :class:`callwright.UsageError` for options of a corpus that are no numbers of tasks, by their names."""
    for option, value in sizes.items():
        if type(value) is not int or value < 0:
            raise UsageError(f"option {option!r} of {corpus} is a number of tasks, not {value!r:.80}")


def check_seed(corpus: str, seed: Any) -> None:
    """Raise :class:`callwright.UsageError` for an option ``seed`` of a corpus that is no integer."""
    if type(seed) is not int:
        raise UsageError(f"option 'seed' of {corpus} is an integer, not {seed!r:.80}")
