"""Replays: whether an attempt that was recorded goes the same way in a fresh session of its task's world.

A reward of a told attempt believes the record. This is how to find out whether the record is of the world that the task
names: another seed, an order in which parallel calls really ran, or a tool that changed since all show.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from attrs import evolve, frozen

from callwright.environments.protocol import Outcome
from callwright.errors import InfrastructureFailure
from callwright.language.long_numbers import shortened_numbers
from callwright.language.program import Call, Program
from callwright.walk.answers import values_equal
from callwright.walk.attempt import Attempt
from callwright.walk.execution import UNRESOLVED, Execution
from callwright.walk.trace import CallRecord, Trace
from callwright.walk.turn import Turn

#: Calls that failed before they reached the session: there is nothing to replay.
_NEVER_RAN: Final = UNRESOLVED | {"too_large", "results_too_large"}
#: Outcomes that say nothing of the world.
_TELL_NOTHING: Final = frozenset({"unknown", "infrastructure_error"})


@frozen
class Difference:
    """The first call that went otherwise: its id, what the record says and what came now, and where they part."""

    call: int
    tool: str
    recorded: CallRecord
    found: CallRecord
    what: str

    def __str__(self) -> str:
        return f"replay diverged at call {self.call} {self.tool}: {self.what}"


@frozen
class Replay:
    """What replaying came to: ``compared`` calls were, up to the first difference; of ``unknown`` nothing is recorded.

    ``masked`` is how the machinery failed meanwhile; then nothing was found out.
    """

    compared: int
    unknown: int
    difference: Difference | None = None
    masked: str | None = None

    @property
    def same(self) -> bool:
        """Whether everything that the record knows came again."""
        return self.difference is None and self.masked is None


def replay(attempt: Attempt) -> Replay:
    """Run the calls of an attempt again, in the order in which they ran, and compare each with what was seen.

    Compared are kind, code and value of each outcome and, where the record holds them, digests of the state before the
    first call and after each. What the task's user did is done again in its place, and compared as well. A difference
    is not an error: read ``str(found.difference)``.
    """
    trace = attempt.whole_trace
    ran = [trace.records[at] for at in trace.ran]
    reached = [record for record in ran if record.outcome.code not in _NEVER_RAN and _is_known(record)]
    unknown = len([record for record in ran if not _is_known(record)])
    answers = [turn for turn in attempt.turns if not turn.calls]
    if not reached and not any(turn.user is not None and turn.user.said.calls for turn in answers):
        return Replay(0, unknown)
    execution = attempt.conditions.execution(attempt.task)
    again = _Again(execution)
    try:
        heard = 0
        for spoken, records in groupby(reached, _spoken_before(attempt)):
            if not all(map(again.answer, answers[heard:spoken])) or not again.call(list(records)):
                break
            heard = spoken
        else:
            all(map(again.answer, answers[heard:]))
    except InfrastructureFailure as error:
        return Replay(0, unknown, masked=str(error))
    finally:
        execution.close()
    return again.compared(trace.state, unknown)


class _Again:
    """What is run again: each call as it was recorded, and as it came now."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._pairs: list[tuple[CallRecord, CallRecord, str]] = []
        self._traces: list[Trace] = []

    def call(self, records: list[CallRecord]) -> bool:
        """Calls of the model; whether the machinery lets others follow."""
        calls = tuple(Call(at, record.tool, dict(record.arguments)) for at, record in enumerate(records))
        return self._keep(records, self._execution.run(Program(calls)), "")

    def answer(self, turn: Turn) -> bool:
        """A turn without calls, perhaps no program, after which the user speaks and acts; whether others may follow."""
        self._execution.run(Program(()))
        user = turn.user
        if user is None or not (user.said.calls or self._traces):
            return True
        acted = self._execution.act(user.said.calls)
        return self._keep(() if user.trace is None else user.trace.records, acted, "of the user: ")

    def _keep(self, records: Sequence[CallRecord], trace: Trace, whose: str) -> bool:
        self._traces.append(trace)
        self._pairs += [(recorded, now, whose) for recorded, now in zip(records, trace.records, strict=False)]
        return trace.infrastructure is None

    def compared(self, state: str, unknown: int) -> Replay:
        """What the comparison comes to, up to the first difference."""
        compared = 0
        state_again = self._traces[0].state
        for number, (recorded, now, whose) in enumerate(self._pairs):
            if now.outcome.kind == "infrastructure_error":
                return Replay(compared, unknown, masked=self._traces[-1].masked)
            what = None
            if not number and not whose and state and state_again and state != state_again:
                what = f"the world was in state {state[:12]} before it, and is in {state_again[:12]}"
            elif recorded.outcome.kind in _TELL_NOTHING:
                unknown += 1
            else:
                what = _difference(recorded.outcome, now.outcome)
            if what is None and recorded.state and recorded.state != now.state:
                what = f"it left the state {recorded.state[:12]}, and leaves {now.state[:12]}"
            if what is not None:
                found = evolve(now, call=recorded.call)
                return Replay(
                    compared, unknown, Difference(recorded.call, recorded.tool, recorded, found, f"{whose}{what}")
                )
            compared += recorded.outcome.kind not in _TELL_NOTHING
        return Replay(compared, unknown)


def _spoken_before(attempt: Attempt) -> Callable[[CallRecord], int]:
    """How many turns of the user came before a call: one follows each turn of the model without calls."""
    firsts: list[int] = []
    following = 0
    for part in attempt.parts:
        calls = part.calls if isinstance(part, Program) else ()
        if not calls:
            firsts.append(following)
        following += max((call.id for call in calls), default=-1) + 1
    return lambda record: bisect_right(firsts, record.call)


def _is_known(record: CallRecord) -> bool:
    """Whether the arguments are known that the tool was given."""
    return not Call(0, record.tool, record.arguments).located


def _difference(recorded: Outcome, found: Outcome) -> str | None:
    if (recorded.kind, recorded.code) != (found.kind, found.code):
        return f"it was {_named(recorded)}, and is {_named(found)}"
    if not values_equal(recorded.value, found.value):
        return f"it gave {shortened_numbers(recorded.value)!r:.80}, and gives {shortened_numbers(found.value)!r:.80}"
    if recorded.notices != found.notices:
        return f"it told {recorded.notices!r:.80}, and tells {found.notices!r:.80}"
    return None


def _named(outcome: Outcome) -> str:
    return f"{outcome.kind} {outcome.code}".rstrip() + (f" ({outcome.message[:120]})" if outcome.message else "")
