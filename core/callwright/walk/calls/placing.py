"""Where in a text calls and their arguments are written.

Forms differ in how they write calls, so this looks for what all of them write: the name of the tool, then the name of
the parameter, then the value. What is not found has no place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

Span = tuple[int, int]
_NEXT: Final = re.compile(r"\s*[:=>]+\s*")


def call_spans(text: str, tools: Sequence[str]) -> list[Span | None]:
    """From the name of each tool to that of the next one, in the order in which the calls are written."""
    starts: list[int | None] = []
    after = max(text.rfind("</think>"), 0)  # a thought may name tools, too
    for tool in tools:
        place = _named(text, tool, after)
        starts.append(place)
        after = after if place is None else place + len(tool)
    spans: list[Span | None] = []
    for number, start in enumerate(starts):
        following = next((one for one in starts[number + 1 :] if one is not None), len(text))
        spans.append(None if start is None else (start, following))
    return spans


def argument_span(text: str, path: str, found: str, call: Span) -> Span | None:
    """The name of the parameter at ``path`` inside the span of its call, with its value where that is ``found``.

    ``None`` where the name is not written there.
    """
    name = re.split(r"[.\[]", path.rpartition("[")[0] or path)[-1] or path
    at = _named(text, name, call[0], call[1])
    if at is None:
        return None
    end = at + len(name)
    separator = _NEXT.match(text, _quoted(text, end))
    if found and separator is not None and text.startswith(found, separator.end()):
        return at, min(separator.end() + len(found), call[1])
    return at, end


def end_of_name(text: str, start: int) -> int:
    """Where the name of a tool that begins at ``start`` ends."""
    found = re.compile(r"[\w.-]+").match(text, start)
    return start if found is None else found.end()


def _named(text: str, name: str, start: int, end: int | None = None) -> int | None:
    """Where a whole name stands from ``start`` on."""
    if not name:
        return None
    found = re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])").search(text, start, len(text) if end is None else end)
    return None if found is None else found.start()


def _quoted(text: str, place: int) -> int:
    return place + 1 if text[place : place + 1] in ('"', "'") else place
