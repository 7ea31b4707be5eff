"""Docstrings: the parameters that they describe, in the styles of Google, NumPy and reStructuredText, and the rest.

Docstrings are written by hand, so whatever is not a section in one of these styles stays text.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final

from attrs import frozen

_TITLES: Final = r"(?:Args|Arguments|Params|Parameters|Keyword Args|Keyword Arguments|Other Parameters)"
#: Whether it is worth looking: nearly no docstring has any of them.
_ANY: Final = re.compile(rf"^[ \t]*(?:{_TITLES}:?[ \t]*$|:[a-z]+[ \t][^:\n]*:|:returns?:)|^[ \t]*-{{3,}}[ \t]*$", re.M)
#: ``amount (float, optional): how much``, ``x, y (int): the place``.
_GOOGLE_ENTRY: Final = re.compile(
    r"(\*{0,2}\w+(?:[ \t]*,[ \t]*\*{0,2}\w+)*)[ \t]*(?:\([^)]*\))?[ \t]*:(?:[ \t]+(.*)|[ \t]*$)"
)
#: ``x, y : int, optional``.
_NUMPY_ENTRY: Final = re.compile(r"(\*{0,2}\w+(?:[ \t]*,[ \t]*\*{0,2}\w+)*)[ \t]*(?::.*)?$")
_UNDERLINE: Final = re.compile(r"-{3,}[ \t]*$")
#: ``:param float amount: how much``, ``:raises ValueError: if not``.
_FIELD: Final = re.compile(r":([a-z]+)(?:[ \t]+([^:]*?))?:(?:[ \t]+(.*)|[ \t]*$)")
_PARAMETER_FIELDS: Final = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
#: Fields about types, of which the annotations are believed.
_TYPE_FIELDS: Final = frozenset({"type", "rtype"})


@frozen
class Described:
    """What a docstring says: ``text`` without its sections on parameters, and what these say by name."""

    text: str
    parameters: dict[str, str]


def described(docstring: str) -> Described:
    """What a docstring, without the indentation of its source, says of a function and of its parameters.

    Sections on results and errors stay in the text, without the marks of their style.
    """
    if not _ANY.search(docstring):
        return Described(docstring, {})
    lines = docstring.expandtabs().splitlines()
    kept: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        read = _google(lines, at, found) or _numpy(lines, at, found) or _field(lines, at, found)
        if read is None:
            kept.append(lines[at])
            at += 1
        else:
            at, text = read
            kept += text
    return Described("\n".join(kept), found)


def unknown_parameters(function: Callable[..., Any]) -> list[str]:
    """The names of parameters that a function's docstring describes and the function does not have."""
    said = described(inspect.getdoc(function) or "").parameters
    return [name for name in said if name not in inspect.signature(function).parameters] if said else []


#: Where the lines go on after a section, and what stays of it.
_Read = tuple[int, list[str]]


def _google(lines: list[str], at: int, found: dict[str, str]) -> _Read | None:
    """``Args:`` and the indented lines below it."""
    if not re.fullmatch(rf"[ \t]*{_TITLES}:[ \t]*", lines[at]):
        return None
    end = _block_end(lines, at + 1, _indent(lines[at]))
    return (end, [""]) if _entries(lines[at + 1 : end], _GOOGLE_ENTRY, found) else None


def _numpy(lines: list[str], at: int, found: dict[str, str]) -> _Read | None:
    """A title with dashes below it: of parameters the entries below, of anything else the title as text."""
    if not _underlined(lines, at):
        return None
    if not re.fullmatch(rf"[ \t]*{_TITLES}[ \t]*", lines[at]):
        return at + 2, ["", f"{lines[at].strip()}:"]
    start = end = at + 2
    indent = _indent(lines[at])
    while end < len(lines):
        line = lines[end]
        if line.strip() and (_underlined(lines, end) or _indent(line) < indent):
            break
        if line.strip() and _indent(line) == indent and not _NUMPY_ENTRY.fullmatch(line.strip()):
            break
        end += 1
    return (end, [""]) if _entries(lines[start:end], _NUMPY_ENTRY, found) else None


def _field(lines: list[str], at: int, found: dict[str, str]) -> _Read | None:
    """``:param x: what it is``, and the more indented lines below it."""
    field = _FIELD.fullmatch(lines[at].strip())
    if field is None:
        return None
    kind, argument, first = field[1], (field[2] or "").split(), field[3] or ""
    end = _block_end(lines, at + 1, _indent(lines[at]))
    text = [first, *lines[at + 1 : end]]
    if kind in _PARAMETER_FIELDS and argument:
        _add(found, argument[-1], text)
        return end, []
    if kind in _TYPE_FIELDS:
        return end, []
    if kind in ("return", "returns"):
        return end, ["", f"Returns: {first}", *text[1:]]
    if kind in ("raise", "raises", "except", "exception") and argument:
        return end, ["", f"Raises {' '.join(argument)}: {first}", *text[1:]]
    return None


def _entries(lines: list[str], entry: re.Pattern[str], found: dict[str, str]) -> bool:
    """Read the entries of a section, whose names are indented least; whether there are any."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return False
    indent = _indent(filled[0])
    names, text, any_name = "", list[str](), False
    for line in lines:
        begun = entry.fullmatch(line.strip()) if line.strip() and _indent(line) <= indent else None
        if begun is None:
            text.append(line)
            continue
        _add_all(found, names, text)
        names, any_name = begun[1], True
        text = [begun[2] or ""] if entry is _GOOGLE_ENTRY else []
    _add_all(found, names, text)
    return any_name


def _add_all(found: dict[str, str], names: str, text: list[str]) -> None:
    for name in names.split(",") if names else ():
        _add(found, name.strip(), text)


def _add(found: dict[str, str], name: str, text: list[str]) -> None:
    found.setdefault(name.lstrip("*"), "\n".join(text).strip())


def _underlined(lines: list[str], at: int) -> bool:
    """Whether a line is a title: dashes stand below it, as far in as it."""
    return (
        at + 1 < len(lines)
        and bool(lines[at].strip())
        and bool(_UNDERLINE.fullmatch(lines[at + 1].strip()))
        and _indent(lines[at]) == _indent(lines[at + 1])
    )


def _block_end(lines: list[str], at: int, indent: int) -> int:
    """Where the lines end that are indented further; the empty ones after them are not of them."""
    end = at
    while at < len(lines):
        if lines[at].strip():
            if _indent(lines[at]) <= indent:
                break
            end = at + 1
        at += 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
