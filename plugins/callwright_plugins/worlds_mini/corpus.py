"""The corpus: tasks made of their files when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from callwright.environments.paging import Fit
from callwright.environments.protocol import Environment
from callwright.errors import DataError, UnknownName
from callwright.language.program import Program, plain
from callwright.pickling import made_by
from callwright.plugins import Registry, default_registry
from callwright.walk.corpora.on_demand import TasksOnDemand
from callwright.walk.execution import Execution
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Answer, Corpus, Task
from callwright.walk.users.said import UserSpec
from callwright_plugins.worlds_mini import NAME
from callwright_plugins.worlds_mini.script import Script, read_scripts
from callwright_plugins.worlds_mini.variants import joined, mutants, programs, reordered

#: The one split: tasks to measure with, not to learn from.
SPLIT: Final = "validation"
#: Twice the turns that the longest reference has.
LIMITS: Final = TurnLimits(assistant_turns=20, user_turns=10)


class WorldsMini(Corpus):
    """The corpus ``worlds-mini-v1``: fifty conversations, all of them in the split ``validation``.

    A task's world is fixed: its scenario and its seed. Its facts hold the ``goal``, the reference turn by turn
    (``gold``), its environment and whether it ``changes_nothing``. Its program is all calls of the reference at once,
    where no time has to pass between them; its answer is what the last of them returns. ``registry`` is where the
    environments come from; they are given ``page_bytes`` and ``compact``
    (:class:`callwright.environments.paging.Fit`). Raises :class:`callwright.UsageError` for values that cannot be.
    """

    limits = LIMITS

    def __init__(self, registry: Registry | None = None, page_bytes: int | None = None, compact: bool = False) -> None:
        fit = Fit(page_bytes, compact)
        self._fit: dict[str, Any] = {} if fit == Fit() else {"page_bytes": page_bytes, "compact": compact}
        self._registry = registry or default_registry()
        self._scripts = read_scripts()
        self._places = {script.id: place for place, script in enumerate(self._scripts)}
        self._tasks = TasksOnDemand(len(self._scripts), self._make, [_depth(script) for script in self._scripts])

    def __reduce__(self) -> Any:
        return made_by(self, WorldsMini, *((None, *self._fit.values()) if self._fit else ()))

    @property
    def name(self) -> str:
        return NAME

    @property
    def environment(self) -> Environment:
        """That of the first task; each task has its own."""
        return self.environment_of(self._scripts[0])

    @property
    def splits(self) -> Mapping[str, int]:
        """``validation`` with its size."""
        return {SPLIT: len(self._scripts)}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, by environment. Raises :class:`callwright.errors.UnknownName`."""
        if split != SPLIT:
            raise UnknownName(f"split of {NAME}", split, [SPLIT])
        return self._tasks

    def task(self, task_id: str) -> Task:
        """The task with this id (``banking-savings-course``). Raises :class:`callwright.errors.UnknownName`."""
        return self._tasks[self._place(task_id)]

    def script(self, task_id: str) -> Script:
        """The task as its file states it. Raises :class:`callwright.errors.UnknownName`."""
        return self._scripts[self._place(task_id)]

    def mutants(self, task_id: str) -> Iterator[tuple[str, list[Program]]]:
        """Variants of the reference, turn by turn, that miss the goal, each with its name."""
        return mutants(self.script(task_id))

    def orders(self, task_id: str) -> Iterator[list[Program]]:
        """Variants of the reference that reach the goal in another order."""
        return reordered(self.script(task_id))

    def environment_of(self, script: Script) -> Environment:
        """The environment of a task; several at once for a name like ``email+calendar``."""
        made: Environment = self._registry.create("environment", script.environment, **self._fit)
        return made

    def _make(self, place: int) -> Task:
        script = self._scripts[place]
        return make_task(script, self.environment_of(script))

    def _place(self, task_id: str) -> int:
        if task_id not in self._places:
            raise UnknownName(f"task of {NAME}", task_id, self._places)
        return self._places[task_id]


def make_task(script: Script, environment: Environment) -> Task:
    """The task of a script. Raises :class:`callwright.errors.DataError` for a reference that does not execute."""
    tools = {name: spec for name, spec in environment.tools.items() if not spec.hidden}
    turns = programs(script)
    options = {**script.user}
    options.setdefault("satisfied", dict(script.goal))
    return Task(
        id=script.id,
        query=script.query,
        tools=tools,
        answer=_answer(script, environment, turns),
        environment=environment,
        scenario=script.scenario,
        seed=script.seed,
        split=SPLIT,
        depth=_depth(script),
        structure="conversation",
        program=None if script.clock else joined(turns),
        facts={
            "goal": dict(script.goal),
            "gold": [_stated(turn) for turn in turns],
            "environment": script.environment,
            "changes_nothing": script.changes_nothing,
        },
        clock=script.clock,
        user=UserSpec("scripted", options),
    )


def _depth(script: Script) -> int:
    return sum(len(turn) for turn in script.gold if not isinstance(turn, str))


def _stated(turn: Program) -> dict[str, Any]:
    """A turn of the reference as JSON: what is said, or the calls."""
    if not turn.calls:
        return {"say": turn.text}
    return {"calls": [{"tool": call.tool, "arguments": plain(call.arguments)} for call in turn.calls]}


def _answer(script: Script, environment: Environment, turns: Sequence[Program]) -> Answer:
    """What the calls of the last turn with calls return, the others made before it."""
    tools = environment.tools
    execution = Execution(environment, tools, scenario=script.scenario, seed=script.seed, clock=script.clock)
    values: tuple[Any, ...] = ()
    try:
        for turn in turns:
            trace = execution.run(turn)
            if turn.calls and not trace.answer_executed:
                raise DataError(f"task {script.id!r}: its reference fails: {trace.failures}")
            if turn.calls:
                values = tuple(trace.returned)
    finally:
        execution.close()
    return Answer(values)
