"""The multi-turn categories of a version of BFCL: tasks for models, and verdicts as the official checker gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from callwright.errors import InfrastructureFailure, UnknownName, UsageError
from callwright.language.parser import Parser
from callwright.measuring.benchmark import Judgement
from callwright.walk.attempt import Attempt
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.bfcl.multi_turn.answers import (
    OfficialAnswer,
    Turns,
    attempted_turns,
    official_turns,
    read_answer,
)
from callwright_plugins.bfcl.multi_turn.classes import Asked, OfficialClasses
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES, LIMITS, Entry, read_entries, read_tools, task_of
from callwright_plugins.bfcl.multi_turn.environment import NEEDS_CLASSES, ClassesEnvironment


class MultiTurn:
    """``multi_turn_base``, ``_miss_func``, ``_miss_param`` and ``_long_context`` of ``v3`` or ``v4``.

    ``data`` is a folder with BFCL's files of this version; ``package`` the pinned wheel, or the folder in which it was
    unpacked. Without it tasks can be read, and judging raises :class:`callwright.UsageError`.
    """

    #: Of an episode: 20 steps a turn, and what cannot be read ends a turn.
    limits: Final[TurnLimits] = LIMITS

    def __init__(self, version: str, data: str | Path, package: str | Path | None = None) -> None:
        self.version, self.data = version, Path(data)
        self.classes = None if package is None else OfficialClasses(package, version)

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Every entry by id, category by category."""
        return {
            key: entry
            for category in CATEGORIES
            for key, entry in read_entries(self.data, self.version, category).items()
        }

    @cached_property
    def environment(self) -> ClassesEnvironment:
        """Where the tasks' calls are executed."""
        tools = {spec.name: spec for specs in self._tools.values() for spec in specs}
        return ClassesEnvironment(self.version, tools, self.entries, self.classes)

    @cached_property
    def _tools(self) -> Mapping[str, Sequence[Any]]:
        return read_tools(self.data)

    @cached_property
    def _tasks(self) -> Mapping[str, Sequence[Task]]:
        made: dict[str, list[Task]] = {category: [] for category in CATEGORIES}
        for entry in self.entries.values():
            made[entry.category].append(task_of(entry, self._tools, self.environment))
        return made

    def tasks(self, category: str) -> Sequence[Task]:
        """The tasks of a category, in the order of its file. Raises :class:`callwright.errors.UnknownName`."""
        if category not in self._tasks:
            raise UnknownName("multi-turn category of BFCL", category, CATEGORIES)
        return self._tasks[category]

    def answer(self, row: Mapping[str, Any], task: Task, parser: Parser) -> Attempt | None:
        """The answer of an official row (:func:`.answers.read_answer`); ``None`` if it holds none."""
        return read_answer(row, task, parser, self.version)

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """What the official runner and checker say of an answer or an attempt.

        ``multi_turn:force_terminated`` where it has another number of turns than the gold calls, as one whose turn took
        more than 20 steps; ``multi_turn:inference_error`` where an official file says so. Masked where the process of
        the classes was lost. Raises :class:`callwright.UsageError` without the classes.
        """
        return self.judge_together([(task, attempt)])[0]

    def judge_together(self, attempts: Sequence[tuple[Task, Attempt]]) -> list[Judgement]:
        """As :meth:`judge`, of several: much quicker than one after the other."""
        if self.classes is None:
            raise UsageError(NEEDS_CLASSES)
        found: list[Judgement | None] = []
        asked: list[Asked] = []
        for task, attempt in attempts:
            entry = self.entries[task.id]
            try:
                turns = _turns(entry, attempt, self.classes)
            except InfrastructureFailure as error:
                turns = _masked(str(error))
            if isinstance(turns, Judgement):
                found.append(turns)
            else:
                found.append(None)
                asked.append((entry, turns))
        verdicts = iter(self.classes.verdicts(asked) if asked else ())
        return [_judgement(next(verdicts)) if one is None else one for one in found]

    def close(self) -> None:
        """End the process of the classes. Closing twice is allowed."""
        if self.classes is not None:
            self.classes.close()


def _turns(entry: Entry, attempt: Attempt, classes: OfficialClasses) -> Turns | Judgement:
    """The calls of an answer, or what is said of it without executing any."""
    if isinstance(attempt, OfficialAnswer):
        if attempt.steps is None:
            return _wrong("inference_error", "there is no list of turns")
        if len(attempt.steps) != len(entry.gold):
            return _other_length(len(attempt.steps), entry)
        return official_turns(attempt.steps, classes.methods(entry))
    if attempt.stop == "machinery":
        return _masked(attempt.masked or "the machinery failed")
    turns = attempted_turns(attempt, classes.methods(entry))
    if attempt.masked is not None:
        return _masked(attempt.masked)
    return turns if len(turns) == len(entry.gold) else _other_length(len(turns), entry)


def _judgement(found: dict[str, Any] | InfrastructureFailure) -> Judgement:
    if isinstance(found, InfrastructureFailure):
        return _masked(str(found))
    if found["valid"]:
        return Judgement(correct=True, score=1.0)
    about = f"turn {found['turn']}: {found['about']}"
    return Judgement(correct=False, score=0.0, error=found["error_type"], evidence=(about,))


def _masked(why: str) -> Judgement:
    return Judgement(correct=False, score=0.0, masked=why)


def _other_length(turns: int, entry: Entry) -> Judgement:
    return _wrong("force_terminated", f"the answer has {turns} turns, the gold calls have {len(entry.gold)}")


def _wrong(error: str, why: str) -> Judgement:
    return Judgement(correct=False, score=0.0, error=f"multi_turn:{error}", evidence=(why,))
