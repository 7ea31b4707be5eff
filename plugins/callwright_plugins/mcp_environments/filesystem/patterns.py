"""Patterns that models write: globs and regular expressions, both with a bound on the time they can take."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from callwright.tools.spec import ToolError

#: How much a search may cost: characters searched times the weight of the pattern. About half a second at worst.
BUDGET: Final = 20_000_000
_HEAVIEST: Final = 4000
_COUNTED: Final = re.compile(r"\{(\d{0,4}),?(\d{0,4})\}")
_LARGE_COUNT: Final = re.compile(r"\{[\d,]*\d{5}")


def weight(pattern: str) -> int:
    """About how many places a compiled pattern has, which is what one character may cost: counts in braces multiply."""
    sums, last, at = [0], 0, 0
    while at < len(pattern):
        letter = pattern[at]
        count = _COUNTED.match(pattern, at)
        if count is not None:
            sums[-1] += last * (max(1, *(int(digits or 0) for digits in count.groups())) - 1)
            at = count.end()
            continue
        at += 2 if letter == "\\" else 1
        last = 1
        if letter == "[" and (end := _set_end(pattern, at)) > 0:
            at = end + 1
        elif letter == "(":
            sums.append(0)
            last = 0
        elif letter == ")" and len(sums) > 1:
            last = sums.pop()
        sums[-1] += last
    return max(1, sum(sums))


@lru_cache(maxsize=512)
def expression(pattern: str, ignore_case: bool, fixed: bool) -> Callable[[str], bool]:
    """Whether a line holds a match of ``pattern``. Fails with BAD_PATTERN.

    The engine is Rust's ``regex`` (as pydantic has it), whose time is linear in the text; that is why there are
    neither back-references nor look-around.
    """
    if fixed and not ignore_case:
        return lambda line: pattern in line
    if fixed:
        folded = pattern.casefold()
        return lambda line: folded in line.casefold()
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    if weight(pattern) > _HEAVIEST or _LARGE_COUNT.search(pattern):
        raise ToolError("BAD_PATTERN", f"{pattern[:60]!r} repeats too much; use smaller counts in {{ }}")
    try:
        source = f"(?i){pattern}" if ignore_case else pattern
        matches = SchemaValidator(core_schema.str_schema(pattern=source, regex_engine="rust-regex")).isinstance_python
    except (SchemaError, UnicodeEncodeError) as error:
        why = str(error).strip().splitlines()[-1].strip()[:120]
        raise ToolError("BAD_PATTERN", f"{pattern[:60]!r} is not a regular expression of this grep: {why}") from None

    def holds(line: str) -> bool:
        return matches(line)

    return holds


def glob(pattern: str) -> Callable[[str], bool]:
    """Whether a whole name fits ``*``, ``?`` and ``[a-z]`` or ``[!a-z]``; in time of at most name times pattern.

    A ``[`` without its ``]`` stands for itself.
    """
    if not any(letter in pattern for letter in "?["):
        return _stars(pattern.split("*"))
    parts = _glob_parts(pattern)

    def fits(name: str) -> bool:
        at = part = 0
        star, mark = -1, 0  # the last star, and where what follows it was tried
        while at < len(name):
            if part < len(parts) and parts[part] is None:
                star, mark = part, at
                part += 1
            elif part < len(parts) and _one(parts[part], name[at]):
                at, part = at + 1, part + 1
            elif star >= 0:
                mark += 1
                at, part = mark, star + 1
            else:
                return False
        return all(rest is None for rest in parts[part:])

    return fits


def _stars(pieces: list[str]) -> Callable[[str], bool]:
    """Whether a name consists of these pieces with anything between them; one piece is the whole name."""
    if len(pieces) == 1:
        return lambda name: name == pieces[0]
    first, *middle, last = pieces

    def fits(name: str) -> bool:
        if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
            return False
        at, end = len(first), len(name) - len(last)
        for piece in middle:
            found = name.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return fits


#: ``None`` is a star; else whether the set is negated, and its ranges (of one character each for plain ones).
_Part = tuple[bool, tuple[tuple[str, str], ...]] | None


def _glob_parts(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            parts.append(None)
        elif letter == "?":
            parts.append((True, ()))
        elif letter == "[" and (end := _set_end(pattern, at)) > 0:
            body = pattern[at:end]
            negated = body[0] in "!^"
            parts.append((negated, _ranges(body[negated:])))
            at = end + 1
        else:
            parts.append((False, ((letter, letter),)))
    return parts


def _set_end(pattern: str, at: int) -> int:
    begin = at + (pattern[at : at + 1] in ("!", "^"))
    return pattern.find("]", begin + 1)


def _ranges(body: str) -> tuple[tuple[str, str], ...]:
    found = []
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            found.append((body[at], body[at + 2]))
            at += 3
        else:
            found.append((body[at], body[at]))
            at += 1
    return tuple(found)


def _one(part: _Part, letter: str) -> bool:
    assert part is not None
    negated, ranges = part
    return any(low <= letter <= high for low, high in ranges) != negated
