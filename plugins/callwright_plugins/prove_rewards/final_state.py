"""The final state: what the attempt leaves behind is what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, ClassVar, Final

from attrs import field, frozen

from callwright.environments.goals import Comparison, Goal, compare
from callwright.environments.hazards.policy import Hazards
from callwright.environments.living.policy import ClockPolicy
from callwright.episodes.logs.unstated import abstain_without_calls
from callwright.errors import Abstention, DataError, InfrastructureFailure
from callwright.language.program import Program
from callwright.walk.attempt import Attempt
from callwright.walk.execution import Execution
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright.walk.tasks import Task
from callwright.walk.users.said import Said
from callwright.walk.users.world import GOAL, told_as_json

_REMEMBERED: Final = 1 << 14
#: How many end states of a task are remembered with their scores: those of a group, and of some more.
_STATES_OF_A_TASK: Final = 256
_MOST_SHOWN: Final = 8


@frozen
class Left:
    """What a program leaves.

    ``state`` is the session's ``goal_state()``, ``first`` that before the first call, ``snapshot`` its ``snapshot()``
    (all JSON, ``None`` where the session has no such method), ``checked`` what the task's goal came to.
    """

    digest: str
    snapshot: Any = None
    masked: str | None = None
    state: Any = None
    first: Any = None
    checked: Comparison | None = None


@frozen
class _Known:
    """A task, what is expected of it under a clock, and the scores of end states by digest."""

    task: Task
    expected: Left
    clock: ClockPolicy | None
    scores: dict[str, Score] = field(factory=dict)


class FinalState(RewardComponent):
    """In [0, 1]: 1 if what was asked for has changed and nothing else has.

    A task whose facts hold a ``goal`` (:class:`callwright.environments.goals.Goal`, JSON) is held against it; any other
    against what its reference program leaves in a fresh session (:func:`callwright.environments.goals.compare`).
    Calling nothing leaves the scenario's first state. Sessions without ``goal_state()`` are compared by their digests,
    and a difference is explained path by path if they have a method ``snapshot()`` that returns their state as JSON.

    ``exact`` compares digests where a task states no goal, as before there were goals. ``partial`` gives the share of
    rows that are right for a state that is not. Both are off by default. Of an attempt that was made elsewhere only the
    digest is known: another digest than the expected one earns 0, and under a goal the score abstains, unless its
    session was asked when it ran (:class:`callwright.Log`).
    """

    name: ClassVar[str] = "final_state"
    stage: ClassVar[str] = "answer"

    def __init__(self, exact: bool = False, partial: bool = False) -> None:
        self.exact, self.partial = exact, partial
        self._known: dict[int, _Known] = {}

    def __reduce__(self) -> Any:
        return type(self), (self.exact, self.partial)  # without the tasks that it has seen

    def score(self, attempt: Attempt) -> Score:
        """The score, with the differences as evidence.

        Raises :class:`callwright.errors.DataError` for a task with neither a goal nor a reference program.
        """
        known = self._of(attempt.task, attempt.task.clock or attempt.conditions.clock)
        expected = known.expected
        if expected.masked is not None:
            return _masked(f"the reference program: {expected.masked}")
        failure = attempt.failure
        if failure is not None and len(attempt.parts) == 1:  # of several turns, what the others did counts
            return Score(0.0, evidence=(Evidence(failure.code, failure.message),))
        trace = attempt.whole_trace
        if trace.masked is not None:
            return _masked(trace.masked)
        digest = trace.final_state
        if not digest and trace.records:
            raise Abstention("the record of this attempt holds no digest of the state that it left")
        found: Left | None = None
        if not digest:
            found = leave((), attempt.task)
            if found.masked is not None:
                return _masked(found.masked)
            digest = found.digest
        if digest == expected.digest:
            return _FULL
        if GOAL in attempt.task.facts:  # what was said in the end may count, too, and that is in no digest
            return self._compared(attempt, known, found)
        score = known.scores.get(digest)
        if score is None:
            score = self._compared(attempt, known, found)
            if score.masked is None and not attempt.is_told:
                if len(known.scores) >= _STATES_OF_A_TASK:
                    known.scores.clear()
                known.scores[digest] = score
        return score

    def _compared(self, attempt: Attempt, known: _Known, found: Left | None) -> Score:
        expected = known.expected
        stated = GOAL in attempt.task.facts
        if attempt.is_told and not stated:  # nothing of it may be executed, so its state is not to be had
            return Score(0.0, evidence=(_OTHER_DIGEST,))
        by_digest = not stated and (self.exact or expected.state is None)
        if by_digest and expected.snapshot is None:
            return Score(0.0, evidence=(_OTHER_DIGEST,))
        try:
            comparison = attempt.goal if stated else None  # as the session said in which it ran
        except InfrastructureFailure as error:
            return _masked(str(error))
        if found is None and comparison is None:
            if attempt.is_told:
                raise Abstention("the attempt was made elsewhere; whether what it left is the goal is not known")
            said = (*attempt.said, *(None for _ in attempt.parts[len(attempt.said) :]))
            programs = [part if isinstance(part, Program) else Program() for part in attempt.parts]
            hazards = attempt.conditions.hazards_of(attempt.task)
            found = leave(programs, attempt.task, known.clock, hazards, said)
            if found.masked is not None:
                return _masked(found.masked)
        if comparison is None:
            assert found is not None
            if stated:
                assert found.checked is not None
                comparison = found.checked
            elif by_digest:
                comparison = compare(None, expected.snapshot, found.snapshot)
            else:
                comparison = compare(expected.first, expected.state, found.state)
        if comparison.equal and not by_digest:
            return _FULL
        evidence = tuple(
            Evidence("state", str(one), None, one.path, one.expected, one.found)
            for one in comparison.differences[:_MOST_SHOWN]
        )
        value = comparison.credit if self.partial and not by_digest else 0.0
        return Score(value, evidence=evidence or (_OTHER_DIGEST,))

    def _of(self, task: Task, clock: ClockPolicy | None) -> _Known:
        key = id(task)
        known = self._known.get(key)
        if known is not None and known.task is task and known.clock == clock:
            return known
        if GOAL in task.facts:
            _goal(task)
            left = Left("")  # which no session's digest is
        else:
            left = leave((_reference(task),), task, clock, Hazards())
        known = _Known(task, left, clock)
        if left.masked is not None:  # not kept: the machinery may be back the next time
            return known
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = known
        return known


def _reference(task: Task) -> Program:
    if task.program is not None:
        return task.program
    abstain_without_calls(task)
    if not task.answer.is_no_call:
        raise DataError(f"task {task.id!r} has neither a goal nor a reference program, so its final state is not known")
    return Program()


def _goal(task: Task) -> Goal | None:
    if GOAL not in task.facts:
        return None
    try:
        return Goal.from_json(task.facts[GOAL])
    except DataError as error:
        raise DataError(f"task {task.id!r}: the fact {GOAL!r} cannot be read: {error}") from error


def leave(
    programs: Sequence[Program],
    task: Task,
    clock: ClockPolicy | None = None,
    hazards: Hazards | None = None,
    said: Sequence[Said | None] = (),
) -> Left:
    """Run the programs of the turns in a fresh session of the task's world, its time moving by ``clock``, and look at
    what they leave. One without calls lets a turn of the user pass, as in an episode; ``said`` is what the user said
    and did after each. ``hazards`` are those that an attempt met; a reference program meets none (``Hazards()``).
    """
    goal = _goal(task)
    world: Any = {"scenario": task.scenario, "seed": task.seed, "opening": task.opening, "appear": task.appear}
    execution = Execution(task.environment, task.tools, **world, clock=clock, hazards=hazards)
    try:
        first = told_as_json(execution, "goal_state")
        for program, user in zip_longest(programs, said):
            masked = execution.run(program).masked
            if masked is None and user is not None:
                masked = execution.act(user.calls).masked
            if masked is not None:
                return Left("", masked=masked)
        state = told_as_json(execution, "goal_state")
        checked = None if goal is None else _checked(execution, goal)
        return Left(execution.look("digest"), told_as_json(execution, "snapshot"), None, state, first, checked)
    except InfrastructureFailure as error:
        return Left("", masked=str(error))
    except DataError as error:
        raise DataError(f"task {task.id!r}: {error}") from error
    finally:
        execution.close()


def _checked(execution: Execution, goal: Goal) -> Comparison:
    found: Comparison | None = execution.look("goal", goal.to_json())
    if found is None:
        raise DataError(
            "it has a goal, and sessions of its environment do not tell what they have come to: give them a method "
            "goal_state()"
        )
    return found


def _masked(reason: str) -> Score:
    return Score(0.0, evidence=(Evidence("infrastructure_error", reason),), masked=reason)


_FULL: Final = Score(1.0)
_OTHER_DIGEST: Final = Evidence("state", "the state is not what it should be")
