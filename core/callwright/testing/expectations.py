"""What checks are made of: an expectation with a cause, and values shown in few words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import callwright
from callwright.language.program import plain


def expect(condition: bool, message: str) -> None:
    """Raise :class:`AssertionError` with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


@contextmanager
def never_raises(message: str | Callable[[], str]) -> Iterator[None]:
    """Turn an exception of the component into a failure of the check that says what was asked of it.

    ``message`` may be what makes it, for what is done so often that the making counts.
    """
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        asked = message if isinstance(message, str) else message()
        raise AssertionError(f"{asked} raised {type(error).__name__}: {error}") from error


def shown(value: Any, longest: int = 160) -> str:
    """A value for a message: its ``repr``, cut."""
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}… ({len(text)} characters)"


def snapshot(value: Any) -> str:
    """A JSON value, or what is near enough to one, as text; two snapshots differ if something inside was changed."""
    return json.dumps(plain(value), sort_keys=True, default=repr)


def expect_name(component: Any) -> None:
    """A component's name is what recipes, reports and error messages call it."""
    name = getattr(component, "name", None)
    expect(isinstance(name, str) and name != "", f"name must be a string that is not empty, but is {name!r}")


def expect_members(component: Any, protocol: Any) -> None:
    """The members of a protocol are there."""
    wanted = [name for name in dir(protocol) if not name.startswith("_") or name == "__getitem__"]
    missing = [name for name in wanted if not hasattr(component, name)]
    expect(not missing, f"{type(component).__name__} lacks {', '.join(missing)} of {_public_name(protocol)}")


def _public_name(protocol: Any) -> str:
    """Where people import it from: the package, or the room."""
    name = protocol.__name__
    return f"callwright.{name}" if name in dir(callwright) else f"{protocol.__module__.rpartition('.')[0]}.{name}"
