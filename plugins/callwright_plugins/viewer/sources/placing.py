"""Where in a text a piece of evidence belongs: at the call, at the argument, at the value that it is about.

What is not found has no place, and the evidence stands beside the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.walk.calls.placing import Span, argument_span, end_of_name
from callwright.walk.calls.placing import call_spans as call_spans
from callwright_plugins.viewer.sources.entries import text_of

_CALL: Final = re.compile(r"call (\d+) ([A-Za-z_][\w.-]*)")
#: How parsers say where a mistake stands.
_CHARACTERS: Final = re.compile(r"\(characters (\d+)-(\d+)\)")


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
    span = argument_span(text, path, text_of(evidence.get("found")), within) if path else None
    return span or (within[0], end_of_name(text, within[0]))
