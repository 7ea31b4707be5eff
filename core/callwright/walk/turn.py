"""Turns: one completion, what the parser made of it, and what its calls came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, get_args

from attrs import evolve, field, frozen

from callwright.environments.protocol import Outcome, OutcomeKind
from callwright.errors import UsageError
from callwright.language.parser import ParseFailure
from callwright.language.program import EARLIER, NO_CALL, Call, Program, Reference
from callwright.language.speech import spoken
from callwright.tools.spec import ToolSpec
from callwright.walk.calls.references import resolved_arguments
from callwright.walk.completion import Completion
from callwright.walk.trace import CallRecord, Trace
from callwright.walk.users.said import UserTurn

_KINDS: Final = get_args(OutcomeKind)
_UNKNOWN = Outcome("unknown", None, "not_recorded", "the record does not say what came of this call")


@frozen
class Turn:
    """One completion and what came of it. ``trace`` is ``None`` if the text is not a program.

    ``user`` is what the task's user said and did after it; ``None`` where no user was asked.
    """

    completion: Completion
    parsed: Program | ParseFailure
    trace: Trace | None = field(default=None, repr=False)
    user: UserTurn | None = field(default=None, repr=False)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of this turn, numbered as they were written."""
        return self.parsed.calls if isinstance(self.parsed, Program) else ()


def last_words(completion: Completion, parsed: Program | ParseFailure) -> str:
    """What an agent said in the end: its words, without its thought, if its last completion calls nothing; else
    nothing.
    """
    read = parsed if isinstance(parsed, Program) else None
    return "" if read is not None and read.calls else spoken(read, completion)


def told_turn(
    parsed: Program | ParseFailure,
    outcomes: Iterable[Outcome | None] = (),
    *,
    completion: Completion | str = "",
    arguments: Sequence[Mapping[str, Any]] = (),
    order: Iterable[int] | None = None,
    before: str = "",
    states: Iterable[str] = (),
) -> Turn:
    """A turn that happened elsewhere: the calls that were made and what each of them came to. Nothing is executed.

    ``outcomes`` belong to the calls as they are written; ``None``, and those that are missing at the end, are calls of
    which the record does not know what came (kind ``unknown``). ``order`` are positions of calls in the order in which
    they ran, if it was another one. ``before`` is the digest of the session before the first call, ``states`` those
    after each call as it is written; leave them out where nobody took them. ``arguments`` are those that the tools
    were given; without them references stand for what the record says of the calls that they name.

    Raises :class:`callwright.UsageError` for more outcomes, states or arguments than calls, for an outcome that is none
    or is of another kind than there are, or an order that does not name each call once.
    """
    completion = Completion(completion) if isinstance(completion, str) else completion
    if isinstance(parsed, ParseFailure):
        return Turn(completion, parsed)
    calls = parsed.calls
    outcomes, states = list(outcomes), list(states)
    for what, given in (("outcomes", outcomes), ("states", states), ("arguments", arguments)):
        if len(given) > len(calls):
            raise UsageError(f"{len(given)} {what} were given for a turn of {len(calls)} calls")
    for at, one in enumerate(outcomes):
        if one is not None and not (isinstance(one, Outcome) and one.kind in _KINDS):  # which would count as a failure
            raise UsageError(
                f"outcome {at} must be a callwright.Outcome of the kind {', '.join(_KINDS)}, or None where it is not "
                f"known, not {one!r:.120}"
            )
    ran = None if order is None else tuple(order)
    if ran is not None and sorted(ran) != list(range(len(calls))):
        raise UsageError(f"'order' must name each of the {len(calls)} calls once, by its position from 0, not {ran!r}")
    records = tuple(
        CallRecord(
            call.id,
            call.tool,
            arguments[at] if at < len(arguments) else call.arguments,
            (outcomes[at] if at < len(outcomes) else None) or _UNKNOWN,
            states[at] if at < len(states) else "",
        )
        for at, call in enumerate(calls)
    )
    if ran == tuple(range(len(calls))):
        ran = None
    return Turn(completion, parsed, Trace(records, parsed.returns, before, order=ran))


def with_references_resolved(turn: Turn, tools: Mapping[str, ToolSpec]) -> Turn:
    """A told turn in which arguments hold no reference, but where the record does not know what it stood for."""
    trace = turn.trace
    if trace is None or not any(call.located for call in turn.calls):
        return turn
    outcomes = {record.call: record.outcome for record in trace.records}
    specs = {record.call: tools[record.tool] for record in trace.records if record.tool in tools}
    records = []
    for call, record in zip(turn.calls, trace.records, strict=True):
        found = resolved_arguments(call, outcomes, specs) if record.arguments is call.arguments else record.arguments
        records.append(record if found is None else evolve(record, arguments=found))
    return evolve(turn, trace=evolve(trace, records=tuple(records)))


def by_user_turn(turns: Iterable[Turn]) -> tuple[tuple[Turn, ...], ...]:
    """Turns by the message of the user that they work on, the query first: one without calls is the last of its own."""
    grouped: list[tuple[Turn, ...]] = []
    begun: list[Turn] = []
    for turn in turns:
        begun.append(turn)
        if not turn.calls:
            grouped.append(tuple(begun))
            begun = []
    return (*grouped, tuple(begun)) if begun else tuple(grouped)


# Several turns read as one --------------------------------------------------------------------------------------------


def joined_program(programs: Sequence[Program]) -> Program:
    """The calls of every program, numbered on so that ids stay distinct; it returns what the last with calls does."""
    if len(programs) == 1:
        return programs[0]
    calls = [
        _renumbered(call, offset)
        for program, offset in zip(programs, _offsets(programs), strict=True)
        for call in program.calls
    ]
    last = next((program for program in reversed(programs) if program.calls), Program())
    thought = "\n".join(program.thought for program in programs if program.thought)
    return Program(tuple(calls), last.returns, thought)


def joined_trace(programs: Sequence[Program], traces: Sequence[Trace]) -> Trace:
    """The traces of these programs as that of the joined one. What it returns is what the last with calls does."""
    if len(traces) == 1:
        return traces[0]
    records: list[CallRecord] = []
    order: list[int] = []
    for trace, offset in zip(traces, _offsets(programs), strict=False):
        order += [len(records) + at for at in trace.ran]
        records += [evolve(record, call=record.call + offset) for record in trace.records]
    calling = [trace for trace in traces if trace.records]
    if not calling:
        return Trace(state=next((trace.state for trace in traces if trace.state), ""))
    ran = None if order == list(range(len(records))) else tuple(order)
    return Trace(tuple(records), calling[-1].returns, calling[0].state, order=ran, last=len(calling[-1].records))


def _offsets(programs: Iterable[Program]) -> list[int]:
    offsets, following = [], 0
    for program in programs:
        offsets.append(following)
        following += max((call.id for call in program.calls), default=-1) + 1
    return offsets


def _renumbered(call: Call, offset: int) -> Call:
    if not offset:
        return call
    arguments = (
        {key: _moved(value, offset) for key, value in call.arguments.items()} if call.located else call.arguments
    )
    return Call(call.id + offset, call.tool, arguments)


def _moved(value: Any, offset: int) -> Any:
    if isinstance(value, Reference):
        if value.call >= EARLIER:  # which is numbered over all turns already
            return Reference(value.call - EARLIER, value.path)
        return value if value.call == NO_CALL else Reference(value.call + offset, value.path)
    if isinstance(value, dict):
        return {key: _moved(inner, offset) for key, inner in value.items()}
    if isinstance(value, list):
        return [_moved(inner, offset) for inner in value]
    return value
