"""Handles: how a later turn passes on a result that it cannot write, in forms that have no references.

A table that a tool returned is too long to be copied, and a parameter that wants one takes nothing else. So where a
task offers such a tool, each result of an earlier turn is shown with a handle, ``result_3``, which a later call gives
in place of the value; ``result_3.kitchens[0]`` is a part of it. Numbers go on over the turns of an attempt, from 0. A
text that names no result of an earlier turn is a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from callwright.environments.protocol import Outcome
from callwright.language.parser import ParseFailure, Parser, TakesHandles
from callwright.language.program import EARLIER, Call, Program, Reference
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord

#: ``API_RESPONSE_`` reads the rest, so that a path is the same in both.
_HANDLE: Final = re.compile(r"result_([0-9]{1,9})((?:\.[^.\[\]]+|\[[0-9]{1,9}\])*)", re.DOTALL)
Part = Program | ParseFailure
#: Results of earlier turns that a program refers to, and the tools that gave them.
Needed = tuple[dict[int, Outcome], dict[int, ToolSpec]]

#: What a model is told of handles, after the instructions of its form.
TOLD: Final = (
    'Results come with a "handle", such as result_0. Where a parameter takes the result of an earlier call, give its '
    "handle as text in place of the value. result_0.field and result_0.field[0] are parts of it."
)


def shows_handles(task: Task, parser: Parser) -> bool:
    """Whether results of this task have handles: a tool that is offered takes them, and the form has no references."""
    return isinstance(parser, TakesHandles) and parser.takes_handles and any(map(_takes_results, task.offered.values()))


def _takes_results(spec: ToolSpec) -> bool:
    return spec.compiled.takes_results


def handed_on(value: Any, given: Any) -> Any:
    """An argument as a later turn writes it: ``value`` is what a program says, ``given`` what that came to.

    A reference to a table or an object is the handle of its result, numbered as its call; one to anything else is the
    value itself.
    """
    if isinstance(value, Reference):
        return str(Reference(EARLIER + value.call, value.path)) if isinstance(given, dict | list) else given
    if isinstance(value, dict):
        return {key: handed_on(inner, given[key]) for key, inner in value.items()}
    if isinstance(value, list):
        return [handed_on(inner, other) for inner, other in zip(value, given, strict=True)]
    return value


def room_of(part: Part) -> int:
    """How many numbers a turn takes: its ids go from 0 up to the largest."""
    calls = part.calls if isinstance(part, Program) else ()
    return max((call.id for call in calls), default=-1) + 1


def with_handles(part: Part, task: Task, parser: Parser, earlier: int) -> Part:
    """A turn in which texts that are handles of the ``earlier`` results, so many, have become references to them."""
    if not earlier or not isinstance(part, Program) or not part.calls or not shows_handles(task, parser):
        return part
    calls = tuple(_read(call, earlier) for call in part.calls)
    return part if all(new is old for new, old in zip(calls, part.calls, strict=True)) else evolve(part, calls=calls)


def all_with_handles(parts: Sequence[Part], task: Task, parser: Parser) -> tuple[Part, ...]:
    """The same for all turns of an attempt, in their order."""
    made, earlier = [], 0
    for part in parts:
        made.append(with_handles(part, task, parser, earlier))
        earlier += room_of(part)
    return tuple(made)


def _read(call: Call, earlier: int) -> Call:
    arguments = {key: _value(value, earlier) for key, value in call.arguments.items()}
    return call if arguments == dict(call.arguments) else Call(call.id, call.tool, arguments)


def _value(value: Any, earlier: int) -> Any:
    if isinstance(value, str):
        found = _HANDLE.fullmatch(value)
        if found is None or int(found[1]) >= earlier:
            return value
        path = Reference.parse(f"API_RESPONSE_0{found[2]}")
        assert path is not None
        return Reference(EARLIER + int(found[1]), path.path)
    if isinstance(value, dict):
        return {key: _value(inner, earlier) for key, inner in value.items()}
    return [_value(inner, earlier) for inner in value] if isinstance(value, list) else value


class Earlier:
    """Results of earlier turns, and the tools that gave them, as later turns refer to them."""

    __slots__ = ("count", "results", "specs")

    def __init__(self) -> None:
        self.count = 0
        self.results: dict[int, Outcome] = {}
        self.specs: dict[int, ToolSpec] = {}

    def add(self, program: Program, records: Iterable[CallRecord], tools: Mapping[str, ToolSpec]) -> None:
        """Results of a turn."""
        for record in records:
            number = EARLIER + self.count + record.call
            self.results[number] = record.outcome
            if record.tool in tools:
                self.specs[number] = tools[record.tool]
        self.count += room_of(program)

    def needed(self, program: Program) -> Needed | None:
        """The results and tools that a program refers to; ``None`` if it refers to none."""
        numbers = {one.call for call in program.calls for _, one in call.located if one.call >= EARLIER}
        if not numbers:
            return None
        return (
            {number: self.results[number] for number in numbers if number in self.results},
            {number: self.specs[number] for number in numbers if number in self.specs},
        )
