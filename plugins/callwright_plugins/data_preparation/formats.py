"""Rows of ToolACE, xLAM and Hammer, as they are published, as conversations.

- **ToolACE**: ``system`` (prose with a JSON list of tools) and ``conversations`` of ``{from, value}``.
- **xLAM**: ``query``, ``tools`` and ``answers``, the last two as JSON texts.
- **Hammer** (masked): ``instruction`` with bracketed blocks for tools and query, ``output`` with the calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from callwright_plugins.data_preparation.conversations import BadRow, Called, Conversation, Parameter, Tool, Turn
from callwright_plugins.data_preparation.literals import UNREADABLE, is_call_list, read_calls, read_value

_LIST: Final = re.compile(r"\[\s*\{")
_BLOCK: Final = "[BEGIN OF {0}]"
_SHAPE: Final = "keys that are not those of the format"
_TOOLS: Final = "tools that cannot be read"
_SPEAKERS: Final[Mapping[str, Literal["user", "assistant", "tool"]]] = {
    "user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant",
    "tool": "tool", "observation": "tool",
}  # fmt: skip


def read_toolace(row: Mapping[str, Any]) -> Conversation:
    """A row of ToolACE. Raises :class:`BadRow`."""
    system, said = row.get("system"), row.get("conversations")
    if not isinstance(system, str) or not isinstance(said, list):
        raise BadRow(_SHAPE)
    turns = []
    for turn in said:
        if not isinstance(turn, Mapping) or not isinstance(turn.get("value"), str):
            raise BadRow(_SHAPE)
        by = _SPEAKERS.get(str(turn.get("from")))
        if by is None:
            raise BadRow("a speaker that is none of user, assistant and tool")
        text = turn["value"].strip()
        called = by == "assistant" and is_call_list(text)
        turns.append(Turn(by, "" if called else text, read_calls(text) if called else ()))
    return Conversation(_tools(_tool_list(system)), tuple(turns))


def read_xlam(row: Mapping[str, Any]) -> Conversation:
    """A row of xLAM, or of xLAM-irrelevance, which has no calls. Raises :class:`BadRow`."""
    query = row.get("query")
    if not isinstance(query, str) or "tools" not in row or "answers" not in row:
        raise BadRow(_SHAPE)
    return _single(decoded(row["tools"], _TOOLS), query, decoded(row["answers"], UNREADABLE))


def read_hammer(row: Mapping[str, Any]) -> Conversation:
    """A row of Hammer's masked data; a row of xLAM's keys is read, too. Raises :class:`BadRow`."""
    if "instruction" not in row and "query" in row:
        return read_xlam(row)
    given, output = row.get("instruction"), row.get("output")
    if not isinstance(given, str) or "output" not in row:
        raise BadRow(_SHAPE)
    given += "\n" + str(row.get("input") or "")
    return _single(
        decoded(_block(given, "AVAILABLE TOOLS"), _TOOLS), _block(given, "QUERY"), decoded(output, UNREADABLE)
    )


#: The reader of each data set.
READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Conversation]]] = {
    "toolace": read_toolace,
    "hammer": read_hammer,
    "xlam": read_xlam,
}


def _single(tools: Any, query: str, answers: Any) -> Conversation:
    if isinstance(answers, Mapping):
        answers = answers.get("tool_calls", [answers])
    if not isinstance(answers, list):
        raise BadRow(UNREADABLE)
    calls = []
    for answer in answers:
        if not isinstance(answer, Mapping) or not isinstance(answer.get("name"), str):
            raise BadRow(UNREADABLE)
        arguments = answer.get("arguments", answer.get("parameters", {}))
        if not isinstance(arguments, Mapping):
            raise BadRow(UNREADABLE)
        calls.append(Called(answer["name"], dict(arguments)))
    return Conversation(_tools(tools), (Turn("user", query.strip()), Turn("assistant", "", tuple(calls))))


def decoded(value: Any, reason: str) -> Any:
    """A value that may be written as text. Raises :class:`BadRow` with the reason for one that cannot be read."""
    if not isinstance(value, str):
        return value
    try:
        return read_value(value.strip())
    except BadRow as error:
        raise BadRow(reason) from error


def _block(text: str, name: str) -> str:
    _, begin, rest = text.partition(_BLOCK.format(name))
    inner, end, _ = rest.partition(f"[END OF {name}]")
    if not begin or not end:
        raise BadRow(_SHAPE)
    return inner.strip()


def _tool_list(system: str) -> Any:
    """The JSON list of tools that stands in prose."""
    decoder = json.JSONDecoder()
    for number, match in enumerate(_LIST.finditer(system)):
        if number >= 20:  # a schema has such lists inside, so that a damaged list would be read from each of them
            break
        try:
            value, _ = decoder.raw_decode(system, match.start())
        except (ValueError, RecursionError):
            continue
        if all(isinstance(item, Mapping) and "name" in item for item in value):
            return value
    return []


def _tools(given: Any) -> tuple[Tool, ...]:
    if not isinstance(given, list) or not given:
        raise BadRow("no tools" if given == [] else _TOOLS)
    return tuple(read_tool(item) for item in given)


def read_tool(given: Any) -> Tool:
    """A tool of any of the three dialects, with the rules of TIER's appendix E.2 for what is required.

    Where there is a list ``required``, it decides, whatever has a default. Where there is none, as in xLAM, a
    parameter is optional if a default is declared, or if its type says so. Raises :class:`BadRow`.
    """
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"].strip():
        raise BadRow(_TOOLS)
    parameters = given.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise BadRow(_TOOLS)
    required: Any = None
    if isinstance(parameters.get("properties"), Mapping):
        required = parameters.get("required")
        required = required if isinstance(required, list) else given.get("required")
        required = required if isinstance(required, list) else []
        parameters = parameters["properties"]
    found = []
    for name, facts in parameters.items():
        if not isinstance(facts, Mapping):
            raise BadRow(_TOOLS)
        kind, has_default = str(facts.get("type", "")), "default" in facts
        needed = name in required if required is not None else not has_default and "optional" not in kind.lower()
        description = str(facts.get("description") or "")
        found.append(Parameter(str(name), kind, description, needed, has_default, facts.get("default"), facts))
    return Tool(given["name"].strip(), str(given.get("description") or ""), tuple(found))
