"""A program over the turns of an episode, in a form without references: each call when what it needs has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callwright.language.program import Call, Program, Reference
from callwright.tools.spec import ToolSpec
from callwright.walk.calls.handles import handed_on
from callwright.walk.calls.references import Unresolved, resolved
from callwright.walk.calls.rules import STRICT
from callwright.walk.turn import Turn


def next_wave(
    program: Program, gold: Program, turns: Sequence[Turn], tools: Mapping[str, ToolSpec], *, handles: bool
) -> Program | None:
    """The calls of ``program`` that are due after some turns, with values in place of references to earlier results.

    A call is due when those that it needs in ``gold`` were made; ``program`` is that, or what became of its calls.

    With ``handles`` tables and objects are named by the handles of their results.

    ``None`` once every call was made, or where a result that is needed never came. What earlier calls returned is read
    off the turns.
    """
    written = {call.id: call for call in program.calls}
    waves = [[written[call.id] for call in wave] for wave in gold.waves]
    if len(turns) >= len(waves):
        return None
    numbers = {call.id: number for number, call in enumerate(call for wave in waves for call in wave)}
    records = [record for turn in turns if turn.trace is not None for record in turn.trace.records]
    outcomes = {number: record.outcome for number, record in enumerate(records)}
    specs = {number: tools[record.tool] for number, record in enumerate(records) if record.tool in tools}
    calls = []
    try:
        for place, call in enumerate(waves[len(turns)]):
            meant = {key: _renumbered(value, numbers) for key, value in call.arguments.items()}
            given = {key: resolved(value, outcomes, specs, STRICT) for key, value in meant.items()}
            named = {key: handed_on(value, given[key]) for key, value in meant.items()} if handles else given
            calls.append(Call(place, call.tool, named))
    except Unresolved:
        return None
    return Program(tuple(calls), "all" if len(calls) > 1 else "one", program.thought)


def _renumbered(value: Any, numbers: Mapping[int, int]) -> Any:
    if isinstance(value, Reference):
        return Reference(numbers.get(value.call, value.call), value.path)
    if isinstance(value, dict):
        return {key: _renumbered(inner, numbers) for key, inner in value.items()}
    return [_renumbered(inner, numbers) for inner in value] if isinstance(value, list) else value
