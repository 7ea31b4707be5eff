"""Making one task of a composition: a hidden context, the answer, the offered tools, a reference program."""

from __future__ import annotations

import random
from typing import Any, Final

from callwright.environments.calling import is_nothing
from callwright.language.program import Call, Program, Reference
from callwright.walk.answers import answers_match
from callwright.walk.tasks import Answer, Task
from callwright_plugins.toolworld.environment import ToolWorld, random_context, scenario_of
from callwright_plugins.toolworld.family import Family, Values
from callwright_plugins.toolworld.results import Results
from callwright_plugins.toolworld.shortcuts import shortcuts
from callwright_plugins.toolworld.tools import FILTERS, FUNCTIONS, TWINS, Context
from callwright_plugins.toolworld.world import pick, shuffled

#: Contexts that are tried for a composition before it is given up.
_CONTEXTS: Final = 24
_OFFERED: Final = 5
_DISTRACTORS: Final = 2


def make_task(
    task_id: str, split: str, family: Family, values: Values, environment: ToolWorld, rng: random.Random
) -> Task | None:
    """A task of a composition; ``None`` if every context that was tried lets a shortcut through."""
    filled, query = family.ask(values, rng)
    program = reordered(family.build(filled), rng)
    for _ in range(_CONTEXTS):
        context = random_context(rng)
        answer = sound_answer(program, context)
        if answer is not None:
            break
    else:
        return None
    shape = program.structure
    if family.conjunctive:
        shape = "conjunctive" if shape == "linear" else "mixed"
    return Task(
        id=task_id,
        query=query,
        tools={name: environment.tools[name] for name in _offer(family, program, rng)},
        answer=answer,
        environment=environment,
        scenario=scenario_of(context),
        split=split,
        depth=program.depth,
        chain=program.chain,
        structure=shape,
        returns=program.returns,
        program=program,
        facts={
            "family": family.name,
            "domain": family.domain,
            "kind": family.kind,
            "composition": family.key(values),
            "values": {slot: list(held) if isinstance(held, tuple) else held for slot, held in filled.items()},
        },
    )


def sound_answer(program: Program, context: Context) -> Answer | None:
    """What a program answers; ``None`` if one of its results is empty, or a shortcut answers the same."""
    results = Results(program, context)
    values = results.values
    if values is None or any(map(is_nothing, values)):
        return None
    answer = Answer(values if program.returns == "all" else values[-1:])
    for _, shortcut in shortcuts(program, context):
        other = results.handed(shortcut)
        if other is not None and answers_match(answer, other):
            return None
    return answer


def reordered(program: Program, rng: random.Random) -> Program:
    """The program in a random valid order: filters of a chain permuted, independent calls in any order."""
    calls = list(program.calls)
    places = [place for place, call in enumerate(calls) if call.tool in FILTERS]
    conditions = [_condition(calls[place]) for place in places]
    for place, (tool, name, value) in zip(places, shuffled(rng, conditions), strict=True):
        table = FILTERS[tool]
        calls[place] = Call(calls[place].id, tool, {table: calls[place].arguments[table], name: value})
    number: dict[int, int] = {}
    out: list[Call] = []
    while len(out) < len(calls):
        ready = [
            call
            for call in calls
            if call.id not in number and all(reference.call in number for _, reference in call.located)
        ]
        call = pick(rng, ready)
        arguments = {
            name: Reference(number[value.call]) if isinstance(value, Reference) else value
            for name, value in call.arguments.items()
        }
        number[call.id] = len(out)
        out.append(Call(len(out), call.tool, arguments))
    return Program(tuple(out), program.returns)


def _condition(call: Call) -> tuple[str, str, Any]:
    """A filter without its table. All filters of one chain call their table the same."""
    ((name, value),) = ((name, value) for name, value in call.arguments.items() if name != FILTERS[call.tool])
    return call.tool, name, value


def _offer(family: Family, program: Program, rng: random.Random) -> list[str]:
    """What is needed and at least two others, twins first, in a random order."""
    needed = list(dict.fromkeys([*family.needed, *(call.tool for call in program.calls)]))
    barred = {*needed, *family.withheld}
    twins = {twin for tool in (*needed, *family.withheld) for twin in TWINS.get(tool, ()) if twin not in barred}
    others = [name for name in FUNCTIONS if name not in barred and name not in twins]
    distractors = [*shuffled(rng, sorted(twins))[:_DISTRACTORS], *shuffled(rng, others)]
    return shuffled(rng, [*needed, *distractors[: max(_OFFERED - len(needed), _DISTRACTORS)]])
