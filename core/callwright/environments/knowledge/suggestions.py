"""Suggestions: what to write where a tool takes free text (SQL, a path, a note), with gaps for what is there.

No schema says what a query looks like, and no result is one. A file says it for one server:

    {"gaps": {"table": {"from": ["list_tables", "create_table.query"], "pattern": "'name': '(\\\\w+)'"},
              "word": {"any_of": ["milk", "bread"]}},
     "templates": [{"tool": "read_query", "argument": "query", "text": "SELECT * FROM {table}"}]}

A gap is filled with one of ``any_of``, or with what ``pattern`` (its first group, if it has one) finds in the results
of a tool, or in an argument that it was given (``tool.argument``). So texts are about what the server holds now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any, Final

from attrs import frozen

from callwright.errors import DataError, UnknownName

_GAP: Final = re.compile(r"\{(\w+)\}")
_MOST: Final = 200

#: Texts that were told: by ``tool`` in results, by ``tool.argument`` in what it was given. The newest last.
Told = Callable[[str], Iterable[str]]


@frozen
class Gap:
    """What fills a gap: fixed values, or what ``pattern`` finds in what ``sources`` told."""

    any_of: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    def values(self, told: Told) -> list[str]:
        """The values that there are now, without repetition, at most 200, the newest last."""
        found = dict.fromkeys(self.any_of)
        for source in self.sources:
            for text in told(source):
                for match in self.pattern.finditer(text) if self.pattern else ():
                    found.pop(value := match[1] if match.re.groups else match[0], None)
                    found[value] = None
        return [value for value in found if value][-_MOST:]


@frozen
class Template:
    """A text for an argument of a tool; ``{name}`` is a gap, and two of one name are filled alike."""

    tool: str
    argument: str
    text: str


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
        text, names = template.text, dict.fromkeys(_GAP.findall(template.text))
        chosen: dict[str, str] = {}
        for name in names:
            values = self.gaps[name].values(told)
            if not values:
                return None
            chosen[name] = rng.choice(values)
        return _GAP.sub(lambda match: chosen[match[1]], text)

    def check(self, tools: Mapping[str, Any]) -> None:
        """Raises :class:`callwright.errors.UnknownName` for a tool that is not among ``tools``, of gaps, too."""
        sources = [source for gap in self.gaps.values() for source in gap.sources]
        for name in (*(one.tool for one in self.templates), *(source.partition(".")[0] for source in sources)):
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
        case {"from": list(sources), "pattern": str(pattern), **rest} if (
            not rest and sources and all(isinstance(one, str) for one in sources)
        ):
            try:
                return Gap(sources=tuple(sources), pattern=re.compile(pattern))
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
