"""Instruct: does an answer keep the format that was asked for, and does it make the call that was dictated?

The format in words is a template of six pieces around a thought, the name of an action and its arguments. The official
program makes one regular expression of it: ``(.*)`` three times, between pieces that it does not escape. Here the
expression is taken apart at its three groups, which finds the same match in a time that is linear in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from callwright_plugins.teval.literals import Unreadable, equal, literal, read_data

_FIELDS: Final = ("thought", "action", "args")


@frozen
class Called:
    """What an answer calls: the name, as it was written, and the arguments (none where they are no object)."""

    action: Any
    arguments: Mapping[Any, Any]


def read_json(answer: Any, template: Mapping[str, Any]) -> Called | None:
    """The call of an answer in JSON, whose keys the template names; ``None`` for another format."""
    try:
        data = read_data(answer)
        data[template["thought"]]
        action, arguments = data[template["action"]], data[template["args"]]
    except Exception:  # whatever a model wrote in the place of an object
        return None
    return Called(action, arguments if isinstance(arguments, dict) else {})


def read_words(answer: str, template: Mapping[str, Any]) -> Called | None:
    """The call of an answer in the template's words; ``None`` for another format."""
    found = _found(answer, template)
    if found is None:
        return None
    _, action, written = found
    try:
        arguments = literal(written.strip())
    except Unreadable:
        arguments = {}
    return Called(action.strip(), arguments if isinstance(arguments, dict) else {})


def arguments_right(called: Called, action: Any, arguments: Mapping[str, Any]) -> float:
    """The share of what was dictated that is there: the name, and each argument, in [0, 1].

    An argument that is missing counts as an empty text, and so is right where that was asked for.
    """
    right = int(equal(action, called.action))
    right += sum(equal(called.arguments.get(name, ""), value) for name, value in arguments.items())
    return right / (len(arguments) + 1)


# The template as an expression, in pieces -----------------------------------------------------------------------------


def _found(text: str, template: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The first three groups of the first match, as ``re.findall`` gives them for the whole expression.

    Each of the three runs takes as much as it can. So what follows the last of them is matched as far to the right as
    it goes, then what stands before it, and the beginning as far to the left. A piece that is no expression by itself
    matches nothing: the official program ends there with an exception.
    """
    pieces = [
        template["thought_start"],
        template["thought_end"] + template["action_start"],
        template["action_end"] + template["args_start"],
        template["args_end"],
    ]
    if not any(map(_SPECIAL.search, pieces)):
        return _plainly(text, pieces)
    try:
        expressions = [re.compile(piece, re.DOTALL) for piece in pieces]
    except re.error:
        return None
    matches: list[re.Match[str]] = []
    end = len(text)
    for expression in reversed(expressions[1:]):
        match = next(_from_the_right(expression, text, end), None)
        if match is None:
            return None
        matches.insert(0, match)
        end = match.start()
    first = next(_from_the_left(expressions[0], text, end), None)
    if first is None:
        return None
    matches.insert(0, first)
    groups: list[str] = []
    for match, after in zip(matches, [*matches[1:], None], strict=True):
        groups += [group or "" for group in match.groups()]
        if after is not None:
            groups.append(text[match.end() : after.start()])
    return groups[0], groups[1], groups[2]


_SPECIAL: Final = re.compile(r"[\\.^$*+?{}\[\]|()]")


def _plainly(text: str, pieces: list[str]) -> tuple[str, str, str] | None:
    """The same for pieces without a character that means something in an expression."""
    ends = text.rfind(pieces[3])
    arguments = text.rfind(pieces[2], 0, max(ends, 0)) if ends >= 0 else -1
    action = text.rfind(pieces[1], 0, arguments) if arguments >= 0 else -1
    start = text.find(pieces[0], 0, action) if action >= 0 else -1
    if start < 0:
        return None
    return (
        text[start + len(pieces[0]) : action],
        text[action + len(pieces[1]) : arguments],
        text[arguments + len(pieces[2]) : ends],
    )


def _from_the_right(expression: re.Pattern[str], text: str, end: int) -> Iterator[re.Match[str]]:
    for at in range(end, -1, -1):
        if (match := expression.match(text, at, end)) is not None:
            yield match


def _from_the_left(expression: re.Pattern[str], text: str, end: int) -> Iterator[re.Match[str]]:
    for at in range(end + 1):
        if (match := expression.match(text, at, end)) is not None:
            yield match


NEEDED: Final = {
    "json": _FIELDS,
    "words": tuple(f"{name}_{side}" for name in _FIELDS for side in ("start", "end")),
}
