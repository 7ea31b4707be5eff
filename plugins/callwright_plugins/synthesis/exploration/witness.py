"""Witnesses: calls that anybody can make again, and what they came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import DataError
from callwright.language.program import Call


def call_json(call: Call) -> dict[str, Any]:
    """A call with literal arguments as JSON."""
    return {"tool": call.tool, "arguments": dict(call.arguments)}


def text_of(call: Call) -> str:
    """A call as a text by which equal ones are known; made once, because paths share their calls."""
    known: str | None = call.__dict__.get("_text")
    if known is None:
        known = call.__dict__["_text"] = f"{call.tool} {json.dumps(call.arguments, sort_keys=True)}"
    return known


def read_call(row: Any, number: int) -> Call:
    """The call of such JSON. Raises :class:`callwright.errors.DataError`."""
    match row:
        case {"tool": str(tool), "arguments": dict(arguments)}:
            return Call(number, tool, arguments)
    raise DataError(f'a call of a witness is {{"tool": …, "arguments": …}}, not {json.dumps(row, default=str)[:80]}')


@frozen
class Witness:
    """A path of calls with literal arguments in a fresh session of ``scenario`` and ``seed``.

    ``kind`` and ``code`` are the outcome of the last call. It proves what it proves to whoever makes the calls again.
    """

    scenario: str
    seed: int
    calls: tuple[Call, ...]
    kind: str = "ok"
    code: str = ""

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "scenario": self.scenario,
            "seed": self.seed,
            "calls": [call_json(call) for call in self.calls],
            "kind": self.kind,
            "code": self.code,
        }

    @classmethod
    def from_json(cls, row: Any) -> Witness:
        """From JSON. Raises :class:`callwright.errors.DataError`."""
        match row:
            case {"scenario": str(scenario), "seed": int(seed), "calls": list(calls), "kind": str(kind)}:
                code = row.get("code", "")
                if isinstance(code, str):
                    made = tuple(read_call(call, number) for number, call in enumerate(calls))
                    return cls(scenario, seed, made, kind, code)
        raise DataError(f"not a witness: {json.dumps(row, default=str)[:80]}")


def outcomes(environment: Environment, scenario: str, seed: int, calls: Sequence[Call]) -> list[Outcome]:
    """What these calls come to, one after the other, in a fresh session."""
    session = environment.open(scenario, seed)
    try:
        return [made(session, call) for call in calls]
    finally:
        session.close()


def made(session: Session, call: Call) -> Outcome:
    """Make a call. A tool may keep and change what it is given, so it is given a copy."""
    return session.call(call.tool, copied(call.arguments))


def copied(value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of JSON arguments."""
    return {name: _copied(inner) for name, inner in value.items()}


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is dict or isinstance(value, Mapping):
        return copied(value)
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
