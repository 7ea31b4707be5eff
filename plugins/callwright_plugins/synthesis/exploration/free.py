"""Free values: what a schema and the clock suggest where nobody has told a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from attrs import frozen

from callwright.tools.reading import json_types
from callwright_plugins.synthesis.exploration.values import Place

#: Where the clock is not known: noon of a Monday, as good as any other.
SOME_DAY: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
_TIMELY: Final = re.compile(
    r"date|day|time\b|_at$|^at$|start|end$|since|until|month|when|deadline|expires|check_in|check_out|depart|due\b",
    re.IGNORECASE,
)
_HOURS: Final = (0, 1, 2, 24, 26, 48, 74, 24 * 7, 24 * 7 + 3, 24 * 30, 24 * 60, -1, -24, -24 * 7, -24 * 30, 24 * 200)
_FORMATS: Final[Mapping[str, str]] = {
    "moment": "%Y-%m-%dT%H:%M:%SZ",
    "day": "%Y-%m-%d",
    "month": "%Y-%m",
    "hour": "%H:%M",
}
_NUMBERS: Final = (1, 2, 3, 5, 10, 20, 50, 100, 500, 1000, 5000, 20_000, 100_000, 1_000_000, 0, -1, -500)
_TEXTS: Final = (
    "Blue harbour", "a note", "north-gate-7", "7", "1234", "07:30", "#3366cc", "kim@example.org", "AB123456",
    "https://example.org/hook", "1990-05-17", "new", "1A", "123", "123456", "644", "*.txt", "Lake", "Second draft",
)  # fmt: skip
_WORD: Final = re.compile(r"[\w./-]{3,40}")
_DATED: Final = re.compile(r"\bISO\b|\d{4}-\d\d")
_MOMENT: Final = re.compile(r"\d{4}-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?)?|\d\d:\d\d")


@frozen
class Free:
    """A way to make up a value: its name as a place, how likely it is at first, and how a value is drawn."""

    place: Place
    prior: float
    draw: Callable[[Random], Any]


def free_values(name: str, schema: Any, now: datetime, tool: str) -> list[Free]:
    """The ways to make up a value of this schema for a parameter of this name."""
    if not isinstance(schema, Mapping):
        return [Free(Place("schema", tool, f"{name}: text"), 0.3, lambda rng: rng.choice(_TEXTS))]
    options = options_of(schema)
    if options is not None:
        return [Free(Place("schema", tool, f"{name}: enum"), 1.0, lambda rng: rng.choice(options))]
    found: list[Free] = []
    for branch in (schema, *branches_of(schema)):
        types = json_types(branch) or frozenset({"string"}) if branch is not schema or "type" in schema else frozenset()
        if "boolean" in types:
            found.append(Free(Place("schema", tool, f"{name}: boolean"), 1.0, lambda rng: rng.random() < 0.5))
        if types & {"integer", "number"}:
            found += _numbers(name, branch, tool, whole="number" not in types)
        if "string" in types:
            found += _texts(name, branch, f"{schema.get('description', '')}", now, tool)
    examples = [*_listed(schema, "examples")]
    if schema.get("default") not in (None, ""):
        examples.append(schema["default"])
    if examples:
        found.append(Free(Place("schema", tool, f"{name}: example"), 0.6, lambda rng: rng.choice(examples)))
    return found


def is_arbitrary(name: str, value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a text is one that exploring tries where nothing is known: nobody would ask for the project "07:30"."""
    said = f"{schema.get('description', '')}"
    if not isinstance(value, str) or value in said or value in _listed(schema, "examples"):
        return False
    if _MOMENT.fullmatch(value):
        return not (stated_as_time(schema) or _TIMELY.search(name) or _DATED.search(said))
    return value in _TEXTS


def stated_as_time(schema: Mapping[str, Any]) -> bool:
    """Whether a schema says that its texts are days or times."""
    return schema.get("format") in ("date", "date-time", "time")


