"""Whether a task holds: its reference program, executed in its world, comes to its answer, and its goal can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from callwright.environments import Hazards
from callwright.environments.protocol import Outcome
from callwright.errors import CallwrightError, UsageError
from callwright.walk.answers import answers_match, first_difference
from callwright.walk.conditions import DEFAULT_CONDITIONS
from callwright.walk.execution import execute
from callwright.walk.tasks import Answer, Task
from callwright.walk.trace import Trace
from callwright.walk.users.world import GOAL

#: What is said of a task that has no program to hold its answer against.
NO_PROGRAM: Final = ""


def complaint(task: Task) -> str | None:
    """What is wrong with a task, in words; ``None`` if it holds, :data:`NO_PROGRAM` if nothing but its world was tried.

    Its program has to come to its answer in its world, and in each of its instances to the answer of that one. As
    everywhere a reference program begins after the task's opening, and meets no hazards. A goal that is stated has to
    be one of its world: a name that is misspelt there stops whatever scores the task.
    """
    said = _of_program(task)
    return said or _of_goal(task) or said


def _of_program(task: Task) -> str | None:
    program = task.program
    if program is None:
        return _world(task)
    if not program.calls:
        return None if task.answer.is_no_call else "its program calls nothing, and its answer has values"
    for scenario, seed, answer in _worlds(task):
        try:
            trace = execute(
                program,
                task.environment,
                task.tools,
                scenario=scenario,
                seed=seed,
                clock=task.clock,
                hazards=Hazards(),
                opening=task.opening,
            )
        except CallwrightError as error:
            return f"its world cannot be opened: {error}"
        wrong = _wrong(trace, answer)
        if wrong is not None:
            return wrong if scenario == task.scenario else f"in the instance {scenario!r:.60}: {wrong}"
    return None


def _worlds(task: Task) -> Iterator[tuple[str, int, Answer]]:
    yield task.scenario, task.seed, task.answer
    for one in task.instances:
        yield one.scenario, one.seed, one.answer


def _wrong(trace: Trace, answer: Answer) -> str | None:
    if trace.failures:
        failed = trace.failures[0]
        return f"call {failed.call} of its program, {failed.tool}, fails: {_told(failed.outcome)}"
    if answers_match(answer, trace.returned):
        return None
    difference = first_difference(list(answer.values), list(trace.returned))
    if difference is None:
        return "its program returns its values in another number or order"
    at, expected, found = difference
    return f"its program returns another value{f' at {at}' if at else ''}: {found!r:.60}, not {expected!r:.60}"


def _told(outcome: Outcome) -> str:
    return ": ".join(part for part in (outcome.code or outcome.kind, outcome.message) if part)


def _of_goal(task: Task) -> str | None:
    """Why nobody could say whether the goal of a task is reached; ``None`` where somebody can."""
    goal = task.facts.get(GOAL)
    if goal is None or (isinstance(goal, Mapping) and "state" in goal):  # a session left such a state
        return None
    execution = DEFAULT_CONDITIONS.execution(task)
    try:
        execution.look("goal", goal)
    except UsageError as error:
        return f"its goal cannot be read: {error}"
    except CallwrightError as error:
        return f"its world cannot be opened: {error}"
    finally:
        execution.close()
    return None


def _world(task: Task) -> str | None:
    execution = DEFAULT_CONDITIONS.execution(task)
    try:
        execution.look("digest")
    except CallwrightError as error:
        return f"its world cannot be opened: {error}"
    finally:
        execution.close()
    return NO_PROGRAM
