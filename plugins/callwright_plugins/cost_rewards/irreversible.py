"""What cannot be undone and was not needed: found by leaving a call out and looking whether as much is reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from attrs import evolve, frozen

from callwright.environments.goals import compare
from callwright.environments.hazards.policy import Hazards
from callwright.environments.living.policy import ClockPolicy
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.program import Program
from callwright.walk.attempt import Attempt
from callwright.walk.execution import Execution
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord
from callwright.walk.turn import last_words
from callwright.walk.users.said import Said
from callwright.walk.users.world import GOAL
from callwright_plugins.cost_rewards.components import FULL, masked
from callwright_plugins.cost_rewards.spending import NEEDS, was_made

#: Calls that are left out, one at a time; of more, the others are taken for needless.
_MOST_TRIED: Final = 16
#: What the model wrote in a turn, and what its user did after it.
_Turn: TypeAlias = tuple[Program, Said | None]


class Irreversible(RewardComponent):
    """In [0, 1]: 1 - ``penalty`` for each irreversible call that was made and not needed, at least 0.

    A call of the reference program, with the same arguments, is needed. Any other is needed if less of the goal is
    reached without it: the turns are run again without that call and without hazards, and what they leave is held
    against the task's ``goal``, or against what the reference program leaves. Where sessions do not tell what they have
    come to, or the attempt was made elsewhere, only the reference program's calls are needed.

    ``penalty`` is above 0 and at most 1.
    """

    name: ClassVar[str] = "irreversible"
    stage: ClassVar[str] = "answer"

    def __init__(self, penalty: float = 0.5) -> None:
        if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 < penalty <= 1:
            raise UsageError(f"penalty is {penalty!r:.60}; what one needless call costs is above 0 and at most 1")
        self.penalty = float(penalty)

    def score(self, attempt: Attempt) -> Score:
        """1 if nothing was done without need that cannot be undone."""
        task, trace = attempt.task, attempt.whole_trace
        if trace.masked is not None:
            return masked(trace.masked)
        made = [
            position
            for position, record in enumerate(trace.records)
            if (spec := task.tools.get(record.tool)) is not None and spec.irreversible and was_made(record)
        ]
        if not made:
            return FULL
        clock = task.clock or attempt.conditions.clock
        needed = NEEDS.of(task, clock)
        if needed.masked is not None:
            return masked(needed.masked)
        due = list(needed.irreversible)
        others = []
        for position in made:
            call = trace.records[position].tool, dict(trace.records[position].arguments)
            if call in due:
                due.remove(call)
            else:
                others.append(position)
        try:
            useless = list(_needless(attempt, others, clock)) if others else []
        except InfrastructureFailure as error:
            return masked(str(error))
        if not useless:
            return FULL
        return Score(
            max(0.0, 1.0 - self.penalty * len(useless)),
            evidence=tuple(_told(trace.records[position]) for position in useless),
        )


def _told(record: CallRecord) -> Evidence:
    reason = f"call {record.call} {record.tool} cannot be undone, and as much is reached without it"
    return Evidence("needless_irreversible", reason, record.call, expected="no such call", found=record.tool)


def _needless(attempt: Attempt, positions: Sequence[int], clock: ClockPolicy | None) -> Iterator[int]:
    """Those of the calls without which as much of the goal is reached."""
    task = attempt.task
    said = (*attempt.said, *(None for _ in attempt.parts[len(attempt.said) :]))
    parts = [(part, one) for part, one in zip(attempt.parts, said, strict=True) if isinstance(part, Program)]
    last = last_words(attempt.completion, attempt.parts[-1])
    reached = None if attempt.is_told else _reached(task, _made_again(attempt, parts), clock, last)
    for number, position in enumerate(positions):
        if reached is None or number >= _MOST_TRIED:
            yield position
            continue
        without = _reached(task, _made_again(attempt, parts, position), clock, last)
        if without is not None and without >= reached:
            yield position


def _made_again(attempt: Attempt, parts: Sequence[_Turn], without: int | None = None) -> list[_Turn]:
    """The turns, with the calls that a hazard kept from being made left out, and one other."""
    records = attempt.whole_trace.records
    found: list[_Turn] = []
    begin = 0
    for part, said in parts:
        kept = tuple(
            call
            for position, call in enumerate(part.calls, begin)
            if position != without and (position >= len(records) or _reached_its_tool(records[position]))
        )
        begin += len(part.calls)
        if kept or not part.calls:
            found.append((part if len(kept) == len(part.calls) else evolve(part, calls=kept), said))
    return found


def _reached_its_tool(record: CallRecord) -> bool:
    return not record.outcome.injected or was_made(record)


# What is reached ------------------------------------------------------------------------------------------------------


def _reached(task: Task, turns: Sequence[_Turn], clock: ClockPolicy | None, last: str) -> float | None:
    """How much of the goal these turns and the ``last`` words reach, in [0, 1]; ``None`` where sessions do not tell."""
    goal = task.facts.get(GOAL)
    left = _left(task, turns, clock, goal, last)
    if goal is not None:
        return None if left.checked is None else float(left.checked)
    if left.state is None:
        return None
    expected = _left(task, [(task.program or Program(), None)], clock, None)
    return compare(left.first, expected.state, left.state).credit


@frozen
class _Left:
    first: Any = None
    state: Any = None
    checked: float | None = None


def _left(task: Task, turns: Sequence[_Turn], clock: ClockPolicy | None, goal: Any, last: str = "") -> _Left:
    world: Any = {"scenario": task.scenario, "seed": task.seed, "opening": task.opening, "appear": task.appear}
    execution = Execution(task.environment, task.tools, **world, clock=clock, hazards=Hazards())
    try:
        first = execution.look("goal_state")
        for program, said in turns:
            masked = execution.run(program).masked
            if masked is None and said is not None:
                masked = execution.act(said.calls).masked
            if masked is not None:
                raise InfrastructureFailure(masked)
        checked = None if goal is None else execution.look("goal", goal, last)
        return _Left(first, execution.look("goal_state"), None if checked is None else checked.credit)
    except DataError as error:
        raise DataError(f"task {task.id!r}: {error}") from error
    finally:
        execution.close()
