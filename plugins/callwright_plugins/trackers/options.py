"""What options of trackers are: what is wrong with one is said by its name."""

from __future__ import annotations

from typing import Any

from callwright.errors import UsageError


def _checked(fits: bool, attribute: Any, value: object, what: str) -> None:
    if not fits:
        raise UsageError(f"{attribute.name!r} is {what}, not {value!r:.60}")


def text(_: object, attribute: Any, value: object) -> None:
    """A text that is not empty. Raises :class:`callwright.UsageError`."""
    _checked(isinstance(value, str) and value != "", attribute, value, "a text")


def maybe_text(_: object, attribute: Any, value: object) -> None:
    """A text, or nothing. Raises :class:`callwright.UsageError`."""
    if value is not None:
        text(_, attribute, value)


def texts(_: object, attribute: Any, value: object) -> None:
    """A list of texts. Raises :class:`callwright.UsageError`."""
    fits = isinstance(value, list) and all(isinstance(one, str) for one in value)
    _checked(fits, attribute, value, "a list of texts")


def truth(_: object, attribute: Any, value: object) -> None:
    """True or false. Raises :class:`callwright.UsageError`."""
    _checked(isinstance(value, bool), attribute, value, "true or false")
