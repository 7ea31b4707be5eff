"""Where in a text a piece of evidence belongs: at the call, at the argument, at the value that it is about.

Forms differ in how they write calls, so this looks for what all of them write: the name of the tool, then the name of
the parameter, then the value. What is not found has no place, and the evidence stands beside the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright_plugins.viewer.sources.entries import text_of

Span = tuple[int, int]
_CALL: Final = re.compile(r"call (\d+) ([A-Za-z_][\w.-]*)")
#: How parsers say where a mistake stands.
_CHARACTERS: Final = re.compile(r"\(characters (\d+)-(\d+)\)")
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


def place_of(
    text: str, evidence: Mapping[str, Any], calls: Mapping[int, Span | None], *, last: bool = True
) -> Span | None:
    """The characters that a piece of evidence is about; ``None`` where they are not to be found.

    What a parser could not read is the ``last`` text of an episode.
    """
    stated = _CHARACTERS.search(text_of(evidence.get("reason")))
    if stated is not None and last and int(stated[1]) < int(stated[2]) <= len(text):
        return int(stated[1]), int(stated[2])
    number = evidence.get("call")
    found = _CALL.search(text_of(evidence.get("reason")))
    if not isinstance(number, int) and found is None:
        return None
    within = calls.get(number) if isinstance(number, int) else None
    if within is None:
        return None
    path = text_of(evidence.get("path"))
    tool = (within[0], _end_of_name(text, within[0]))
    if not path:
        return tool
    name = re.split(r"[.\[]", path.rpartition("[")[0] or path)[-1] or path
    at = _named(text, name, within[0], within[1])
    if at is None:
        return tool
    span = at, at + len(name)
    value = text_of(evidence.get("found"))
    separator = _NEXT.match(text, _quoted(text, span[1]))
    if value and separator is not None and text.startswith(value, separator.end()):
        return at, min(separator.end() + len(value), within[1])
    return span


def _named(text: str, name: str, start: int, end: int | None = None) -> int | None:
    """Where a whole name stands from ``start`` on."""
    if not name:
        return None
    found = re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])").search(text, start, len(text) if end is None else end)
    return None if found is None else found.start()


def _end_of_name(text: str, start: int) -> int:
    found = re.compile(r"[\w.-]+").match(text, start)
    return start if found is None else found.end()


def _quoted(text: str, place: int) -> int:
    return place + 1 if text[place : place + 1] in ('"', "'") else place
