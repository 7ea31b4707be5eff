"""Rubrics: what a judge is to look at, as a TOML file.

    about = "An assistant books tables for its users."
    scale = [1, 5]                           # whole numbers, worst and best
    sees = ["task", "calls", "answer"]       # of: task, tools, completion, calls, answer, reference

    [criteria.polite]
    weight = 1                               # more than 0
    asks = "Is every message polite?"
    low = "Rude."                            # what the ends of the scale mean, if that needs saying
    high = "Polite throughout."

TOML, since recipes are: every mistake is told with file and line, all at once. A rubric that comes with Callwright goes
by its name (``answer``), any other by its path.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from callwright.digests import digest_of
from callwright.errors import DataError, RecipeError, UnknownName
from callwright.recipe_file import locate

#: What a judge can be shown, in the order in which it is shown.
SIGHTS: Final = ("task", "tools", "completion", "calls", "answer", "reference")
_KEYS: Final = ("about", "scale", "sees", "criteria")
_OF_A_CRITERION: Final = ("asks", "weight", "low", "high")
#: Points of a scale at most: nobody tells more apart.
_MOST_POINTS: Final = 101
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_AT_LINE: Final = re.compile(r"\(at line (\d+), column \d+\)")


@frozen
class Criterion:
    """One question. ``weight`` is its share of the score, ``low`` and ``high`` what the ends of the scale mean."""

    name: str
    asks: str
    weight: float = 1.0
    low: str = ""
    high: str = ""


@frozen
class Rubric:
    """``scale``: the worst and the best score of a criterion, both whole numbers; ``sees``: what the judge is shown."""

    name: str
    about: str
    criteria: tuple[Criterion, ...]
    scale: tuple[int, int] = (1, 5)
    sees: tuple[str, ...] = ("task", "calls", "answer")
    digest: str = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        said = [self.about, self.scale, self.sees, [[c.name, c.asks, c.weight, c.low, c.high] for c in self.criteria]]
        object.__setattr__(self, "digest", digest_of(said))

    @property
    def executes(self) -> bool:
        """Whether the judge is shown what calls came to."""
        return not {"calls", "answer"}.isdisjoint(self.sees)

    def value(self, points: Mapping[str, float]) -> float:
        """The weighted mean of the points of each criterion, on a scale of 0 to 1."""
        low, high = self.scale
        total = math.fsum(criterion.weight for criterion in self.criteria)
        got = math.fsum(c.weight * (points[c.name] - low) / (high - low) for c in self.criteria)
        return min(1.0, max(0.0, got / total))


def shipped_rubrics() -> list[str]:
    """The names of the rubrics that come with Callwright."""
    folder = resources.files("callwright_plugins.judge") / "rubrics"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_rubric(rubric: str) -> Rubric:
    """A shipped rubric by its name, or the one of a file.

    Raises :class:`callwright.errors.DataError` for a file that is not there and :class:`callwright.errors.RecipeError`,
    with file and line, for one that is no rubric.
    """
    if rubric in shipped_rubrics():
        shipped = resources.files("callwright_plugins.judge") / "rubrics" / f"{rubric}.toml"
        return parse_rubric(shipped.read_text(encoding="utf-8"), f"{rubric}.toml", rubric)
    path = Path(rubric)
    if path.suffix != ".toml" and not path.is_file():
        raise UnknownName("rubric", rubric, shipped_rubrics(), hint="Or give the path of a TOML file.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"the rubric {rubric} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise DataError(f"the rubric {rubric} cannot be read: {error.strerror or error}") from error
    return parse_rubric(text, rubric, path.stem)


def parse_rubric(text: str, source: str = "<rubric>", name: str = "rubric") -> Rubric:
    """The rubric of a TOML text. Raises :class:`callwright.errors.RecipeError`, a line for each mistake."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _AT_LINE.search(str(error))
        where = f"{source}:{line[1]}" if line else f"{source}:{text.count(chr(10)) + 1}"
        raise RecipeError(f"{where}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{source}: {error}") from error
    reading = _Reading(source, text)
    found = reading.rubric(data, name)
    if reading.mistakes or found is None:
        raise RecipeError("\n".join(dict.fromkeys(reading.mistakes)))
    return found


class _Reading:
    """Reads a rubric and gathers what is wrong with it."""

    def __init__(self, source: str, text: str) -> None:
        self.source, self.text = source, text
        self.mistakes: list[str] = []

    def wrong(self, message: str, *path: str) -> None:
        self.mistakes.append(f"{locate(self.source, self.text, {}, path)}: {message}")

    def rubric(self, data: Mapping[str, Any], name: str) -> Rubric | None:
        for key in data:
            if key not in _KEYS:
                self.wrong(str(UnknownName("key of a rubric", key, _KEYS)), key)
        about = self._text(data, "about", needed=True)
        scale = self._scale(data.get("scale", [1, 5]))
        sees = self._sees(data.get("sees", ["task", "calls", "answer"]))
        tables = data.get("criteria")
        if not isinstance(tables, Mapping) or not tables:
            self.wrong("a rubric needs criteria: tables such as [criteria.polite]", "criteria")
            return None
        criteria = tuple(self._criterion(key, table) for key, table in tables.items())
        return None if self.mistakes else Rubric(name, about, criteria, scale, sees)

    def _criterion(self, name: str, table: Any) -> Criterion:
        if not _NAME.fullmatch(name):
            self.wrong(f"a criterion is named with letters, digits, '_' and '-', not {name!r:.60}", "criteria", name)
        if not isinstance(table, Mapping):
            self.wrong(f"a criterion is a table with 'asks', not {table!r:.60}", "criteria", name)
            return Criterion(name, "")
        for key in table:
            if key not in _OF_A_CRITERION:
                self.wrong(str(UnknownName("key of a criterion", key, _OF_A_CRITERION)), "criteria", name, key)
        weight = table.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            self.wrong(f"'weight' is a number above 0, not {weight!r:.60}", "criteria", name, "weight")
            weight = 1
        texts = {key: self._text(table, key, "criteria", name, needed=key == "asks") for key in ("asks", "low", "high")}
        return Criterion(name, weight=float(weight), **texts)

    def _text(self, table: Mapping[str, Any], key: str, *path: str, needed: bool = False) -> str:
        given = table.get(key, "")
        if not isinstance(given, str):
            self.wrong(f"{key!r} is a text, not {given!r:.60}", *path, key)
            return ""
        if needed and not given.strip():
            self.wrong(f"{key!r} is missing" if key not in table else f"{key!r} is empty", *path, key)
        return " ".join(given.split())

    def _scale(self, given: Any) -> tuple[int, int]:
        match given:
            case [int(low), int(high)] if type(low) is type(high) is int and 0 < high - low < _MOST_POINTS:
                return low, high
        self.wrong(
            f"'scale' is two whole numbers, the worst and the best, with at most {_MOST_POINTS} points: not "
            f"{given!r:.60}",
            "scale",
        )
        return 1, 5

    def _sees(self, given: Any) -> tuple[str, ...]:
        if not isinstance(given, list) or not given:
            self.wrong(f"'sees' is a list of {', '.join(SIGHTS)}, not {given!r:.60}", "sees")
            return SIGHTS
        for one in given:
            if one not in SIGHTS:
                self.wrong(str(UnknownName("thing to see", str(one), SIGHTS)), "sees")
        return tuple(sight for sight in SIGHTS if sight in given)