def options_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values of a closed set; ``None`` where it is open. What may also be null is not left out by drawing null."""
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return list(schema["enum"])
    branches = [branch for branch in branches_of(schema) if branch.get("type") != "null"]
    closed = [options_of(branch) for branch in branches]
    if closed and all(one is not None for one in closed):
        return [value for one in closed if one is not None for value in one]
    return None


def branches_of(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemas of which a value fits one."""
    return [branch for key in ("anyOf", "oneOf") for branch in _listed(schema, key) if isinstance(branch, Mapping)]


def _listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    listed = schema.get(key)
    return listed if isinstance(listed, list) else []


def _bound(schema: Mapping[str, Any], *keys: str) -> float | None:
    for key in keys:
        bound = schema.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            return bound
    return None


def _numbers(name: str, schema: Mapping[str, Any], tool: str, *, whole: bool) -> list[Free]:
    low, high = _bound(schema, "minimum", "exclusiveMinimum"), _bound(schema, "maximum", "exclusiveMaximum")
    if "exclusiveMinimum" in schema and low is not None:
        low += 1
    fitting = [one for one in _NUMBERS if (low is None or one >= low) and (high is None or one <= high)]
    bounds = [int(bound) if whole else bound for bound in (low, high) if bound is not None]
    small = fitting[:5] or bounds or [1]
    large = [one for one in fitting[5:] if one > 0] or small
    found = [
        Free(Place("schema", tool, f"{name}: small"), 0.5, lambda rng: rng.choice(small)),
        Free(Place("schema", tool, f"{name}: large"), 0.25, lambda rng: rng.choice(large)),
    ]
    if low is not None and high is not None and high - low <= 1000:
        first, last = int(low), int(high)
        found.append(Free(Place("schema", tool, f"{name}: between"), 0.5, lambda rng: rng.randint(first, last)))
    if fitting and min(fitting) < 0:
        below = [one for one in fitting if one < 0]
        found.append(Free(Place("schema", tool, f"{name}: below zero"), 0.1, lambda rng: rng.choice(below)))
    return found


def _texts(name: str, schema: Mapping[str, Any], said: str, now: datetime, tool: str) -> list[Free]:
    found: list[Free] = []
    described = f"{said} {schema.get('description', '')}"
    if stated_as_time(schema) or _TIMELY.search(name) or _DATED.search(described):
        for form, pattern in _FORMATS.items():
            likely = {"moment": 0.5, "day": 0.5, "month": 0.2, "hour": 0.2}[form] + 0.5 * (form in described.lower())
            for later, hours in (("later", _HOURS[:11]), ("earlier", _HOURS[11:15])):
                found.append(
                    Free(
                        Place("clock", tool, f"{name}: {form} {later}"),
                        likely if later == "later" else likely / 2,
                        _at(now, hours, pattern),
                    )
                )
    texts = [text for text in _TEXTS if len(text) >= schema.get("minLength", 0)]
    syntax = schema.get("pattern")
    if isinstance(syntax, str):
        try:
            fitting = [text for text in (*texts, "") if re.search(syntax, text)]
        except re.error:
            fitting = texts
        if fitting:
            found.append(Free(Place("schema", tool, f"{name}: pattern"), 0.4, lambda rng: rng.choice(fitting)))
    else:
        found.append(Free(Place("schema", tool, f"{name}: text"), 0.2, lambda rng: rng.choice(texts)))
    words = _WORD.findall(described)
    if words:  # a syntax is told by its words: "owner", "~", "YYYY-MM"
        found.append(Free(Place("schema", tool, f"{name}: described"), 0.05, lambda rng: rng.choice(words)))
    return found


def _at(now: datetime, hours: tuple[int, ...], pattern: str) -> Callable[[Random], str]:
    return lambda rng: (now + timedelta(hours=rng.choice(hours))).strftime(pattern)
