"""A slow reader of json (A.2) and of ToolRL's lines, by ``json.loads`` with a hook that keeps every member."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from specification_oracle import AbstractCall, Facts
from specification_text import CHARACTERS, DIGITS, NESTING, Malformed, number_of, text_value


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, all of them and in order."""


def _refuse(word: str) -> Any:
    raise Malformed  # RFC 8259: NaN and Infinity are no JSON


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or len(text) > DIGITS:  # ours: 1e400 is no number that a tool can take
        raise Malformed
    return value


def _exact(text: str) -> int:
    if len(text.lstrip("-")) > DIGITS:
        raise Malformed
    return int(text)


def _load(text: str) -> Any:
    try:
        return json.loads(
            text.strip(" \t\r\n"),
            object_pairs_hook=_Members,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_exact,
        )
    except ValueError:
        raise Malformed from None


def read_json(body: str) -> list[AbstractCall]:
    """A.2: "an ordered mapping from call identifiers to function invocations"."""
    tree = _load(body)
    if not isinstance(tree, _Members):  # C, rule 6: "the tool call JSON must be a dictionary"
        raise Malformed
    calls = []
    for key, call in tree:
        number = number_of(key)
        if not isinstance(call, _Members) or len(call) != 1:  # C, rule 7: "exactly one API name"
            raise Malformed
        ((tool, arguments),) = call
        if not tool:  # C, rule 7; ours: an empty text is no name, in no form
            raise Malformed
        text_value(tool)
        calls.append(
            AbstractCall(number, tool, _table(arguments) if isinstance(arguments, _Members) else _other(arguments))
        )
    return calls


def _other(value: Any) -> None:
    """Arguments that are no object (C, rule 8); what they hold must still be text, numbers and so on."""
    _json_value(value, 2)


def _table(members: _Members) -> dict[str, Any] | None:
    table = {name: _json_value(value, 2) for name, value in members}
    for name, _ in members:
        text_value(name)
    unique = len(table) == len(members)  # ours: with a name twice nobody knows which value counts
    return table if unique and not any(map(_repeats, members)) else None


def _repeats(member: tuple[str, Any]) -> bool:
    value = member[1]
    if isinstance(value, _Members):
        return len({name for name, _ in value}) != len(value) or any(map(_repeats, value))
    return isinstance(value, list) and any(_repeats(("", item)) for item in value)


def _json_value(value: Any, level: int) -> Any:
    if isinstance(value, str):
        return text_value(value)
    if isinstance(value, list):
        if level > NESTING:
            raise Malformed
        if isinstance(value, _Members):
            for name, _ in value:
                if any("\ud800" <= character <= "\udfff" for character in name):
                    raise Malformed
            return {name: _json_value(inner, level + 1) for name, inner in value}
        return [_json_value(item, level + 1) for item in value]
    return value


# toolrl (ToolRL, figure 4) --------------------------------------------------------------------------------------


def read_toolrl(text: str) -> Facts:
    """<think>, then <tool_call> with a call on each line, <response>, or both; nothing else (ours, for ``tier``)."""
    match = re.fullmatch(
        r"\s*<think>(.*?)</think>(?=\s*<(?:tool_call|response)>)"
        r"(?:\s*<tool_call>(?P<calls>.*?)</tool_call>)?(?:\s*<response>.*?</response>)?\s*",
        text,
        re.DOTALL,
    )
    if match is None or len(text) > CHARACTERS:
        return Facts(envelope=False)
    written = [line for line in (match["calls"] or "").split("\n") if line.strip()]
    if match["calls"] is not None and not written:
        return Facts(tree=False)
    calls = []
    try:
        for number, line in enumerate(written):
            calls.append(_line(line, number))
    except (Malformed, RecursionError):
        return Facts(tree=False)
    return Facts(tuple(calls), "all" if len(calls) > 1 else "one")  # ours: every call's result goes back


def _line(line: str, number: int) -> AbstractCall:
    tree = _load(line)
    names = [name for name, _ in tree] if isinstance(tree, _Members) else []
    if sorted(names) != ["name", "parameters"]:
        raise Malformed
    members = dict(tree)
    if not isinstance(members["name"], str):
        raise Malformed
    arguments = members["parameters"]
    if not isinstance(arguments, _Members) or _repeats(("", arguments)):
        return AbstractCall(number, members["name"], None)
    return AbstractCall(number, members["name"], {name: _plain(value) for name, value in arguments})


def _plain(value: Any) -> Any:
    """A value of a form without references."""
    if isinstance(value, _Members):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(item) for item in value] if isinstance(value, list) else value
