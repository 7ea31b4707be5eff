"""Values in results of tools that are no JSON: those of NumPy and PyTorch become numbers, texts and lists of Python's,
and of anything else it is said what it is.

Neither library is imported: a value of theirs brings what is asked here.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

_LIBRARIES: Final = frozenset({"numpy", "torch"})
#: As many as a result may have at all: each counts 8 of ``callwright.environments.sizes.MOST_VALUE``.
_MOST_MEMBERS: Final = 1_000_000
#: The kinds of NumPy's types that are JSON: booleans, integers, floats, texts, objects. Dates are written as texts.
_KINDS: Final = frozenset("biufUTO")
#: The bytes of Python's ``float``.
_DOUBLE: Final = 8
_TORCH_NUMBERS: Final = ("torch.bool", "torch.int", "torch.uint", "torch.float", "torch.bfloat")


class TooManyNumbers(Exception):
    """An array is larger than a result may be; whoever called the tool that way is charged with it."""


def is_foreign(value: Any) -> bool:
    """Whether a value is one of NumPy or PyTorch."""
    return type(value).__module__.partition(".")[0] in _LIBRARIES


def in_python(value: Any) -> Any:
    """The same with values of NumPy and PyTorch made Python's, wherever they stand in lists, dictionaries and sets.

    Raises :class:`TypeError` for those that are no numbers, texts or dates, and :class:`TooManyNumbers` for more than
    any result may have.
    """
    kind = type(value)
    if kind is dict:
        return {in_python(key): in_python(inner) for key, inner in value.items()}
    if kind in (list, tuple, set, frozenset):
        return kind(in_python(inner) for inner in value)
    return _converted(value) if is_foreign(value) else value


def no_json(value: Any) -> TypeError:
    """The error about a value of which no JSON is made. It is a bug of the tool that returns it."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    dtype = getattr(value, "dtype", None) if is_foreign(value) else None
    of = f" of {dtype}" if dtype is not None else ""
    return TypeError(
        f"the result is, or holds, a value of the type {name}{of}, which is no JSON; return numbers, texts, lists and "
        "dictionaries, dates, dataclasses or pydantic models"
    )


def refuse_infinite(value: Any) -> bool:
    """Raise :class:`ValueError` for a JSON value that holds NaN or an infinity; whether it holds ``None``.

    It is a bug of the tool that returns it: JSON has no such numbers, and null in their place would hide it.
    """
    found = False
    left = [[value]]
    while left:
        for one in left.pop():
            kind = type(one)
            if kind is float:
                if not isfinite(one):
                    raise infinite(one)
            elif kind is dict:
                left.append([*one.values()])
            elif kind is list or kind is tuple:
                left.append(one)
            elif one is None:
                found = True
    return found


def infinite(number: float) -> ValueError:
    """The error about a number that JSON does not have."""
    return ValueError(
        f"the result is, or holds, {number}, which is no JSON; return None where there is no number, or raise "
        "callwright.ToolError where the call has none"
    )


def _converted(value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    if dtype is None or not callable(getattr(value, "tolist", None)):
        raise no_json(value)
    count = value.size if not callable(getattr(value, "size", None)) else value.numel()
    if count > _MOST_MEMBERS:
        raise TooManyNumbers(f"the result holds {count:,} numbers; the most are {_MOST_MEMBERS:,}")
    kind = getattr(dtype, "kind", None)
    if kind is None:
        if not str(dtype).startswith(_TORCH_NUMBERS):
            raise no_json(value)
        return value.tolist()
    if kind == "M":  # as a number it would be nanoseconds or days, whatever its unit is
        return value.astype(str).tolist()
    if kind not in _KINDS:
        raise no_json(value)
    if kind == "f" and dtype.itemsize > _DOUBLE:  # Python has no such numbers, and they make none of themselves
        value = value.astype("float64")
    made = value.tolist()
    return in_python(made) if kind == "O" else made
