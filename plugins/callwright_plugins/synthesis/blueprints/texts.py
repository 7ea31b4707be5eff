"""Texts: what a suggested text of a witness is when its values are taken out: a text with blanks, which other texts of
the same calls may share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from callwright.environments.knowledge.suggestions import Gap, Suggestions
from callwright.environments.knowledge.suggestions import Template as Suggested
from callwright.language.program import Path
from callwright_plugins.synthesis.graph.references import place_name


@frozen
class Blank:
    """A gap of a suggested text: what may fill it, and what the witness had. Texts of one shape share their blanks.
    ``text`` is a text that an earlier call was given, where the gap holds just that: what was made is taken up.
    """

    gap: Gap
    value: str
    text: Written | None = None


@frozen
class Written:
    """A text that somebody suggests for this argument: by the name of each gap the number of its blank."""

    text: Suggested
    blanks: tuple[tuple[str, int], ...]

    @property
    def whole(self) -> int | None:
        """The blank that the text is, where it is nothing else."""
        return next((number for name, number in self.blanks if self.text.text == f"{{{name}}}"), None)

    def value(self, blanks: Sequence[Blank]) -> str:
        """The text as the witness had it, of a shape with these blanks."""
        return self.text.with_values({name: blanks[number].value for name, number in self.blanks})

    def texts(self, blanks: Sequence[Blank]) -> tuple[str, ...]:
        """The text with its gaps, and those that earlier calls were given and that stand in it."""
        within = (blanks[number].text for _, number in self.blanks)
        return (self.text.text, *(one.text.text for one in within if one is not None))


class Pen:
    """Reads the suggested texts of one witness: equal values in their gaps are one blank, unless they are numbers, and
    a value that is an earlier text stays that text.
    """

    def __init__(self, suggestions: Suggestions | None) -> None:
        self.suggestions = suggestions
        self.blanks: list[Blank] = []
        #: By text what it was read as.
        self.again: dict[str, Written] = {}
        self._of_value: dict[str, int] = {}

    def written(self, tool: str, path: Path, value: Any) -> Written | None:
        """A text as one that was suggested; ``None`` where nobody suggests it."""
        if self.suggestions is None or not isinstance(value, str):
            return None
        found = self.suggestions.read(tool, place_name(path), value)
        if found is None:
            return None
        text, values = found
        made = Written(text, tuple((name, self._blank(name, one)) for name, one in values.items()))
        self.again.setdefault(value, made)
        return made

    def _blank(self, name: str, value: str) -> int:
        known = self._of_value.get(value)
        if known is None or value.isdecimal():
            assert self.suggestions is not None
            known = self._of_value[value] = len(self.blanks)
            self.blanks.append(Blank(self.suggestions.gaps[name], value, self.again.get(value)))
        return known
