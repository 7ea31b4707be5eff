"""Filters: what people type into the search box, as conditions.

    step>=30 score.format<1 tool:GetPrice failure:schema* answered:no "unknown currency" -branch:side

Words and phrases are searched in queries, completions, results and evidence; every other term is a condition, and
all of them hold. ``*`` stands for anything, ``none`` for what a row does not say, a minus before a term for the
opposite.
The app has the same in TypeScript (``front/filtering.ts``), for pages without a server; a test holds the two equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.errors import UnknownName, UsageError

TEXTS: Final = ("id", "task", "group", "structure", "failure", "stage", "branch", "query")
NUMBERS: Final = ("n", "step", "sample", "depth", "total", "advantage", "calls", "failed")
FLAGS: Final = ("answered", "masked", "truncated")
#: What a name in the search box is called in the table; some stand in the table beside it.
_STORED: Final = {
    "group": "grp",
    "id": "(SELECT id FROM texts WHERE texts.n = rollouts.n)",
    "query": "(SELECT query FROM texts WHERE texts.n = rollouts.n)",
}
_OPERATORS: Final = ("!=", "<=", ">=", "<", ">", "=", ":")
_TERM: Final = re.compile(
    r"""\s*(?P<minus>-)?(?:
        (?P<key>[A-Za-z_][\w./-]*?)(?P<operator>!=|<=|>=|<|>|=|:)(?P<value>"(?:[^"\\]|\\.)*"|[^\s"]\S*)
        |"(?P<phrase>(?:[^"\\]|\\.)*)"
        |(?P<word>\S+))""",
    re.VERBOSE,
)
_YES: Final = {"yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0}
_WORDS: Final = re.compile(r"\w+")
#: Characters of a text in a condition: SQLite refuses patterns of more than 50,000 bytes.
_LONGEST: Final = 10_000


@frozen
class Filter:
    """Conditions in SQL, with the values that stand for its marks."""

    where: str = "1"
    values: Sequence[Any] = ()


def read_filter(text: str, components: Mapping[str, str], marked: Mapping[str, Sequence[int]] | None = None) -> Filter:
    """The filter of a text. ``components`` are the columns of the reward's; ``marked`` the rows with each mark.

    Raises :class:`callwright.UsageError` for a condition that makes no sense, :class:`callwright.errors.UnknownName`
    for a name that is none.
    """
    parts: list[str] = []
    values: list[Any] = []
    at = 0
    while (found := _TERM.match(text, at)) is not None:
        at = found.end()
        if found["key"]:
            sql, some = _condition(found["key"], found["operator"], _unquoted(found["value"]), components, marked or {})
        else:
            sql, some = _searched(found["phrase"] if found["phrase"] is not None else found["word"])
        parts.append(f"NOT coalesce({sql}, 0)" if found["minus"] else sql)
        values += some
    return Filter(" AND ".join(parts) or "1", values)


def column_of(name: str, components: Mapping[str, str]) -> str:
    """The column of a name by which rows are sorted or grouped.

    Raises :class:`callwright.errors.UnknownName` for a name that is none.
    """
    plain = name.removeprefix("score.")
    if name in TEXTS or name in NUMBERS or name in FLAGS:
        return _STORED.get(name, name)
    if name == "tool":
        return "tools"
    if plain in components:
        return components[plain]
    known = (*TEXTS, *NUMBERS, *FLAGS, "tool", "mark", *(f"score.{one}" for one in components))
    raise UnknownName("column", name, known)


def _condition(
    key: str, operator: str, value: str, components: Mapping[str, str], marked: Mapping[str, Sequence[int]]
) -> tuple[str, list[Any]]:
    if key == "mark":
        return _marked(operator, value, marked)
    column = column_of(key, components)
    equal = operator in ("=", ":")
    if value == "none" and (equal or operator == "!="):
        empty = f"({column} IS NULL OR {column} = '')"
        return (empty if equal else f"NOT {empty}"), []
    if key in FLAGS:
        if value.lower() not in _YES or not (equal or operator == "!="):
            raise UsageError(f"{key} is yes or no: {key}:yes, not {key}{operator}{value}")
        return f"{column} {'=' if equal else '!='} ?", [_YES[value.lower()]]
    if key == "tool":
        return _text(column, operator, f"*\n{value}\n*")
    if key in TEXTS:
        return _text(column, operator, value)
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"{key} is a number: {key}>0.5, not {key}{operator}{value}") from None
    # A total of 0.3 may be stored as 0.30000000000000004.
    if equal or operator == "!=":
        near = f"abs({column} - ?) < 1e-9"
        return (near if equal else f"NOT {near}"), [number]
    return f"{column} {operator} ?", [number]


def _text(column: str, operator: str, value: str) -> tuple[str, list[Any]]:
    if operator not in ("=", ":", "!="):
        raise UsageError(f"{value!r:.40} is a text: it is equal (:) or not (!=), not {operator}")
    if len(value) > _LONGEST:
        raise UsageError(f"a text in a condition has at most {_LONGEST:,} characters, not {len(value):,}")
    pattern = "".join(one if one == "*" else f"[{one}]" if one in "?[" else one for one in value)
    # Without a case, as in the words that are searched.
    return f"lower({column}) {'NOT ' if operator == '!=' else ''}GLOB lower(?)", [pattern]


def _marked(operator: str, value: str, marked: Mapping[str, Sequence[int]]) -> tuple[str, list[Any]]:
    if operator not in ("=", ":", "!="):
        raise UsageError("a mark is equal or not: mark:good")
    if value in ("any", "none"):
        rows = [n for some in marked.values() for n in some]
        negative = (value == "none") == (operator != "!=")
    else:
        rows, negative = list(marked.get(value, ())), operator == "!="
    listed = ", ".join(str(int(n)) for n in rows)
    return f"n {'NOT ' if negative else ''}IN ({listed})", []


def _searched(text: str) -> tuple[str, list[Any]]:
    words = _WORDS.findall(_unescaped(text))
    if not words:
        return "1", []
    phrase = " ".join(words)
    return "n IN (SELECT rowid FROM words WHERE words MATCH ?)", [f'"{phrase}" *']


def _unquoted(value: str) -> str:
    return _unescaped(value[1:-1]) if value[:1] == '"' and value[-1:] == '"' and len(value) > 1 else value


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
