"""What the official program makes of a text that should be data: a Python literal, JSON, or JSON in single quotes."""

from __future__ import annotations

import ast
import json
import warnings
from threading import Lock
from typing import Any, Final

_JSON_BLOCK: Final = "```json"
#: The filters of warnings belong to the whole process, and answers are judged in several threads.
_FILTERS: Final = Lock()


class Unreadable(ValueError):
    """A text that is none of these."""


def literal(text: str) -> Any:
    """The Python literal of a text. Nothing of it is run. Raises :class:`Unreadable`."""
    try:
        with _FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a text that a model wrote may hold '\\d'
            return ast.literal_eval(text)
    except Exception as error:  # also RecursionError and MemoryError, which are what deep nesting raises
        raise Unreadable(type(error).__name__) from error


def read_data(given: Any, opening: str = "", closing: str = "") -> Any:
    """The data that a text holds; what is no text is data already.

    What stands before the first ``opening`` and behind the last ``closing`` is left out, as is everything up to
    the first mark of a block of JSON. A text without ``opening`` is cut to its last character, one without ``closing``
    to nothing: so the official code does it. Raises :class:`Unreadable`.
    """
    if not isinstance(given, str):
        return given
    text = given
    if (at := text.find(_JSON_BLOCK)) >= 0:
        text = text[at + len(_JSON_BLOCK) :].strip("`")
    if opening:
        text = text[text.find(opening) :]
    if closing:
        text = text[: text.rfind(closing) + len(closing)]
    try:
        return literal(text)
    except Unreadable:
        pass
    for written in (text, text.replace("'", '"')):
        try:
            return json.loads(written)
        except Exception:  # nothing that a model writes may raise
            continue
    raise Unreadable("neither a literal nor JSON")


def as_text(value: Any) -> str:
    """``str(value)``. Raises :class:`Unreadable` for what has none, such as a value nested too deeply."""
    try:
        return str(value)
    except Exception as error:  # whole numbers of thousands of digits, too
        raise Unreadable(type(error).__name__) from error


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal as Python has it (``1 == True == 1.0``); never raises."""
    try:
        return bool(one == other)
    except RecursionError:
        return False
