"""Mutants of a reference: another entity, a call less, another value, one destructive call too many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, Final, Literal

from attrs import evolve, frozen

from callwright.language.program import Call, Program, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.dialogue.shown import shape
from callwright_plugins.synthesis.exploration.free import options_of
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.running import further

MutantKind = Literal["entity", "tool", "dropped", "value", "too many"]
#: Calls too many that are tried, one after the other, until one changes something.
_EXTRA: Final = 12
_OTHERS: Final = 3


@frozen
class Mutant:
    """A variant of the reference: its kind, what was changed, and its turns. ``last``: it is the last call of all that
    was changed.
    """

    kind: MutantKind
    what: str
    turns: tuple[Program, ...]
    last: bool = False


def mutants(case: Case) -> Iterator[Mutant]:
    """Variants of the reference, the kinds in turn, those of writes and of the last calls first. Always the same ones
    for the same task.
    """
    random = Random(f"mutants/{case.task.id}")
    places = [(at, call) for at, turn in enumerate(case.turns) for call in turn.calls]
    tools = case.task.tools
    places.sort(key=lambda one: (_reads(tools.get(one[1].tool)), -one[0], -one[1].id))
    kinds = [
        _dropped(case, places),
        _changed(case, places, "entity", random),
        _changed(case, places, "value", random),
        _too_many(case),
        _other_tools(case, places),
    ]
    while kinds:
        for one in list(kinds):
            found = next(one, None)
            if found is None:
                kinds.remove(one)
            else:
                yield found


def _reads(spec: ToolSpec | None) -> bool:
    return spec is not None and spec.read_only


def _dropped(case: Case, places: Sequence[tuple[int, Call]]) -> Iterator[Mutant]:
    """Without a call, wherever it is made: of two that are the same one would do."""
    for _, call in places:
        turns = [evolve(turn, calls=tuple(one for one in turn.calls if not _same(one, call))) for turn in case.turns]
        yield Mutant("dropped", f"without {call.tool}", tuple(turns))


def _same(one: Call, other: Call) -> bool:
    return one.tool == other.tool and repr(one.arguments) == repr(other.arguments)


def _changed(
    case: Case, places: Sequence[tuple[int, Call]], kind: Literal["entity", "value"], random: Random
) -> Iterator[Mutant]:
    """With another value, in every call of the tool that has the value there."""
    for at, call in places:
        spec = case.task.tools.get(call.tool)
        for name, value in call.arguments.items():
            others = _entities(case, name, value) if kind == "entity" else _values(spec, name, value, random)
            for other in islice(others, _OTHERS if kind == "entity" else 1):
                if isinstance(value, Reference):
                    turns = [_with(turn, call, name, other) if turn is case.turns[at] else turn for turn in case.turns]
                else:
                    turns = [_with(turn, call, name, other, everywhere=True) for turn in case.turns]
                last = at == _last_turn(case) and call.id == case.turns[at].calls[-1].id
                yield Mutant(kind, f"{call.tool}.{name} is {other!s:.60}", tuple(turns), last)


def _with(turn: Program, call: Call, name: str, value: Any, *, everywhere: bool = False) -> Program:
    held = repr(call.arguments[name])
    return evolve(
        turn,
        calls=tuple(
            evolve(one, arguments={**one.arguments, name: value})
            if one is call
            or (everywhere and one.tool == call.tool and name in one.arguments and repr(one.arguments[name]) == held)
            else one
            for one in turn.calls
        ),
    )


def _other_tools(case: Case, places: Sequence[tuple[int, Call]]) -> Iterator[Mutant]:
    """Another tool that only looks, at what the world shows, in the place of a call."""
    looks = [
        (name, arguments)
        for name, spec in case.task.tools.items()
        if spec.read_only and not spec.hidden and name not in case.task.appear
        for arguments in [_filled(case, spec, 0)]
        if arguments is not None
    ]
    looks.sort(key=lambda one: len(one[1]))
    for at, call in places:
        for name, arguments in [one for one in looks if one[0] != call.tool][: _OTHERS + 1]:
            other = Call(call.id, name, arguments)
            calls = tuple(other if one.id == call.id else one for one in case.turns[at].calls)
            turns = [evolve(turn, calls=calls) if place == at else turn for place, turn in enumerate(case.turns)]
            yield Mutant("tool", f"{name} in the place of {call.tool}", tuple(turns))


def _last_turn(case: Case) -> int:
    return max((place for place, turn in enumerate(case.turns) if turn.calls), default=0)


def _entities(case: Case, name: str, value: Any) -> Iterator[Any]:
    """Other things of the same kind: another item of the list that is referred to, or another id of this shape."""
    if isinstance(value, Reference):
        for place, part in enumerate(value.path):
            if isinstance(part, int):
                yield Reference(value.call, (*value.path[:place], part + 1, *value.path[place + 1 :]))
                return
        return
    if not is_entity(name, value):
        return
    seen = set()
    for other in case.world.like(name, value):
        if other not in seen:
            seen.add(other)
            yield other
    if not seen:
        yield _next(value)


def is_entity(name: str, value: Any) -> bool:
    """Whether an argument names a thing of the world: by its name, or as it is shaped like an id."""
    if not isinstance(value, str) or not value or len(value) > 60 or " " in value:
        return False
    if name == "id" or name.endswith(("_id", "_key", "_number", "email", "username")):
        return True
    made = shape(value)
    return made[:1].isalpha() and made[:1].isupper() and made.endswith("999")


def _next(value: str) -> str:
    """An id of the same shape: its last digit is another one, or it is longer."""
    for place in range(len(value) - 1, -1, -1):
        if value[place].isdigit():
            return f"{value[:place]}{(int(value[place]) + 1) % 10}{value[place + 1 :]}"
    return f"{value}x"


def _values(spec: ToolSpec | None, name: str, value: Any, random: Random) -> Iterator[Any]:
    schema = _properties(spec).get(name, {})
    options = options_of(schema) if isinstance(schema, Mapping) else None
    if options:
        yield from random.sample([one for one in options if one != value and one is not None] or [value], 1)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
    elif isinstance(value, str) and not is_entity(name, value):
        yield _next(value) if any(one.isdigit() for one in value) else f"{value} again"
    elif isinstance(value, list | tuple) and value:
        yield list(value[:-1])


def _properties(spec: ToolSpec | None) -> Mapping[str, Any]:
    found = spec.parameters.get("properties") if spec is not None and isinstance(spec.parameters, Mapping) else None
    return found if isinstance(found, Mapping) else {}


# One call too many ----------------------------------------------------------------------------------------------------


def _too_many(case: Case) -> Iterator[Mutant]:
    found = superfluous(case)
    if found is not None:
        yield found


def superfluous(case: Case) -> Mutant | None:
    """The reference and one more call, that destroys or at least changes something; ``None`` where none was found.

    Where the task has nothing but the wish to call nothing, it is any call.
    """
    turns = case.turns if any(turn.calls for turn in case.turns) else (Program(),)
    at = _last_turn(case)
    calls = turns[at].calls
    first = max((call.id for call in calls), default=-1) + 1
    extra = (Call(first + place, *one) for place, one in enumerate(islice(_extra(case), _EXTRA)))
    for call, before, record in further(case.task, turns[: at + 1], extra, case.environment):
        if record.outcome.executed and record.state != before:
            made = evolve(turns[at], calls=(*calls, call))
            mutant = Mutant("too many", f"{call.tool} once too often", (*turns[:at], made, *turns[at + 1 :]))
            if not case.run(mutant.turns).leaves_as(case.gold):
                return mutant
    return None


def _extra(case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    tools = case.task.tools
    writes = [spec for spec in tools.values() if not spec.hidden and not spec.read_only]
    writes.sort(key=lambda spec: not spec.destructive)
    for spec in writes:
        for which in range(2):
            arguments = _filled(case, spec, which)
            if arguments is not None:
                yield spec.name, arguments
    for turn, records in zip(case.turns, case.gold.turns, strict=False):
        for call, record in zip(turn.calls, records, strict=False):
            if not _reads(tools.get(call.tool)):
                yield call.tool, dict(record.arguments)


def _filled(case: Case, spec: ToolSpec, which: int) -> dict[str, Any] | None:
    """Arguments for a tool of what the world shows; ``None`` where it shows none for a required one."""
    found: dict[str, Any] = {}
    required = spec.parameters.get("required") if isinstance(spec.parameters, Mapping) else ()
    for name in required or ():
        schema = _properties(spec).get(name, {})
        options = options_of(schema) if isinstance(schema, Mapping) else None
        values = list(options or _known(case, name))
        if not values and isinstance(schema, Mapping):
            values = _plain(schema)
        if not values:
            return None
        found[name] = values[which % len(values)]
    return found


def _known(case: Case, name: str) -> list[Any]:
    """What the calls of the reference took by this name, and what the world shows."""
    used = [
        record.arguments[name]
        for record in case.gold.records
        if name in record.arguments and record.outcome.executed and record.arguments[name] is not None
    ]
    return [*dict.fromkeys(map(_key, used)), *case.world.members.get(name, ())]


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else repr(value)


def _plain(schema: Mapping[str, Any]) -> list[Any]:
    kind = schema.get("type")
    by_type: dict[str, list[Any]] = {
        "integer": [schema.get("minimum", 1)],
        "number": [schema.get("minimum", 1)],
        "boolean": [True, False],
        "string": ["one more"],
    }
    return by_type.get(str(kind), [])
