"""Values with names in them: parsed once, then written with the names replaced by whatever stands for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import Any, Final, TypeAlias

from attrs import frozen

#: What may be a name within a text: ``O00031``, ``PAY-21``.
WORD: Final = re.compile(r"\w+(?:-\w+)*")
#: What stands for a name in a written value.
Naming: TypeAlias = Callable[[str], Any]


@frozen
class Name:
    """A name that the session chose."""

    name: str


@frozen
class Several:
    """Values in their order, or (not ``ordered``) in whichever."""

    values: tuple[Any, ...]
    ordered: bool = True


#: A parsed value: a name, several values, or the text of anything else.
Parsed: TypeAlias = Any


def parsed(value: Any, names: Set[str]) -> Parsed:
    """A JSON value with the names in it found: a text that is one, or words of a text."""
    if isinstance(value, str):
        return _text(value, names)
    if isinstance(value, list):
        return Several(tuple(parsed(inner, names) for inner in value))
    if isinstance(value, Mapping):
        if value.keys() == {"unordered"} and isinstance(value["unordered"], list):
            return Several(tuple(parsed(inner, names) for inner in value["unordered"]), ordered=False)
        return Several(tuple(Several((repr(key), parsed(value[key], names))) for key in sorted(value, key=repr)))
    if type(value) is float and value.is_integer():  # 1.0 is 1, as it is in states that are not of rows
        return repr(int(value))
    return repr(value)


def _text(value: str, names: Set[str]) -> Parsed:
    if value in names:
        return Name(value)
    if not names:
        return repr(value)
    parts: list[Any] = []
    end = 0
    for found in WORD.finditer(value):
        if found.group() in names:
            parts += [repr(value[end : found.start()]), Name(found.group())]
            end = found.end()
    return Several((*parts, repr(value[end:]))) if parts else repr(value)


def written(value: Parsed, naming: Naming) -> Any:
    """The value with names replaced: equal for values that are equal under the naming, and hashable."""
    if type(value) is Name:
        return (naming(value.name),)
    if type(value) is Several:
        inner = [written(one, naming) for one in value.values]
        return tuple(inner) if value.ordered else ("unordered", *sorted(inner, key=repr))
    return value


def names_in(value: Parsed) -> set[str]:
    """Every name in a value."""
    if type(value) is Name:
        return {value.name}
    if type(value) is Several:
        return set().union(*map(names_in, value.values))
    return set()
