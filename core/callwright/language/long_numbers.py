"""Long numbers: integers of any length as text and back.

Python refuses to turn more than 4,300 digits into an ``int`` or back, because its way takes quadratic time. A model
cannot write such a number (every parser bounds it), but a tool can return one, and then it is a value like any other.
:mod:`decimal` converts them in less than quadratic time; the bound of sizes (:mod:`callwright.environments.sizes`)
says how long they get.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

#: Bits of an integer that Python surely writes: those of 4,300 digits are 14,284.
_WRITABLE_BITS: Final = 14_000
_SPACED: Final = (", ", ": ")


def digits_of(number: int) -> str:
    """The decimal digits of an integer, however many."""
    return str(number) if number.bit_length() < _WRITABLE_BITS else format(Decimal(number), "f")


def integer_of(digits: str) -> int:
    """The integer of decimal digits, however many: ``parse_int`` for :func:`json.loads` of what this program wrote."""
    return int(digits) if len(digits) < 4300 else int(Decimal(digits))


def json_value(text: str | bytes) -> Any:
    """:func:`json.loads` of what :func:`json_text` wrote, long integers included. Raises what it raises."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=integer_of)


def json_text(value: Any, *, separators: tuple[str, str] | None = None, **options: Any) -> str:
    """:func:`json.dumps` of a value that may hold long integers; their digits are written out.

    Raises what :func:`json.dumps` raises otherwise.
    """
    try:
        return json.dumps(value, separators=separators, **options)
    except ValueError:
        if not has_long_number(value):
            raise
        return _written(value, separators or _SPACED, options)


def json_line(value: Any) -> bytes:
    """A JSON value as a line of UTF-8 with its line end: what a JSONL file holds.

    Raises what :func:`json_text` raises, and :class:`ValueError` for NaN and infinities.
    """
    try:
        return (json_text(value, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which a sampler may return: only its escape can be written
        return (json_text(value, allow_nan=False) + "\n").encode("ascii")


def has_long_number(value: Any) -> bool:
    """Whether an integer that Python does not write stands somewhere in a JSON value; False for a circular one."""
    seen: set[int] = set()
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, int):
            if one.bit_length() >= _WRITABLE_BITS:
                return True
        elif isinstance(one, Mapping | list | tuple) and id(one) not in seen:
            seen.add(id(one))
            left += one.values() if isinstance(one, Mapping) else one
    return False


def shortened_numbers(value: Any) -> Any:
    """The value with long integers as texts that say how long they are, for messages."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() >= _WRITABLE_BITS:
        text = digits_of(value)
        return f"{text[:20]}… ({len(text.lstrip('-')):,} digits)"
    if isinstance(value, dict):
        return {key: shortened_numbers(inner) for key, inner in value.items()}
    return [shortened_numbers(inner) for inner in value] if isinstance(value, list | tuple) else value


def _written(value: Any, separators: tuple[str, str], options: Mapping[str, Any]) -> str:
    comma, colon = separators
    if isinstance(value, int) and not isinstance(value, bool):
        return digits_of(value)
    if isinstance(value, dict):
        pairs = sorted(value.items()) if options.get("sort_keys") else value.items()
        members = []
        for key, inner in pairs:
            name = json.dumps({key: None}, **options)[1:].rsplit(":", 1)[0]  # as json writes keys that are no texts
            members.append(f"{name}{colon}{_written(inner, separators, options)}")
        return "{" + comma.join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + comma.join([_written(inner, separators, options) for inner in value]) + "]"
    return json.dumps(value, separators=separators, **options)
