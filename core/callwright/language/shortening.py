"""Long texts in messages: how much of them is shown."""

from __future__ import annotations

import json
from typing import Any, Final

from callwright.language.long_numbers import json_text

#: Made once: :func:`json.dumps` makes one for each value that it is asked to write in any but its own way.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, default=str)


def shortened(text: str, longest: int, *, keep: int | None = None) -> str:
    """A text of at most ``longest`` characters. Of a longer one the first ``keep`` are shown (``longest - 1``)."""
    return text if len(text) <= longest else text[: longest - 1 if keep is None else keep] + "…"


def excerpt(text: str, longest: int = 40) -> str:
    """Model text for a message: quoted, with control characters escaped, and cut."""
    return repr(text) if len(text) <= longest else repr(text[:longest]) + "…"


def brief(value: Any, longest: int, *, keep: int | None = None) -> str:
    """A JSON value in evidence: of a list or object with more than three members only their number."""
    if isinstance(value, dict | list) and len(value) > 3:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    try:
        text = _ENCODER.encode(value)
    except ValueError:  # an integer that Python does not write
        text = json_text(value, ensure_ascii=False, default=str)
    return shortened(text, longest, keep=keep)
