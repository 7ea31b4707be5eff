"""Answers to single-turn entries as decoded calls: those of programs, of official result files, and bare ones."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.language.parser import Parser
from callwright.language.program import Program, Reference
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright_plugins.bfcl.multi_turn.calls import parsed_expression
from callwright_plugins.bfcl.multi_turn.decoding import NotDecoded, call_parts
from callwright_plugins.bfcl.single_turn.checking import Language
from callwright_plugins.bfcl.single_turn.java_source import java_call

_NAME: Final = re.compile(r"\s*([A-Za-z_$][\w$.]*)\s*\(")
_ARGUMENT: Final = re.compile(r"\s*([A-Za-z_$][\w$]*)\s*=(?!=)\s*")
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*")
#: Words of JavaScript that the official program does not keep, as they are no names.
_NO_NAMES: Final = frozenset({"false", "null", "this", "super", "undefined"})
_PAIRS: Final[Mapping[str, str]] = {"(": ")", "[": "]", "{": "}"}


class OfficialAnswer(Attempt):
    """An attempt that stands for an official row: ``calls`` as they were decoded, ``None`` if they could not be."""

    calls: Any = None


def official(
    row: Mapping[str, Any], task: Task, parser: Parser, version: str, language: Language, names: Mapping[str, str]
) -> OfficialAnswer | None:
    """The attempt of a row with ``result`` (result files) or ``calls``; ``None`` for another one.

    A result is a text, or a list of ``{name: arguments}`` with arguments as an object or a text of JSON; there names
    are those that a server was told (``names``: to the documented ones).
    """
    if "calls" in row:
        calls, text = row["calls"], json.dumps(row["calls"])
    elif "result" in row:
        result = row["result"]
        text = result if isinstance(result, str) else json.dumps(result)
        try:
            if isinstance(result, str):
                calls = decoded_text(result, version, language)
            else:
                calls = [
                    {names.get(name, name): json.loads(one) if isinstance(one, str) else one}
                    for call in result
                    for name, one in list(call.items())[:1]
                ]
        except (NotDecoded, ValueError, TypeError, AttributeError, RecursionError):
            calls = None
    else:
        return None
    made = OfficialAnswer(task, text, parser)
    made.calls = calls
    return made


def calls_of(program: Program, names: Mapping[str, str]) -> list[dict[str, dict[str, Any]]]:
    """The calls of a program under their documented names. A reference, which BFCL does not know, is its text."""
    return [
        {names.get(call.tool, call.tool): _unreferred(call.arguments) if call.located else dict(call.arguments)}
        for call in program.calls
    ]


def _unreferred(value: Any) -> Any:
    if isinstance(value, Reference):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _unreferred(inner) for key, inner in value.items()}
    return [_unreferred(inner) for inner in value] if isinstance(value, list | tuple) else value


# Texts ----------------------------------------------------------------------------------------------------------------


def decoded_text(text: str, version: str, language: Language) -> list[dict[str, dict[str, Any]]]:
    """The calls of a text such as ``[area(base=10, height=5)]``. Nothing of it is evaluated but sums of numbers.

    Raises :class:`callwright_plugins.bfcl.multi_turn.decoding.NotDecoded`.
    """
    text = text.strip("`\n ")
    text = text if text.startswith("[") else "[" + text
    text = text if text.endswith("]") else text + "]"
    if language == "Java":
        return [java_call(text[1:-1])]
    if language == "JavaScript":
        return [_source_call(text[1:-1])]
    text = text.strip("[]'") if version == "v3" else text.strip().strip("'")
    try:
        tree = parsed_expression(text)
        calls = [tree] if isinstance(tree, ast.Call) else getattr(tree, "elts", None)
        if calls is None:
            raise NotDecoded("neither a call nor a list of calls")
        return [call_parts(one) for one in calls]
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError) as error:
        raise NotDecoded(str(error)) from error


def _source_call(text: str) -> dict[str, dict[str, Any]]:
    """The call of a JavaScript text, ``name(key = value, …)``: values stay source texts, quotes come off.

    A single word without a name stands under ``"None"``, where the official program keeps it.
    """
    named = _NAME.match(text)
    if not named:
        raise NotDecoded("no call")
    arguments: dict[str, Any] = {}
    for part in _parts(text, named.end()):
        stated = _ARGUMENT.match(part)
        if not stated:
            word = part.strip()
            if not _WORD.fullmatch(word) or word in _NO_NAMES:
                continue
            if "None" in arguments:
                raise NotDecoded("two arguments without a name")
            arguments["None"] = word
            continue
        value = part[stated.end() :].strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if stated[1] in arguments:
            raise NotDecoded("an argument is given twice")
        arguments[stated[1]] = value
    return {named[1]: arguments}


def _parts(text: str, place: int) -> list[str]:
    """The arguments of a call from behind its bracket to the closing one, split at commas outside of brackets."""
    parts: list[str] = []
    open_, quote, begin = [")"], "", place
    while place < len(text):
        sign = text[place]
        if quote:
            if sign == "\\":
                place += 1
            elif sign == quote:
                quote = ""
        elif sign in "\"'`":
            quote = sign
        elif sign in _PAIRS:
            open_.append(_PAIRS[sign])
        elif sign in ")]}":
            if sign != open_.pop():
                break
            if not open_:
                return [*parts, text[begin:place]]
        elif sign == "," and len(open_) == 1:
            parts.append(text[begin:place])
            begin = place + 1
        place += 1
    raise NotDecoded("brackets or quotes that do not close")
