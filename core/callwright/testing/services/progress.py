"""Progress: whoever runs checks in a process that may be lost with a tool is told what they are at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from callwright.testing.expectations import shown

#: What is begun: a check, a call of a tool inside of one, or what goes on after such a call.
Step = Literal["check", "call", "answered"]
Listener = Callable[[Step, str], object]

#: Of all threads: some checks call from several.
_listeners: Final[list[Listener]] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of every step of the checks in this block, before it is made."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def begin_check(name: str) -> None:
    """Say that a check is begun."""
    for listener in _listeners:
        listener("check", name)


@contextmanager
def calling(tool: str, arguments: dict[str, Any]) -> Iterator[None]:
    """Say that the call in this block is made, and when it has come to something."""
    if not _listeners:
        yield
        return
    words = f"{tool}({shown(arguments)})"
    for listener in _listeners:
        listener("call", words)
    try:
        yield
    finally:
        for listener in _listeners:
            listener("answered", words)
