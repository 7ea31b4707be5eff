"""Review: what became of a step, as one of five letters."""

from __future__ import annotations

from typing import Any, Final

from callwright_plugins.teval.literals import equal, read_data

#: Success, internal error, input error, irrelevant response, unable to accomplish.
LETTERS: Final = "ABCDE"
_KEY: Final = "is_finished"


def read_letter(answer: str) -> str | None:
    """The first character behind the first colon, or of the whole text where there is none; ``None`` if it is no
    letter of a choice.
    """
    chosen = answer[answer.find(":") + 1 :].strip()[:1]
    return chosen if chosen and chosen in LETTERS else None


def read_review(given: Any) -> dict[str, Any] | None:
    """A review in JSON, which says whether the step is done; ``None`` for another format."""
    try:
        said = read_data(given)[_KEY]
    except Exception:  # a text, a list, an object without it
        return None
    return {"review": said} if equal(said, True) or equal(said, False) else None
