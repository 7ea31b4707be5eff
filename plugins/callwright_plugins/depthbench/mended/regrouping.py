"""Answers that are equally right: one listing of several places, or a listing of each.

"The cars at A and at B" may be asked for in one call or in two. The rows are the same, and the request says nothing of
tables; so in a lenient version either is right, wherever no later call takes the table.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import evolve

from callwright.language.program import Call, Program, plain
from callwright.walk.execution import execute
from callwright.walk.tasks import Task
from callwright_plugins.depthbench.world import V1

#: Tools that list what several places have -> the parameter that names the places.
LISTINGS: Final[Mapping[str, str]] = {"list_cars_at_dealerships": "dealerships", "showings_at": "cinemas"}


def regroupings(program: Program) -> Iterator[Program]:
    """The program with its listings taken apart into one for each place, or put together into as few as can be.

    Only where every result goes to the user, and only listings with literal names.
    """
    if len(program.calls) > 1 and program.returns != "all":
        return
    groups: dict[str, list[Call]] = {}
    used = {reference.call for call in program.calls for _, reference in call.located}
    for call in program.calls:
        names = call.arguments.get(LISTINGS.get(call.tool, ""))
        if isinstance(names, list) and call.id not in used and not call.located:
            groups.setdefault(json.dumps([call.tool, _rest(call)], sort_keys=True), []).append(call)
    if not groups:
        return
    grouped = {call.id for calls in groups.values() for call in calls}
    others = [call for call in program.calls if call.id not in grouped]
    for ways in itertools.product((False, True), repeat=len(groups)):
        made: list[Call] = []
        for together, calls in zip(ways, groups.values(), strict=True):
            parameter = LISTINGS[calls[0].tool]
            names = list(dict.fromkeys(name for call in calls for name in call.arguments[parameter]))
            for places in [names] if together else [[name] for name in names]:
                made.append(evolve(calls[0], arguments={**calls[0].arguments, parameter: places}))
        first = max((call.id for call in program.calls), default=0) + 1
        numbered = [evolve(call, id=first + number) for number, call in enumerate(made)]
        yield Program((*others, *numbered), "all" if len(others) + len(numbered) > 1 else "one")


def _rest(call: Call) -> dict[str, Any]:
    return {name: value for name, value in call.arguments.items() if name != LISTINGS[call.tool]}


def _made(program: Program) -> list[str]:
    return sorted(json.dumps([call.tool, plain(call.arguments)], sort_keys=True) for call in program.calls)


def equally_right(task: Task, scenario: str) -> tuple[tuple[Any, ...], ...]:
    """What the regroupings of a task's reference give in a world, but for the one that the reference is itself."""
    if task.program is None or not getattr(task.environment, "version", V1).lenient:
        return ()
    found: list[tuple[Any, ...]] = []
    own = _made(task.program)
    for program in regroupings(task.program):
        if _made(program) == own:
            continue
        trace = execute(program, task.environment, task.tools, scenario=scenario)
        values = tuple(json.loads(json.dumps(trace.returned, ensure_ascii=False)))
        if trace.executed and values not in found:
            found.append(values)
    return tuple(found)
