"""The corpus: tasks made on demand from a seed, with compositions held out for evaluation."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from callwright.errors import UsageError
from callwright.language.program import Program
from callwright.pickling import made_again, made_by
from callwright.walk.corpora.on_demand import CorpusOnDemand, Split, check_seed, check_sizes
from callwright.walk.tasks import Task
from callwright_plugins.toolworld import NAME
from callwright_plugins.toolworld.annotator import Annotator
from callwright_plugins.toolworld.environment import ToolWorld
from callwright_plugins.toolworld.families import FAMILIES
from callwright_plugins.toolworld.family import Family
from callwright_plugins.toolworld.prompts import prompt_text, vocabulary
from callwright_plugins.toolworld.splits import DEPTHS, by_domain, divided, in_turn
from callwright_plugins.toolworld.tasks import make_task
from callwright_plugins.toolworld.world import pick

_BY_NAME: Final[Mapping[str, Family]] = {family.name: family for family in FAMILIES}


class ToolWorldCorpus(CorpusOnDemand):
    """The corpus ``toolworld-mini-v1``.

    ``train_size`` is the size of the split ``train``, whose tasks have the depths of ``mix`` in turn;
    ``evaluation_size`` is the number of tasks *per depth* of the other. The seed draws the tasks. Which compositions
    are held out does not depend on it, so the splits of any two corpora of this name are disjoint. Tasks are made when
    they are asked for, and do not depend on the sizes. Raises :class:`callwright.UsageError` for options that are no
    sizes or depths.
    """

    def __init__(
        self,
        train_size: int = 4000,
        evaluation_size: int = 40,
        seed: int = 0,
        mix: Sequence[int] = (0, 1, 2, 2, 3, 3, 4, 4, 5, 6),
    ) -> None:
        check_sizes(NAME, train_size=train_size, evaluation_size=evaluation_size)
        check_seed(NAME, seed)
        if not isinstance(mix, list | tuple) or not mix or any(type(d) is not int or d not in DEPTHS for d in mix):
            raise UsageError(f"option 'mix' of {NAME} lists depths from 0 to 6, not {mix!r}")
        self._options = (train_size, evaluation_size, seed, tuple(mix))
        self._world: ToolWorld = made_again(ToolWorld, ())
        self._seed = seed
        self._mix = tuple(mix)
        self._drawing = threading.Lock()  # a generator cannot be asked by two threads at a time
        self._held_out: dict[int, tuple[Iterator[Task], list[Task]]] = {}
        drawn = {"seed": seed, "mix": list(mix)}
        splits = {
            "train": Split(train_size, self._mix, {"train_size": train_size, **drawn}),
            "evaluation": Split(evaluation_size * len(DEPTHS), DEPTHS, {"evaluation_size": evaluation_size, **drawn}),
        }
        super().__init__(NAME, self._world, splits)

    def __reduce__(self) -> Any:
        return made_by(self, ToolWorldCorpus, *self._options)

    def make(self, split: str, number: int) -> Task:
        """A task of training compositions, or of those that are held out."""
        return self._train_task(number) if split == "train" else self._evaluation_task(number)

    def prompt_text(self, task: Task) -> str | None:
        """The prompt for a model with a tiny vocabulary: signatures of the offered tools, then the query."""
        return prompt_text(task)

    def vocabulary(self) -> list[str]:
        """The pieces that prompts and rendered programs (form ``json``) of this corpus are made of.

        A tokenizer takes the longest piece that fits, from left to right; the module ``prompts`` beside this one says
        more.
        """
        return vocabulary()

    def demonstrations(
        self, seed: int, count: int, options: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Task, Program]]:
        """``count`` tasks of training compositions, each with a program as a sloppy annotator writes it.

        ``options`` are those of :class:`callwright_plugins.toolworld.annotator.Annotator`. Raises
        :class:`callwright.UsageError`, before anything is drawn, for a name or value that it does not take.
        """
        return self._demonstrate(seed, count, Annotator.read(options or {}))

    def _demonstrate(self, seed: int, count: int, annotator: Annotator) -> Iterator[tuple[Task, Program]]:
        for number in range(count):
            rng = random.Random(f"{NAME}/{self._seed}/demonstration/{seed}/{number}")
            task = self._draw(f"demonstration-{seed}-{number}", annotator.depth(rng), rng)
            plan = _BY_NAME[task.facts["family"]].build(task.facts["values"])
            yield task, annotator.write(task, plan, rng)

    def _train_task(self, number: int) -> Task:
        rng = random.Random(f"{NAME}/{self._seed}/train/{number}")
        return self._draw(f"train-{number}", self._mix[number % len(self._mix)], rng)

    def _draw(self, task_id: str, depth: int, rng: random.Random) -> Task:
        """A task of a training composition. Domains are equally likely, then families, then compositions."""
        domains = list(by_domain(depth).values())
        while True:  # most draws are accepted at every depth; tests/plugins/toolworld counts them
            family = pick(rng, pick(rng, domains))
            task = make_task(task_id, "train", family, pick(rng, divided(family)[0]), self._world, rng)
            if task is not None:
                return task

    def _evaluation_task(self, number: int) -> Task:
        """Depths take turns, so that any first few tasks hold all of them."""
        turn, depth = divmod(number, len(DEPTHS))
        with self._drawing:
            tasks, found = self._held_out.setdefault(depth, (self._held_out_tasks(depth), []))
            while len(found) <= turn:
                found.append(next(tasks))
        return evolve(found[turn], id=f"evaluation-{number}")

    def _held_out_tasks(self, depth: int) -> Iterator[Task]:
        """Tasks without end: domains in turn, their families in turn, each composition twice before any comes again."""
        for around in itertools.count():
            yield from in_turn(
                [
                    in_turn([self._held_out_tasks_of(family, around) for family in families])
                    for families in by_domain(depth).values()
                ]
            )

    def _held_out_tasks_of(self, family: Family, around: int) -> Iterator[Task]:
        for repeat, values in itertools.product(range(2), divided(family)[1]):
            rng = random.Random(f"{NAME}/{self._seed}/evaluation/{around}/{repeat}/{family.key(values)}")
            task = make_task("", "evaluation", family, values, self._world, rng)
            if task is not None:
                yield task
