"""Ground truths of Prove: steps, each of one or more calls, with the steps that have to come before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.hazards.policy import Hazards
from callwright.episodes.logs.unstated import abstain_without_calls
from callwright.errors import DataError
from callwright.language.program import Program, plain, revive
from callwright.walk.execution import execute
from callwright.walk.tasks import Task

#: The fact of a task that holds its steps, where they are not the calls of its reference program.
FACT: Final = "steps"
_REMEMBERED: Final = 1 << 15


@frozen
class TrueCall:
    """A call that is due: its step, tool and arguments, the results of earlier calls put in where they are known."""

    step: int
    tool: str
    arguments: Mapping[str, Any] = field(repr=False)


@frozen(eq=False)
class Truth:
    """G with its edges: ``before[g]`` are the steps that step ``g`` depends on; ``calls`` in the order of the steps."""

    before: tuple[tuple[int, ...], ...]
    calls: tuple[TrueCall, ...]
    names: frozenset[str]

    @property
    def steps(self) -> int:
        """|G|."""
        return len(self.before)


class Truths:
    """The ground truth of each task; a bounded number of tasks is remembered, by identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Task, Truth]] = {}

    def of(self, task: Task) -> Truth:
        """The ground truth. Raises :class:`callwright.errors.DataError` if the task has none that can be read.

        The references of a reference program are replaced by what it gets when it runs in the task's world.
        """
        key = id(task)
        known = self._known.get(key)
        if known is not None and known[0] is task:
            return known[1]
        truth = _read(task)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = task, truth
        return truth


TRUTHS: Final = Truths()


def calls_due(task: Task) -> int:
    """n_gt, the number of true calls; a reference program is only counted, not run."""
    if task.facts.get(FACT) is None and task.program is not None:
        return len(task.program.calls)
    return len(TRUTHS.of(task).calls)


def _read(task: Task) -> Truth:
    steps = task.facts.get(FACT)
    if steps is not None:
        return from_steps(task.id, steps)
    if task.program is not None:
        return from_program(task, task.program)
    abstain_without_calls(task)
    if task.answer.is_no_call:
        return Truth((), (), frozenset())
    raise DataError(f"task {task.id!r} has neither a reference program nor the fact 'steps'")


def from_program(task: Task, program: Program) -> Truth:
    """Each call is a step; the edges are its references."""
    before: list[list[int]] = [[] for _ in program.calls]
    for earlier, later in program.edges:
        before[later].append(earlier)
    arguments: list[Mapping[str, Any]] = [plain(call.arguments) for call in program.calls]
    if program.edges:
        place = task.environment, task.tools
        world: Any = {"scenario": task.scenario, "seed": task.seed, "opening": task.opening}
        trace = execute(program, *place, **world, hazards=Hazards())
        for index, step in enumerate(trace.records):
            if step.arguments:
                arguments[index] = step.arguments
    calls = tuple(
        TrueCall(index, call.tool, found)
        for index, (call, found) in enumerate(zip(program.calls, arguments, strict=True))
    )
    return Truth(tuple(map(tuple, before)), calls, frozenset(call.tool for call in program.calls))


def from_steps(task_id: str, steps: Any) -> Truth:
    """From ``[{"calls": [{"name", "arguments"}], "after": [earlier steps]}]``; a step of one call may be that call.

    Raises :class:`callwright.errors.DataError` if it is not of this form.
    """
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise _bad(task_id, "they are not a list")
    before, calls = [], []
    for number, step in enumerate(steps):
        if not isinstance(step, Mapping):
            raise _bad(task_id, f"step {number} is not an object")
        after = step.get("after", ())
        if not isinstance(after, Sequence) or not all(type(other) is int and 0 <= other < number for other in after):
            raise _bad(task_id, f"'after' of step {number} is not a list of earlier steps, counted from 0")
        inner = step.get("calls", [step])
        if not isinstance(inner, Sequence) or not inner:
            raise _bad(task_id, f"step {number} has no calls")
        for call in inner:
            name = call.get("name") if isinstance(call, Mapping) else None
            arguments = call.get("arguments", {}) if isinstance(call, Mapping) else None
            if not isinstance(name, str) or not isinstance(arguments, Mapping):
                raise _bad(task_id, f"a call of step {number} is not an object with a name and arguments")
            calls.append(TrueCall(number, name, plain(revive(dict(arguments)))))
        before.append(tuple(dict.fromkeys(after)))
    return Truth(tuple(before), tuple(calls), frozenset(call.tool for call in calls))


def _bad(task_id: str, reason: str) -> DataError:
    return DataError(f"task {task_id!r}: the fact 'steps' cannot be read: {reason}")
