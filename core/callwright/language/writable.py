"""What no form may write: checks that every renderer makes before it writes a program."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from callwright.errors import CannotExpress
from callwright.language.parser import ParseLimits
from callwright.language.program import Program, Reference
from callwright.language.shortening import excerpt

#: Most digits of a number that a parser reads; converting longer ones takes time that is not linear.
LONGEST_NUMBER: Final = 4300
_LARGEST_INTEGER: Final = 10**LONGEST_NUMBER - 1
#: Largest id of a call; references are bounded alike.
LARGEST_ID: Final = 999_999_999
#: Half of a surrogate pair is no character: it cannot be encoded, so nothing after the parser could store or check it.
SURROGATE: Final = re.compile("[\ud800-\udfff]")

#: How a form writes the ids of calls: as numbers, or by the position in the list.
Numbering = Literal["ascending", "positions"]
#: How a form writes references: as strings of the reference form, as elements of their own, or not at all.
References = Literal["strings", "elements", "none"]


def check_program(program: Program, limits: ParseLimits, numbering: Numbering, references: References) -> None:
    """Raise :class:`callwright.errors.CannotExpress` unless the program is within the limits and made of JSON values.

    ``ascending``: ids ascend from call to call, between 0 and :data:`LARGEST_ID`. ``positions``: the ids are 0, 1, 2 ….
    A form whose references are ``strings`` cannot write a literal string that looks like one.
    """
    if len(program.calls) > limits.calls:
        raise CannotExpress(f"{len(program.calls)} calls are more than the limit of {limits.calls}")
    previous = -1
    for position, call in enumerate(program.calls):
        if numbering == "positions" and call.id != position:
            raise CannotExpress(f"call {position} has the id {call.id}; this form numbers calls 0, 1, 2 …")
        if not previous < call.id <= LARGEST_ID:
            raise CannotExpress(f"the id {call.id} does not ascend, or is larger than {LARGEST_ID}")
        previous = call.id
        if not call.tool:
            raise CannotExpress(f"call {call.id}: the name of its tool is empty")
        _check_text(call.tool, f"call {call.id}: its name")
        _check(call.arguments, f"call {call.id}: its arguments", 1, limits.nesting, references)


def _check(value: Any, where: str, level: int, nesting: int, references: References) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, Reference):
        if references == "none":
            raise CannotExpress(f"{where} refer to an earlier result, for which this form has no notation")
        if Reference.parse(str(value)) != value:
            raise CannotExpress(f"{where} hold a reference whose path cannot be written: {excerpt(str(value))}")
        _check_text(str(value), where)
    elif isinstance(value, str):
        _check_text(value, where)
        if references == "strings" and Reference.parse(value) is not None:
            raise CannotExpress(f"{where} hold the literal text {excerpt(value)}, which would be read as a reference")
    elif isinstance(value, int):
        if not -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER:
            raise CannotExpress(f"{where} hold an integer of more than {LONGEST_NUMBER} digits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise CannotExpress(f"{where} hold {value!r}, which is not a number that JSON knows")
    elif isinstance(value, list | Mapping):
        if level > nesting:
            raise CannotExpress(f"{where} are nested deeper than the limit of {nesting}")
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise CannotExpress(f"{where} have a key that is not text: {key!r}")
                _check_text(key, where)
                _check(inner, where, level + 1, nesting, references)
        else:
            for inner in value:
                _check(inner, where, level + 1, nesting, references)
    else:
        raise CannotExpress(f"{where} hold a value of type {type(value).__name__}, which is not JSON")


def _check_text(text: str, where: str) -> None:
    if not text.isascii() and SURROGATE.search(text):
        raise CannotExpress(f"{where} hold half of a surrogate pair, which is not a character")
