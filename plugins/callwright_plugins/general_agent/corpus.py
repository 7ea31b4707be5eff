"""A folder of tasks as a corpus. Families, the tiers of one world, are never in two splits."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.digests import digest_of
from callwright.errors import DataError, UnknownName
from callwright.language.program import Call, Program
from callwright.options import read_options
from callwright.walk.corpora.on_demand import TasksOnDemand
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Answer, Corpus, Task
from callwright.walk.users.world import GOAL
from callwright_plugins.general_agent.environment import TaskEnvironment
from callwright_plugins.general_agent.options import FolderOptions

NAME: Final = "general-agent"
_TIER: Final = re.compile(r"_t\d+$")
#: One family in so many is for evaluation, by a hash of its name.
_HELD_OUT: Final = 10


class GeneralAgentTasks(Corpus):
    """The corpus ``general-agent``: a task for each folder with a ``task.toml``, in the order of their names.

    The answer is what the last gold call returns; the reward ``general-agent`` asks the task's own check instead.
    Raises :class:`callwright.errors.DataError` for a folder without tasks, or with files that cannot be read.
    """

    def __init__(self, data: str | Path | None = None, **options: Any) -> None:
        given = {**options, **({} if data is None else {"data": data})}
        self._options = read_options(FolderOptions, given, f"the corpus {NAME!r}")
        root = Path(self._options.data).absolute()
        self._folders: dict[str, list[Path]] = {"train": [], "evaluation": []}
        for path in sorted(root.glob("*/task.toml")):
            if self._wanted(path):
                self._folders[split_of(path.parent.name)].append(path.parent)
        if not any(self._folders.values()):
            raise DataError(f"{root} has no task of general-agent that is wanted: a folder with a task.toml each")
        self._given = given
        self._tasks = {
            split: TasksOnDemand(len(folders), _Maker(split, folders)) for split, folders in self._folders.items()
        }

    def __reduce__(self) -> Any:
        return _made, (self._given,)

    def _wanted(self, path: Path) -> bool:
        options, family = self._options, family_of(path.parent.name)
        if options.families and family not in options.families:
            return False
        try:
            told = tomllib.loads(path.read_text("utf-8")).get("metadata", {})
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}") from error
        tier = told.get("tier", 0)
        low, high = options.min_tier, options.max_tier
        return (low is None or tier >= low) and (high is None or tier <= high)

    @property
    def name(self) -> str:
        """The registered name."""
        return NAME

    @property
    def limits(self) -> TurnLimits:
        """As many turns as an agent with tools usually has."""
        return TurnLimits(assistant_turns=30)

    @property
    def environment(self) -> TaskEnvironment:
        """That of the first task: each has its own."""
        folders = self._folders["train"] or self._folders["evaluation"]
        return TaskEnvironment(folders[0])

    @property
    def splits(self) -> Mapping[str, int]:
        """Name and number of tasks of each split that has any."""
        return {split: len(folders) for split, folders in self._folders.items() if folders}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self.splits:
            raise UnknownName(f"split of {NAME}", split, self.splits)
        return self._tasks[split]

    def task(self, task_id: str) -> Task:
        """A task by the name of its folder. Raises :class:`callwright.errors.UnknownName`."""
        for split, folders in self._folders.items():
            for number, folder in enumerate(folders):
                if folder.name == task_id:
                    return self._tasks[split][number]
        raise UnknownName(
            f"task of {NAME}", task_id, (one.name for folders in self._folders.values() for one in folders)
        )


def family_of(name: str) -> str:
    """The name of a task without its tier."""
    return _TIER.sub("", name)


def split_of(name: str) -> str:
    """The split of a task, which is that of its family."""
    return "evaluation" if int(digest_of(family_of(name))[:8], 16) % _HELD_OUT == 0 else "train"


class _Maker:
    def __init__(self, split: str, folders: Sequence[Path]) -> None:
        self._split, self._folders = split, folders

    def __call__(self, number: int) -> Task:
        folder = self._folders[number]
        environment = TaskEnvironment(folder)
        program = Program(tuple(Call(at, name, given) for at, (name, given) in enumerate(environment.gold())))
        session = environment.open()
        outcomes = [session.call(call.tool, dict(call.arguments)) for call in program.calls]
        for call, outcome in zip(program.calls, outcomes, strict=True):
            if not outcome.executed:
                raise DataError(f"{folder}: gold call {call.id} {call.tool} fails: {outcome.message}")
        try:
            query = (folder / "instruction.md").read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise DataError(f"{folder / 'instruction.md'} cannot be read: {error}") from error
        return Task(
            folder.name,
            query,
            environment.tools,
            Answer(tuple(outcome.value for outcome in outcomes[-1:])),
            environment,
            split=self._split,
            depth=len(outcomes),
            chain=1,
            structure=program.structure,
            program=program,
            facts={GOAL: {NAME: folder.name}, "family": family_of(folder.name)},
        )


def _made(given: dict[str, Any]) -> GeneralAgentTasks:
    return GeneralAgentTasks(**given)


GeneralAgentTasks.__signature__ = inspect.signature(FolderOptions)  # type: ignore[attr-defined]
