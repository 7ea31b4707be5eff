"""Traces: what the calls of a program, or of all turns of an attempt, came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from callwright.digests import digest_of
from callwright.environments.protocol import EXECUTED, By, Outcome
from callwright.errors import Abstention
from callwright.language.program import Returns


@frozen(slots=False)  # as below
class CallRecord:
    """A call that ran: its id, the arguments after references were resolved, the outcome and the state after it.

    In a record of an attempt that was made elsewhere, a reference stays in ``arguments`` where nobody knows its value.

    ``state`` is a digest of the session, empty where nobody took it. ``by`` is who called: the model, or its user by a
    tool of its own. What the user's calls cost is never the model's.
    """

    call: int
    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    outcome: Outcome
    state: str = field(default="", repr=False)
    by: By = field(default="agent", repr=False)


@frozen(slots=False)  # which attrs makes faster, and one is made for every rollout
class Trace:
    """A record for each call, in the order in which the calls were written, and what they hand to the user.

    ``state`` is the session's digest before the first call. ``order`` are positions of records in the order in which
    they ran; ``None`` if it is the order of writing. ``last`` is how many of the records are those of the last turn
    that called something; ``None`` if that is all of them. ``ended`` is the session's digest after what a user did who
    had the last word; empty where no user had it.
    """

    records: tuple[CallRecord, ...] = ()
    returns: Returns = "one"
    state: str = field(default="", repr=False)
    order: tuple[int, ...] | None = field(default=None, repr=False)
    last: int | None = field(default=None, repr=False)
    ended: str = field(default="", repr=False)

    @property
    def ran(self) -> Sequence[int]:
        """Positions of records in the order in which the calls ran."""
        return range(len(self.records)) if self.order is None else self.order

    @property
    def final_state(self) -> str:
        """The digest of the session after the last call that ran, or the user's turn that came later; that before all
        of them if none did.
        """
        if self.ended:
            return self.ended
        return self.records[self.ran[-1]].state if self.records else self.state

    @property
    def executed(self) -> bool:
        """Whether every call executed. True, vacuously, for no calls.

        Raises :class:`callwright.errors.Abstention` where that hangs on a call whose outcome is not known.
        """
        return _all_executed(self.records)

    @property
    def answer_executed(self) -> bool:
        """Whether the calls of the last turn that called something executed: earlier failures were put right.

        Raises :class:`callwright.errors.Abstention` as :attr:`executed` does.
        """
        return _all_executed(self._answering)

    @property
    def failures(self) -> tuple[CallRecord, ...]:
        """The calls that did not execute; one whose outcome is not known is not among them."""
        return tuple(
            record for record in self.records if record.outcome.kind != "unknown" and not record.outcome.executed
        )

    @property
    def infrastructure(self) -> CallRecord | None:
        """The first call at which the machinery failed, which masks the sample."""
        for record in self.records:  # a loop, which a generator makes three times as slow: every reward asks
            if record.outcome.kind == "infrastructure_error":
                return record
        return None

    @property
    def masked(self) -> str | None:
        """How the machinery failed, in words; ``None`` if it did not."""
        record = self.infrastructure
        return f"call {record.call} {record.tool}: {record.outcome.code}: {record.outcome.message}" if record else None

    @property
    def returned(self) -> tuple[Any, ...]:
        """The values that are handed to the user.

        Raises :class:`callwright.errors.Abstention` where one of them is not known.
        """
        values = []
        for record in self.handed:
            outcome = record.outcome
            if outcome.kind == "unknown":
                raise Abstention(_not_known(record))
            values.append(outcome.value)
        return tuple(values)

    @property
    def collected(self) -> tuple[Any, ...] | None:
        """The values of every call that executed, over all turns; ``None`` unless several turns called something.

        A call that failed returned nothing, and was put right by a later one if the answer is right. Raises
        :class:`callwright.errors.Abstention` where one of the values is not known.
        """
        if self.last is None or self.last == len(self.records):
            return None
        for record in self.records:
            if record.outcome.kind == "unknown":
                raise Abstention(_not_known(record))
        return tuple(record.outcome.value for record in self.records if record.outcome.executed)

    @property
    def handed(self) -> tuple[CallRecord, ...]:
        """The calls whose values are the answer: the last (``one``) or all (``all``) of the last turn that called."""
        return self._answering if self.returns == "all" else self.records[-1:]

    @property
    def _answering(self) -> tuple[CallRecord, ...]:
        return self.records if self.last is None else self.records[-self.last :]


def _all_executed(records: Sequence[CallRecord]) -> bool:
    for record in records:
        if record.outcome.kind not in EXECUTED:
            return _executed_as_far_as_known(records)
    return True


def _executed_as_far_as_known(records: Sequence[CallRecord]) -> bool:
    unknown = [record for record in records if record.outcome.kind == "unknown"]
    if unknown and all(record.outcome.kind in EXECUTED for record in records if record not in unknown):
        raise Abstention(_not_known(unknown[0]))
    return False


def _not_known(record: CallRecord) -> str:
    return f"what came of call {record.call} {record.tool} is not known: {record.outcome.message or 'no record of it'}"


# Observations -------------------------------------------------------------------------------------------------------

#: Hexadecimal digits that are kept of a digest.
_DIGITS: Final = 16


def observations(trace: Trace | None) -> list[dict[str, str | int]] | None:
    """What calls came to, in a form that is stored with a rollout and compared later.

    A row per call: its id, the kind and code of its outcome, digests of its value and of the state after it; of a call
    of the user that it is ``by`` the user.

    ``None`` without a trace, that is for a text that is not a program.
    """
    if trace is None:
        return None
    return [
        {
            "call": step.call,
            "kind": step.outcome.kind,
            "code": step.outcome.code,
            "value": _digest(step.outcome.value),
            "state": step.state[:_DIGITS],
            **({} if step.by == "agent" else {"by": step.by}),
        }
        for step in trace.records
    ]


def _digest(value: Any) -> str:
    try:
        return digest_of(value)[:_DIGITS]
    except (TypeError, ValueError, RecursionError) as error:  # a tool returned something that is no JSON
        return type(error).__name__
