"""Runs: programs of a task, turn by turn in a fresh session of its world, and what they leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import evolve, field, frozen

from callwright.environments.goals import Comparison, Difference, Goal, check_paths, compare, equal_states
from callwright.environments.goals.comparing import Standard
from callwright.environments.protocol import Environment
from callwright.errors import InfrastructureFailure
from callwright.language.program import Call, Program
from callwright.walk.execution import Execution
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord, Trace
from callwright.walk.users.world import GOAL


@frozen(eq=False, slots=False)
class Shown:
    """How a state compares with the one that a goal shows. Only whether they are equal is found out for most runs."""

    standard: Standard = field(repr=False)
    found: Any = field(repr=False)

    @cached_property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.standard.equals(self.found)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """What differs."""
        return compare(None, self.standard.state, self.found).differences


@frozen(eq=False)
class Run:
    """What some turns came to. ``turns`` holds the records of each; ``state`` and ``digest`` are those after the last.

    ``first`` is the state before the first call, ``reached`` what the goal of the task came to: ``None`` for a task
    without one.
    """

    turns: tuple[tuple[CallRecord, ...], ...]
    state: Any = field(repr=False)
    first: Any = field(repr=False)
    digest: str
    first_digest: str
    reached: Comparison | Shown | None = None

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """Every call, in order."""
        return tuple(record for turn in self.turns for record in turn)

    @property
    def values(self) -> list[Any]:
        """What the calls returned that executed."""
        return [record.outcome.value for record in self.records if record.outcome.executed]

    @property
    def changes(self) -> bool:
        """Whether the world has come to something else."""
        if self.state is None:
            return self.digest != self.first_digest
        return not equal_states(self.first, self.state)

    def leaves_as(self, other: Run) -> bool:
        """Whether both runs have come to the same."""
        if self.digest == other.digest:
            return True
        return self.state is not None and other.state is not None and equal_states(self.state, other.state)


def further(
    task: Task, turns: Sequence[Program], calls: Iterable[Call], environment: Environment
) -> Iterator[tuple[Call, str, CallRecord]]:
    """Further calls in the last of some turns, one after the other as they are asked for: each with the digest before
    it, and its record. What is not asked for is not made.

    Raises as :func:`run` does.
    """
    execution = _execution(task, environment)
    try:
        for turn in turns[:-1]:
            _traced(execution, turn)
        last = turns[-1]
        before, begun = "", False
        for call in calls:
            program = evolve(last, calls=(call,) if begun else (*last.calls, call))
            trace = _traced(execution, program, goes_on=begun)
            states = [trace.state, *(record.state for record in trace.records)]
            before, begun = states[-2], True
            yield call, before, trace.records[-1]
    finally:
        execution.close()


def _execution(task: Task, environment: Environment) -> Execution:
    world: dict[str, Any] = {"scenario": task.scenario, "seed": task.seed, "clock": task.clock, "hazards": task.hazards}
    return Execution(environment, task.tools, **world, opening=task.opening, appear=task.appear or None, task=task.id)


def _traced(execution: Execution, program: Program, *, goes_on: bool = False) -> Trace:
    trace = execution.run(program, goes_on=goes_on)
    if trace.masked is not None:
        raise InfrastructureFailure(trace.masked)
    return trace


def run(
    task: Task,
    turns: Sequence[Program],
    *,
    judged: bool = True,
    environment: Environment | None = None,
    standard: Standard | None = None,
) -> Run:
    """Run the turns in the world of a task. One without calls lets a turn of the user pass.

    ``judged``: the end state, and what the goal came to, are known of it, too; else no more than its digest.
    ``environment`` may remember what calls come to (:func:`.worlds.remembering`); without it they are made in a fresh
    session. ``standard`` is the state that the goal shows, where that was read already.

    Raises :class:`callwright.InfrastructureFailure` where the session is lost, and :class:`callwright.CallwrightError`
    for a world or a goal that is none.
    """
    goal = task.facts.get(GOAL)
    execution = _execution(task, environment or task.environment)
    try:
        before = execution.look("digest")
        first = execution.look("goal_state") if judged else None
        records = [_traced(execution, turn).records for turn in turns]
        state = execution.look("goal_state") if judged else None
        reached = None if goal is None or not judged else _reached(execution, goal, first, state, standard)
        return Run(tuple(records), state, first, execution.look("digest"), before, reached)
    finally:
        execution.close()


def shown_state(goal: Any) -> Any:
    """The state that a goal shows (``{"state": …}``); ``None`` for one that is stated."""
    return goal.get("state") if isinstance(goal, Mapping) and "state" in goal else None


def _reached(execution: Execution, goal: Any, first: Any, state: Any, standard: Standard | None) -> Comparison | Shown:
    shown = shown_state(goal)
    if state is not None and shown is not None and set(goal) == {"state"}:
        return Shown(standard or Standard(shown), state)
    found: Comparison | None = execution.look("goal", goal)
    return found if found is not None else check_paths(Goal.from_json(goal), first, state)
