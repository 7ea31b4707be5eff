"""Shortcuts: wrong programs that must not reach the right answer, or the task is no good.

A task whose answer does not change when a filter is skipped rewards skipping it. So a task is only made if each of
these gives something else: a filter left out, a reference to the hidden context replaced by any constant, a value
replaced by any other of its kind, a tool replaced by its twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright.language.program import Call, Program, Reference
from callwright_plugins.toolworld import world
from callwright_plugins.toolworld.tools import FILTERS, FUNCTIONS, TWINS, Context

#: Parameter -> the values that queries and contexts give it.
DOMAINS: Final[Mapping[str, tuple[Any, ...]]] = {
    "location": world.CITIES,
    "hour": world.HOURS,
    "currency": world.CURRENCIES,
    "cuisine": world.CUISINES,
    "rating": world.RATINGS,
    "price": world.PRICES,
    "make": world.MAKES,
    "colour": world.COLOURS,
    "year": world.YEARS,
    "item": world.ITEMS,
    "amount": world.AMOUNTS,
}
#: Tool that reads the hidden context -> the field that it reads, and the parameter that takes it.
_READS: Final[Mapping[str, tuple[str, str]]] = {
    "GetLocation": ("location", "location"),
    "GetTime": ("hour", "hour"),
    "GetCurrency": ("currency", "currency"),
}


def shortcuts(program: Program, context: Context) -> Iterator[tuple[str, Program]]:
    """Every shortcut of a program with a few words on what was done. Constants are those that the context is not."""
    yield from _skipped_filters(program)
    yield from _constants(program, context)
    yield from _other_values(program)
    yield from _twins(program)


def _skipped_filters(program: Program) -> Iterator[tuple[str, Program]]:
    for call in program.calls:
        if call.tool in FILTERS:
            table = call.arguments[FILTERS[call.tool]]
            calls = tuple(_redirect(other, call.id, table) for other in program.calls if other.id != call.id)
            yield f"skip {call.tool}", Program(calls, program.returns)


def _constants(program: Program, context: Context) -> Iterator[tuple[str, Program]]:
    for position, call in enumerate(program.calls):
        if call.tool in _READS and any(position == earlier for earlier, _ in program.edges):
            field, parameter = _READS[call.tool]
            for constant in DOMAINS[parameter]:
                if constant != getattr(context, field):
                    calls = tuple(_redirect(other, call.id, constant) for other in program.calls)
                    yield f"{call.tool} is always {constant}", Program(calls, program.returns)


def _other_values(program: Program) -> Iterator[tuple[str, Program]]:
    for position, call in enumerate(program.calls):
        for name, value in call.arguments.items():
            if isinstance(value, Reference):
                continue
            for other in DOMAINS[name]:
                if other != value:
                    changed = {**call.arguments, name: other}
                    yield f"{other} for {value}", _replace(program, position, call.tool, changed)


def _twins(program: Program) -> Iterator[tuple[str, Program]]:
    for position, call in enumerate(program.calls):
        for twin in TWINS.get(call.tool, ()):
            names = FUNCTIONS[twin].spec.parameters["properties"]
            arguments = dict(zip(names, call.arguments.values(), strict=True))
            yield f"{twin} for {call.tool}", _replace(program, position, twin, arguments)


def _replace(program: Program, position: int, tool: str, arguments: Mapping[str, Any]) -> Program:
    changed = Call(program.calls[position].id, tool, arguments)
    return Program((*program.calls[:position], changed, *program.calls[position + 1 :]), program.returns)


def _redirect(call: Call, from_id: int, value: Any) -> Call:
    """The call with references to one result replaced by another value."""
    if all(reference.call != from_id for _, reference in call.located):
        return call
    return Call(call.id, call.tool, {k: value if _is(v, from_id) else v for k, v in call.arguments.items()})


def _is(value: Any, call: int) -> bool:
    return isinstance(value, Reference) and value.call == call
