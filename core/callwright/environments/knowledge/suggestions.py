"""Suggestions: what to write where a tool takes free text (SQL, a path, a note), with gaps for what is there.

No schema says what a query looks like, and no result is one. A file says it for one server:

    {"gaps": {"table": {"from": ["list_tables", "create_table.query"], "pattern": "'name': '(\\\\w+)'"},
              "word": {"any_of": ["milk", "bread"]}},
     "templates": [{"tool": "read_query", "argument": "query", "text": "SELECT * FROM {table}"}]}

A gap is filled with one of ``any_of``, or with what ``pattern`` (its first group, if it has one) finds in the results
of a tool, in one place of them (``tool:place``, such as ``read_graph:entities[].name``), or in an argument that it was
given (``tool.argument``). Without a pattern it is the whole text. So texts are about what the server holds now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from attrs import frozen

from callwright.errors import DataError, UnknownName

_GAP: Final = re.compile(r"\{(\w+)\}")
_SOURCE: Final = re.compile(r"([^.:]*)(?:([.:])(.*))?", re.DOTALL)
_MOST: Final = 200
#: What was told last fills a gap in half of the draws: later calls are about what earlier ones have made.
_LATELY: Final = 3
_WHOLE: Final = re.compile(r"(?s).+")

#: Texts that were told: by ``tool`` in results, by ``tool:place`` in a place of them, by ``tool.argument`` in what it
#: was given. The newest last.
Told = Callable[[str], Iterable[str]]


@frozen
class Source:
    """Where a text comes from: the ``result`` of a tool, at ``path`` if that is not empty, or an ``argument`` of it."""

    origin: Literal["result", "argument"]
    tool: str
    path: str = ""

    @classmethod
    def of(cls, text: str) -> Source:
        """What a source of a gap means."""
        found = _SOURCE.match(text)
        assert found is not None
        return cls("argument" if found[2] == "." else "result", found[1], found[3] or "")


@frozen
class Gap:
    """What fills a gap: fixed values, or what ``pattern`` finds in what ``sources`` told."""

    any_of: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    pattern: re.Pattern[str] = _WHOLE

    def values(self, told: Told) -> list[str]:
        """The values that there are now, without repetition, at most 200, the newest last."""
        found = dict.fromkeys(self.any_of)
        for source in self.sources:
            for text in told(source):
                for match in self.pattern.finditer(text):
                    found.pop(value := match[1] if match.re.groups else match[0], None)
                    found[value] = None
        return [value for value in found if value][-_MOST:]

    def drawn(self, rng: Random, told: Told) -> str | None:
        """One of its values; ``None`` while there is none."""
        values = self.values(told)
        if not values:
            return None
        return rng.choice(values[-_LATELY:] if self.sources and rng.random() < 0.5 else values)


@frozen
class Template:
    """A text for an argument of a tool; ``{name}`` is a gap, and two of one name are filled alike."""

    tool: str
    argument: str
    text: str

    @property
    def gaps(self) -> tuple[str, ...]:
        """The names of its gaps, each once."""
        return tuple(dict.fromkeys(_GAP.findall(self.text)))

    def with_values(self, values: Mapping[str, str]) -> str:
        """The text with these values in its gaps."""
        return _GAP.sub(lambda match: values[match[1]], self.text)

    def read(self, text: str, gaps: Mapping[str, Gap]) -> dict[str, str] | None:
        """What stands in the gaps of a text that the template may have made; ``None`` for any other text. Where a gap
        has fixed values it is one of them.
        """
        match = _reading(self.text, tuple(gaps[name].any_of for name in self.gaps)).fullmatch(text)
        return None if match is None else match.groupdict()


@cache
def _reading(template: str, fixed: tuple[tuple[str, ...], ...]) -> re.Pattern[str]:
    parts: list[str] = []
    seen: list[str] = []
    for place, part in enumerate(_GAP.split(template)):
        if place % 2 == 0:
            parts.append(re.escape(part))
        elif part in seen:
            parts.append(f"(?P={part})")
        else:
            values = fixed[len(seen)]
            seen.append(part)
            parts.append(f"(?P<{part}>{'|'.join(map(re.escape, values)) if values else '.+?'})")
    return re.compile("".join(parts), re.DOTALL)


@frozen
class Suggestions:
    """The templates of a server, and what fills their gaps."""

    gaps: Mapping[str, Gap]
    templates: tuple[Template, ...]

    def of(self, tool: str, argument: str) -> list[Template]:
        """The templates for an argument of a tool."""
        return [one for one in self.templates if (one.tool, one.argument) == (tool, argument)]

    def filled(self, template: Template, rng: Random, told: Told) -> str | None:
        """A text of the template; ``None`` while nothing was told that fills one of its gaps."""
        chosen: dict[str, str] = {}
        for name in template.gaps:
            value = self.gaps[name].drawn(rng, told)
            if value is None:
                return None
            chosen[name] = value
        return template.with_values(chosen)

    def read(self, tool: str, argument: str, text: str) -> tuple[Template, dict[str, str]] | None:
        """The template that may have made a text for this argument, and what stands in its gaps; ``None`` where none
        did.
        """
        for one in self.of(tool, argument):
            found = one.read(text, self.gaps)
            if found is not None:
                return one, found
        return None

    def check(self, tools: Mapping[str, Any]) -> None:
        """Raises :class:`callwright.errors.UnknownName` for a tool that is not among ``tools``, of gaps, too."""
        sources = [source for gap in self.gaps.values() for source in gap.sources]
        for name in (*(one.tool for one in self.templates), *(Source.of(source).tool for source in sources)):
            if name not in tools:
                raise UnknownName("tool of the suggestions", name, tools)


def read_suggestions(path: str | Path) -> Suggestions:
    """Suggestions from a JSON file, or the ones of this name that ship (``sqlite``).

    Raises :class:`callwright.errors.DataError`, naming the file and the place, for anything else.
    """
    name, file = str(path), Path(path)
    shipped = resources.files(__package__).joinpath("shipped", f"{name}.json") if name.isidentifier() else None
    try:
        text = shipped.read_text("utf-8") if shipped and shipped.is_file() else file.read_text("utf-8")
        content = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: {error}") from error
    match content:
        case {"gaps": dict(gaps), "templates": list(templates), **rest} if not rest:
            made = Suggestions(
                {key: _gap(path, key, gap) for key, gap in gaps.items()},
                tuple(_template(path, number, one, gaps) for number, one in enumerate(templates, 1)),
            )
            if made.templates:
                return made
    raise DataError(f'{path}: suggestions are {{"gaps": {{…}}, "templates": [{{"tool", "argument", "text"}}, …]}}')


def _gap(path: str | Path, name: str, stated: Any) -> Gap:
    match stated:
        case {"any_of": list(values), **rest} if not rest and values and all(isinstance(one, str) for one in values):
            return Gap(any_of=tuple(values))
        case {"from": list(sources), **rest} if (
            rest.keys() <= {"pattern"}
            and sources
            and all(isinstance(one, str) for one in (*sources, rest.get("pattern", "")))
        ):
            try:
                return Gap(sources=tuple(sources), pattern=re.compile(str(rest["pattern"])) if rest else _WHOLE)
            except re.error as error:
                raise DataError(f"{path}: the pattern of the gap {name!r}: {error}") from error
    raise DataError(f'{path}: the gap {name!r} is {{"any_of": […]}} or {{"from": [TOOL, …], "pattern": …}}')


def _template(path: str | Path, number: int, stated: Any, gaps: Mapping[str, Any]) -> Template:
    match stated:
        case {"tool": str(tool), "argument": str(argument), "text": str(text), **rest} if not rest:
            for name in _GAP.findall(text):
                if name not in gaps:
                    raise DataError(f"{path}: template {number}: {UnknownName('gap', name, gaps)}")
            return Template(tool, argument, text)
    raise DataError(f"{path}: template {number} has a tool, an argument and a text, and nothing else")
