"""Enabling: which tool may make possible what has just failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.exploration.names import words_of

_NAME: Final = re.compile(r"\w+")


def words_in(text: str) -> set[str]:
    """The words of a text, among which the names of tools are looked for."""
    return set(_NAME.findall(text))


def enabler_weights(
    failing: ToolSpec, code: str, message: str, tools: Sequence[str], enabled: Mapping[tuple[str, str], int]
) -> list[float]:
    """How likely each of ``tools`` repairs a failure: those that it names, that the failing tool names, and whatever
    repaired it before (``enabled``: by code and tool how often)."""
    said, described = words_in(message), words_in(failing.description)
    about = {*words_of(message), *words_of(code)}
    return [
        1.0
        + 12.0 * (name in said)
        + 3.0 * (name in described)
        + 2.0 * len(about.intersection(words_of(name)))
        + 6.0 * min(2, enabled.get((code, name), 0))
        for name in tools
    ]
