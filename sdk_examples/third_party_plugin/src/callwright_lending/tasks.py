"""The corpus. Answers are computed by executing reference programs, so that they cannot be wrong about the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import callwright as cw
from callwright.errors import UnknownName
from callwright.walk import execute
from callwright_lending.library import lending

#: Split, scenario, query, reference program.
TASKS: Sequence[tuple[str, str, str, cw.Program]] = [
    ("train", "", "What do you have on birds?", cw.Program((cw.Call(0, "find_books", {"topic": "birds"}),))),
    ("train", "", "What do you have on maps?", cw.Program((cw.Call(0, "find_books", {"topic": "maps"}),))),
    ("train", "", "Please renew my passport.", cw.Program()),
    (
        "evaluation",
        "",
        "Lend Ann the first book on tea.",
        cw.Program(
            (
                cw.Call(0, "find_books", {"topic": "tea"}),
                cw.Call(1, "borrow", {"title": cw.Reference(0, (0, "title")), "member": "Ann"}),
            )
        ),
    ),
    ("evaluation", "closed", "Which books on tea exist?", cw.Program((cw.Call(0, "find_books", {"topic": "tea"}),))),
]


class LendingCorpus:
    """The corpus ``lending-mini-v1``."""

    name = "lending-mini-v1"

    def __init__(self) -> None:
        self.environment = lending()
        self._tasks: dict[str, cw.Task] = {}
        for number, (split, scenario, query, program) in enumerate(TASKS):
            trace = execute(program, self.environment, self.environment.tools, scenario=scenario)
            task = cw.Task(
                id=f"{split}-{number}",
                query=query,
                tools=self.environment.tools,
                answer=cw.Answer(trace.returned),
                environment=self.environment,
                scenario=scenario,
                split=split,
                depth=program.depth,
                chain=program.chain,
                structure=program.structure,
                returns=program.returns,
                program=program,
            )
            self._tasks[task.id] = task

    @property
    def splits(self) -> Mapping[str, int]:
        """Name and size of each split."""
        return {split: len(self[split]) for split in ("train", "evaluation")}

    def __getitem__(self, split: str) -> Sequence[cw.Task]:
        """The tasks of a split. Raises :class:`callwright.errors.UnknownName`."""
        if split not in ("train", "evaluation"):
            raise UnknownName(f"split of {self.name}", split, ("train", "evaluation"))
        return [task for task in self._tasks.values() if task.split == split]

    def task(self, task_id: str) -> cw.Task:
        """The task with this id. Raises :class:`callwright.errors.UnknownName`."""
        if task_id not in self._tasks:
            raise UnknownName(f"task of {self.name}", task_id, self._tasks)
        return self._tasks[task_id]
