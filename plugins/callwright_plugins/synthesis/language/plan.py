"""Plans: what a query asks for, before there are words for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

from attrs import frozen

from callwright.errors import DataError
from callwright.language.program import PREFIX, Call, Program, Reference, join_path, plain, revive

Relation = Literal["is", "is not", "is at least", "is at most"]
RELATIONS: Final[tuple[Relation, ...]] = get_args(Relation)


@frozen
class Condition:
    """A call is made only if an earlier result is as stated: ``reference`` ``relation`` ``value`` (JSON)."""

    call: int
    reference: Reference
    relation: Relation
    value: Any


@frozen
class Plan:
    """One to many calls in order, with literal arguments or references to earlier calls, and conditions on them.

    The id of a call is its place. Raises :class:`callwright.errors.DataError` for calls that are numbered otherwise,
    references that no earlier call satisfies, two conditions of one call, and literal texts that begin as a reference
    does: a program could not tell the two apart.
    """

    calls: tuple[Call, ...]
    conditions: tuple[Condition, ...] = ()

    def __attrs_post_init__(self) -> None:
        for place, call in enumerate(self.calls):
            if call.id != place:
                raise DataError(f"the calls of a plan are numbered from 0: call {place} has the id {call.id}")
            for path, reference in call.located:
                _check_earlier(reference, place, f"{call.tool}.{join_path(path)}")
            _check_texts(call.arguments, call.tool)
        seen = set()
        for condition in self.conditions:
            if not 0 <= condition.call < len(self.calls) or condition.call in seen:
                raise DataError(f"a call has one condition at most, and it is there: {condition.call} has not")
            seen.add(condition.call)
            if condition.relation not in RELATIONS:
                raise DataError(f"a condition is one of {', '.join(RELATIONS)}, not {condition.relation!r:.80}")
            _check_earlier(condition.reference, condition.call, f"the condition of call {condition.call}")
            _check_texts(condition.value, f"the condition of call {condition.call}")

    @classmethod
    def of(cls, calls: Program | Iterable[Call], conditions: Iterable[Condition] = ()) -> Plan:
        """The plan of a program or of calls with any ids: they are numbered anew, and so are references to them."""
        given = tuple(calls.calls if isinstance(calls, Program) else calls)
        places = {call.id: place for place, call in enumerate(given)}
        made = [Call(place, one.tool, _renumbered(dict(one.arguments), places)) for place, one in enumerate(given)]
        return cls(tuple(made), tuple(conditions))

    @property
    def program(self) -> Program:
        """The calls as a program."""
        return Program(self.calls)

    @property
    def key(self) -> str:
        """A text that two plans share only if they are the same; ``3``, ``3.0`` and ``true`` are three values."""
        return json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON: what :meth:`from_json` reads."""
        made: dict[str, Any] = {"calls": [{"tool": one.tool, "arguments": plain(one.arguments)} for one in self.calls]}
        if self.conditions:
            made["conditions"] = [
                {"call": one.call, "reference": str(one.reference), "relation": one.relation, "value": plain(one.value)}
                for one in sorted(self.conditions, key=lambda one: one.call)
            ]
        return made

    @classmethod
    def from_json(cls, stated: Any) -> Plan:
        """The plan that a row holds. Raises :class:`callwright.errors.DataError` for anything else."""
        try:
            calls = [Call(i, str(one["tool"]), revive(dict(one["arguments"]))) for i, one in enumerate(stated["calls"])]
            conditions = [
                Condition(int(one["call"]), revive(one["reference"]), one["relation"], one["value"])
                for one in stated.get("conditions", ())
            ]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"a plan is an object with calls of 'tool' and 'arguments', not {stated!r:.120}") from error
        return cls(tuple(calls), tuple(conditions))

    def without(self, withheld: Iterable[tuple[int, str]]) -> Plan:
        """The plan without some arguments: pairs of a call and the name of its argument."""
        left_out = set(withheld)
        calls = [
            Call(
                one.id, one.tool, {key: value for key, value in one.arguments.items() if (one.id, key) not in left_out}
            )
            for one in self.calls
        ]
        return Plan(tuple(calls), self.conditions)


def _check_earlier(reference: Any, place: int, where: str) -> None:
    if not isinstance(reference, Reference) or not 0 <= reference.call < place:
        raise DataError(f"{where} refers to {str(reference)[:80]!r}, which is no earlier call of the plan")


def _check_texts(value: Any, where: str) -> None:
    if isinstance(value, str) and value.startswith(PREFIX):
        raise DataError(f"{where}: a literal text that begins with {PREFIX} would be read as a reference")
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for one in inner:
        _check_texts(one, where)


def _renumbered(value: Any, places: Mapping[int, int]) -> Any:
    if isinstance(value, Reference):
        return Reference(places.get(value.call, -1), value.path)
    if isinstance(value, Mapping):
        return {key: _renumbered(inner, places) for key, inner in value.items()}
    return [_renumbered(inner, places) for inner in value] if isinstance(value, list | tuple) else value
