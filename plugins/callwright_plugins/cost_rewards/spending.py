"""Spending: what calls cost in money and time, and what a task needs: what its reference program costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.hazards.policy import Hazards
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import EXECUTED
from callwright.errors import DataError
from callwright.language.program import Program
from callwright.tools.costing import cost_of
from callwright.tools.spec import ToolSpec
from callwright.walk.execution import execute
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord, Trace

#: The fact of a task that says what it may spend, in place of what its reference program does.
BUDGET: Final = "budget"
_REMEMBERED: Final = 1 << 12
#: A call that was not made, or that ends before it reaches its tool, costs nothing.
_NOT_MADE: Final = frozenset({"unavailable", "timeout", "rate_limit", "fault"})


def was_made(record: CallRecord) -> bool:
    """Whether a call did what it does: it executed, also if its answer was lost."""
    outcome = record.outcome
    return outcome.kind in EXECUTED or outcome.executed or outcome.injected == "lost_reply"


def cents(record: CallRecord, tools: Mapping[str, ToolSpec]) -> int:
    """What a call cost."""
    spec = tools.get(record.tool)
    return cost_of(spec, record.outcome.value) if spec is not None and was_made(record) else 0


def seconds(record: CallRecord, tools: Mapping[str, ToolSpec]) -> int:
    """How long a call took by the latency of its tool: also one that the tool refused, and none that it never got."""
    spec, outcome = tools.get(record.tool), record.outcome
    if spec is None or outcome.kind in ("unknown_tool", "schema_error") or outcome.injected in _NOT_MADE:
        return 0
    return spec.latency


@frozen
class Needed:
    """What a task needs: cents, seconds, and the calls that cannot be undone. ``masked``: it could not be found out."""

    cents: int = 0
    seconds: int = 0
    irreversible: tuple[tuple[str, Any], ...] = ()
    masked: str | None = None


@frozen
class _Known:
    task: Task
    clock: ClockPolicy | None
    needed: Needed


@frozen
class Needs:
    """What tasks need, remembered."""

    _known: dict[int, _Known] = field(factory=dict, repr=False)

    def of(self, task: Task, clock: ClockPolicy | None) -> Needed:
        """What a task needs where time moves by ``clock``.

        Raises :class:`callwright.errors.DataError` for a task with neither a reference program nor a budget.
        """
        known = self._known.get(id(task))
        if known is not None and known.task is task and known.clock == clock:
            return known.needed
        needed = _needed(task, clock)
        if needed.masked is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[id(task)] = _Known(task, clock, needed)
        return needed


#: One for all components: the reference program of a task runs once.
NEEDS: Final = Needs()


def _needed(task: Task, clock: ClockPolicy | None) -> Needed:
    program, stated = task.program, task.facts.get(BUDGET)
    if program is None and stated is None and not task.answer.is_no_call:
        raise DataError(
            f"task {task.id!r} has neither a reference program nor a fact {BUDGET!r}, so what it needs is not known: "
            f'give it one, such as {{"{BUDGET}": {{"cents": 0, "seconds": 5}}}}'
        )
    found = Needed()
    if program is not None and program.calls:
        trace = run(program, task, clock)
        if trace.masked is not None:
            return Needed(masked=f"the reference program: {trace.masked}")
        found = Needed(*spent(trace.records, task.tools), irreversible=irreversible(trace.records, task.tools))
    if stated is None:
        return found
    return Needed(*_budget(task, stated, found), irreversible=found.irreversible)


def _budget(task: Task, stated: Any, found: Needed) -> tuple[int, int]:
    given = {"cents": found.cents, "seconds": found.seconds}
    if not isinstance(stated, Mapping):
        raise DataError(f"task {task.id!r}: the fact {BUDGET!r} is an object of cents and seconds, not {stated!r:.80}")
    for name, value in stated.items():
        if name not in given or type(value) is not int or value < 0:
            raise DataError(
                f"task {task.id!r}: the fact {BUDGET!r} has {name!r:.40}: {value!r:.40}, no cents or seconds"
            )
        given[name] = value
    return given["cents"], given["seconds"]


def run(program: Program, task: Task, clock: ClockPolicy | None) -> Trace:
    """A program in a fresh session of the task's world that meets no hazards."""
    return execute(
        program,
        task.environment,
        task.tools,
        scenario=task.scenario,
        seed=task.seed,
        clock=clock,
        hazards=Hazards(),
        opening=task.opening,
    )


def spent(records: Iterable[CallRecord], tools: Mapping[str, ToolSpec]) -> tuple[int, int]:
    """Cents and seconds of calls."""
    listed = list(records)
    return sum(cents(record, tools) for record in listed), sum(seconds(record, tools) for record in listed)


def irreversible(records: Iterable[CallRecord], tools: Mapping[str, ToolSpec]) -> tuple[tuple[str, Any], ...]:
    """Tool and arguments of the calls that were made and cannot be undone."""
    return tuple(
        (record.tool, dict(record.arguments))
        for record in records
        if (spec := tools.get(record.tool)) is not None and spec.irreversible and was_made(record)
    )
