"""Sizes of values: how much of a tool's results and state is taken in, so that no program can make them grow for ever.

A program may hand on twice what it got, call after call: thirty calls of a tool that joins two lists make a billion
members. The text of a model is bounded (:class:`callwright.ParseLimits`), and so is what tools make of it.

The size of a value is about the length of its JSON text: 8 for every value, and for texts, keys and long integers
their characters on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, Final

from attrs import frozen

from callwright.tools.spec import ToolError

#: The largest result of one call, and the most that references may put into the arguments of one. The largest of the
#: shipped worlds and recordings is below 2 MB.
MOST_VALUE: Final = 8_000_000
#: The most that the results of one session may come to, where they are copied (:attr:`Environment.pure` is False).
MOST_RESULTS: Final = 64_000_000
#: The largest state of a session of functions, which is copied before each call that may change it.
MOST_STATE: Final = 16_000_000

_EACH: Final = 8
#: What is small whatever it is.
_SMALL: Final = frozenset({type(None), bool, float})
_PLAIN_BITS: Final = 64
_PLAIN: Final = 1 << _PLAIN_BITS


@frozen
class Bounds:
    """How large things may become: each bound in the sizes of this module, at least 0."""

    value: int = MOST_VALUE
    results: int = MOST_RESULTS
    state: int = MOST_STATE


_bounds = Bounds()


def bounds() -> Bounds:
    """The bounds that hold in this process."""
    return _bounds


@contextmanager
def held_to(other: Bounds) -> Iterator[None]:
    """Have other bounds hold in this process, for all of its threads: those who check components make them small."""
    global _bounds
    before, _bounds = _bounds, other
    try:
        yield
    finally:
        _bounds = before


class TooLarge(ToolError):
    """A result or a state that is over its bound; whoever called the tool that way is charged with it."""


def size_of(value: Any, most: int) -> int:
    """The size of a JSON value; of one over ``most`` a number above it, found without looking at the rest.

    What stands in a value several times counts as often.
    """
    kind = type(value)
    if kind in _SMALL:
        return _EACH
    if kind is str:
        return _EACH + len(value)
    if kind is int:
        return _EACH + _long(value)
    size = _EACH
    left = [value]
    while left:  # what holds others; members that hold none are counted on the spot
        one = left.pop()
        kind = type(one)
        if kind is dict:
            size += 2 * _EACH * len(one)
            if size > most:
                return size
            for key in one:
                if type(key) is str:
                    size += len(key)
            members = one.values()
        elif kind is list or kind is tuple:
            size += _EACH * len(one)
            if size > most:
                return size
            members = one
        else:
            size += _of_another(one)
            members = ()
        for member in members:
            kind = type(member)
            if kind is str:
                size += len(member)
            elif kind is int:
                if not -_PLAIN < member < _PLAIN:
                    size += _long(member)
            elif kind not in _SMALL:
                left.append(member)
        if size > most:
            return size
    return size


def _long(value: int) -> int:
    bits = value.bit_length()
    return 0 if bits <= _PLAIN_BITS else bits * 3 // 10  # decimal digits: log10(2) = 0.301


def _of_another(value: Any) -> int:
    """What a value of a derived or foreign type holds."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    return _long(value) if isinstance(value, int) else 0


def check_result(tool: str, value: Any) -> int:
    """The size of a result. Raises :class:`TooLarge` (``result_too_large``) for one over :attr:`Bounds.value`."""
    most = _bounds.value
    size = size_of(value, most)
    if size > most:
        raise TooLarge("result_too_large", f"the result of {tool} is larger than {most:,} characters")
    return size


def check_state(state: Any) -> None:
    """Raises :class:`TooLarge` (``state_too_large``) for a state over :attr:`Bounds.state`; see :func:`held_by`."""
    if held_by(state, _bounds.state) > _bounds.state:
        raise state_too_large()


def state_too_large() -> TooLarge:
    """The error about a state that is over its bound."""
    return TooLarge("state_too_large", f"the session would hold more than {_bounds.state:,} characters")


def held_by(state: Any, most: int) -> int:
    """The size of everything that an object holds, each object once; of more than ``most`` a number above it."""
    if state is None:
        return 0
    size = 0
    seen: set[int] = set()
    left = [state]
    while left and size <= most:
        one = left.pop()
        size += _EACH
        kind = type(one)
        if kind in _SMALL:
            continue
        if isinstance(one, str | bytes | bytearray | int):
            size += _of_another(one)
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            members: list[Any] = [*one.keys(), *one.values()] if size + _EACH * len(one) <= most else []
            size += 0 if members else _EACH * len(one)
        elif isinstance(one, list | tuple | Set):
            members = [*one] if size + _EACH * len(one) <= most else []
            size += 0 if members else _EACH * len(one)
        elif isinstance(one, Mapping):
            members = [*one.values()]
        else:
            members = _fields(one)
        left += members
    return size


def _fields(value: Any) -> list[Any]:
    """What an object holds in its own attributes. Modules, classes and functions are nobody's state."""
    if isinstance(value, type) or callable(value):
        return []
    found = [*getattr(value, "__dict__", {}).values()]
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        found += [getattr(value, name) for name in names if isinstance(name, str) and hasattr(value, name)]
    return found
