"""Pickling: values that travel to other processes as how they were made, and why some cannot travel.

A task goes to a worker many times, and its environment with it. An environment or a corpus therefore travels as the
call that makes it again, in a few hundred bytes: :func:`made_by`, or :class:`ByName` for what a registry made. Within
a process there is one object for one such call, as long as somebody uses it, so that what it has read, built and
compiled is shared there too.

To unpickle is to run what the pickle names. Do it only with pickles that this program, or one like it, has written.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final, Self

import attrs

from callwright.errors import UsageError

#: What ``__reduce__`` returns: a function of a module, and its arguments.
Made = tuple[Callable[..., Any], tuple[Any, ...]]
_ABSENT: Final = object()

#: What is alive in this process, by the call that makes it.
_LIVING: Final[weakref.WeakValueDictionary[Made, Any]] = weakref.WeakValueDictionary()
#: What was made again last: a worker that gets one task after another keeps their environment between them.
_RECENT: Final[deque[Any]] = deque(maxlen=16)
#: By ``id``: a value that a registry made, what tells how, and its registered name with the options that were given.
_REGISTERED: Final[dict[int, tuple[weakref.ref[Any], Callable[[], Made | None], tuple[str, Mapping[str, Any]]]]] = {}


def made_by(value: Any, make: Callable[..., Any], *arguments: Any) -> Made:
    """What ``__reduce__`` of a value returns that ``make(*arguments)`` makes again.

    ``make`` is a class or function of a module. The arguments are hashable, can be pickled, and say everything.
    """
    _LIVING.setdefault((make, arguments), value)
    return made_again, (make, arguments)


def made_again(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The object of this process for a call that :func:`made_by` wrote; made now if there is none."""
    found = _LIVING.get((make, arguments))
    if found is None:
        found = _LIVING[make, arguments] = make(*arguments)
        _RECENT.append(found)
    return found


def remember(value: Any, description: Callable[[], Made | None], name: str, options: Mapping[str, Any]) -> None:
    """A registry made this value, which is ``name`` there, with ``options``.

    ``description`` tells how, or ``None`` if no other process could do the same.
    """
    known, key = _REGISTERED, id(value)  # no name of this module is there any more when the interpreter ends
    try:
        reference = weakref.ref(value, lambda _: known.pop(key, None))
    except TypeError:  # of a class that allows no weak references: it is pickled by its parts
        return
    known[key] = reference, description, (name, options)


def registered_as(value: Any) -> tuple[str, Mapping[str, Any]] | None:
    """The name and the options by which a registry made this value; ``None`` if none did."""
    found = _REGISTERED.get(id(value))
    return None if found is None else found[2]


class ByName:
    """A value that travels as its registered name and options where a registry made it, else as its parts.

    It holds nothing that use changes, so it is never copied: ``copy.deepcopy`` gives the value itself.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        _, description, _ = _REGISTERED.get(id(self), (None, None, None))
        made = description() if description is not None else None
        return super().__reduce_ex__(protocol) if made is None else made_by(self, made[0], *made[1])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of an attrs value that has a ``__dict__``, without what it remembers to save time."""
    return {attribute.name: getattr(value, attribute.name) for attribute in attrs.fields(type(value))}


def named(module: str, qualified_name: str) -> Any:
    """What goes by this name in a module, which is imported; ``None`` if nothing does."""
    try:
        found = functools.reduce(_member, qualified_name.split("."), importlib.import_module(module))
    except ImportError:
        return None
    return None if found is _ABSENT else found


def _member(holder: Any, name: str) -> Any:
    return getattr(holder, name, _ABSENT)


def need_name(function: Any, what: str) -> None:
    """Raise :class:`callwright.UsageError` for a function that another process could not find by its name.

    Whatever is not a plain function is left to ``pickle``.
    """
    if type(function) is FunctionType and named(function.__module__, function.__qualname__) is not function:
        raise cannot_be_found(function, what)


def cannot_be_found(function: Any, what: str) -> UsageError:
    """The error for a function that another process could not find."""
    nested = "<locals>" in function.__qualname__ or "<lambda>" in function.__qualname__
    why = "it is made inside of another function" if nested else "that name stands for something else there"
    return UsageError(
        f"{what} cannot be sent to another process: it is the function {function.__qualname__!r} of the module "
        f"{function.__module__!r}, which no process can find by that name, because {why}. Define it with def at the "
        "top level of a module that both processes can import"
    )
