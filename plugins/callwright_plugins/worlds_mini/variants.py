"""Variants of a reference: those that must miss the goal, and those that must reach it.

An edit names a call by turn and place, from 0: ``at = "2.1"`` with other arguments (``with``), without some
(``without``) or of another ``tool``; ``drop = "2.1"``; ``add`` a call after the calls of a turn (``after``). Dropped
calls keep their place, so that references of others mean what they meant. An order lists the calls of a turn anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve

from callwright.language.program import Call, Program, Reference, revive
from callwright_plugins.worlds_mini.script import Script, Turn


def programs(script: Script) -> list[Program]:
    """The reference, a program for each turn; one without calls has what the agent says as its text."""
    return [_program(turn) for turn in script.gold]


def mutants(script: Script) -> Iterator[tuple[str, list[Program]]]:
    """Each mutant by its name: a destructive call too many, a call too few, another entity, another value."""
    for edit in script.mutants:
        yield edit["name"], _edited(programs(script), edit)


def reordered(script: Script) -> Iterator[list[Program]]:
    """The reference with the calls of a turn in another order that is as good."""
    for order in script.orders:
        made = programs(script)
        made[order["turn"]] = _in_order(made[order["turn"]], order["calls"])
        yield made


def joined(turns: Sequence[Program]) -> Program:
    """All calls of several turns as one program."""
    calls: list[Call] = []
    for turn in turns:
        first = len(calls)
        places = {call.id: first + place for place, call in enumerate(turn.calls)}
        calls += [Call(places[call.id], call.tool, _moved(call.arguments, places)) for call in turn.calls]
    return Program(tuple(calls), thought="This is what was asked for.")


def _program(turn: Turn) -> Program:
    if isinstance(turn, str):
        return Program((), thought="The user is to hear this.", text=turn)
    calls = tuple(Call(place, tool, revive(dict(arguments))) for place, (tool, arguments) in enumerate(turn))
    return Program(calls, thought="These calls are next.")


def _edited(turns: list[Program], edit: Mapping[str, Any]) -> list[Program]:
    if "drop" in edit:
        turn, place = map(int, edit["drop"].split("."))
        turns[turn] = evolve(turns[turn], calls=tuple(call for call in turns[turn].calls if call.id != place))
    if "at" in edit:
        turn, place = map(int, edit["at"].split("."))
        calls = list(turns[turn].calls)
        calls[place] = _changed(calls[place], edit)
        turns[turn] = evolve(turns[turn], calls=tuple(calls))
    if "add" in edit:
        turn = int(edit["after"])
        tool, arguments = edit["add"]
        more = Call(len(turns[turn].calls), tool, revive(dict(arguments)))
        turns[turn] = evolve(turns[turn], calls=(*turns[turn].calls, more))
    return turns


def _changed(call: Call, edit: Mapping[str, Any]) -> Call:
    given = revive(dict(edit.get("with", {})))
    if "tool" in edit:
        return evolve(call, tool=edit["tool"], arguments=given)
    kept = {name: value for name, value in call.arguments.items() if name not in edit.get("without", ())}
    return evolve(call, arguments={**kept, **given})


def _in_order(turn: Program, order: Sequence[int]) -> Program:
    places = {call: place for place, call in enumerate(order)}
    by_id = {call.id: call for call in turn.calls}
    calls = (Call(places[at], by_id[at].tool, _moved(by_id[at].arguments, places)) for at in order)
    return evolve(turn, calls=tuple(calls))


def _moved(value: Any, places: Mapping[int, int]) -> Any:
    """The same value, whose references name calls by their new numbers."""
    if isinstance(value, Reference):
        return evolve(value, call=places[value.call])
    if isinstance(value, Mapping):
        return {key: _moved(inner, places) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_moved(inner, places) for inner in value]
    return value
