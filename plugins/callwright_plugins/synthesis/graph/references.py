"""References: which arguments of a path's calls are values that its earlier calls told."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from callwright.language.program import Call, Path
from callwright_plugins.synthesis.exploration.values import Key, key_of

_DEEPEST = 12
_MEMBERS = 60
#: Results whose values are remembered.
_REMEMBERED = 1024


def located(value: Any, path: Path = ()) -> list[tuple[Path, Key]]:
    """Every text and number in a value with the path to it."""
    found: list[tuple[Path, Key]] = []
    _locate(value, path, found)
    return found


def said_to(call: Call) -> list[tuple[Path, Key]]:
    """What is located in the arguments of a call; looked for once, because paths share their calls."""
    known: list[tuple[Path, Key]] | None = call.__dict__.get("_said")
    if known is None:
        known = call.__dict__["_said"] = located(dict(call.arguments))
    return known


class Locating:
    """Locates what results tell, and remembers the last ones: most are looked at again and again."""

    def __init__(self) -> None:
        #: By the identity of a result: the result, which keeps it from being another's, and what is located in it.
        self._known: OrderedDict[int, tuple[Any, list[tuple[Path, Key]]]] = OrderedDict()

    def told_by(self, result: Any) -> list[tuple[Path, Key]]:
        """What is located in a result, which nobody changes any more."""
        known = self._known.get(id(result))
        if known is not None:
            self._known.move_to_end(id(result))
            return known[1]
        found = located(result)
        self._known[id(result)] = result, found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found


def _locate(value: Any, path: Path, found: list[tuple[Path, Key]]) -> None:
    kind = type(value)  # results are plain JSON nearly always, and millions of members are looked at
    if kind is str:
        if value:
            found.append((path, ("string", value)))
    elif kind is dict or (kind is not list and isinstance(value, Mapping)):
        if len(path) < _DEEPEST:
            for name, inner in value.items():
                _locate(inner, (*path, name), found)
    elif isinstance(value, list):
        if len(path) < _DEEPEST:
            for number, inner in enumerate(value[:_MEMBERS]):
                _locate(inner, (*path, number), found)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
        found.append((path, key_of(value)))


@lru_cache(maxsize=1 << 16)
def place_name(path: Path) -> str:
    """A path as people read it, with ``[]`` for any place in a list: ``items[].order_id``."""
    name = ""
    for part in path:
        name += "[]" if isinstance(part, int) else f".{part}" if name else str(part)
    return name


def value_at(value: Any, path: Path) -> Any:
    """The value at a path; ``None`` where there is none."""
    for part in path:
        if type(part) is str:
            if type(value) is not dict and not isinstance(value, Mapping):
                return None
            value = value.get(part)
        elif isinstance(part, int) and isinstance(value, list) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def replaced(value: Any, path: Path, new: Any) -> Any:
    """A copy of a value in which another stands at a path."""
    if not path:
        return new
    if isinstance(value, Mapping):
        return {name: replaced(inner, path[1:], new) if name == path[0] else inner for name, inner in value.items()}
    return [replaced(inner, path[1:], new) if number == path[0] else inner for number, inner in enumerate(value)]


#: Where in the arguments of the n-th call which value of which earlier call's result stands.
Bound = list[dict[Path, tuple[int, Path]]]


def bindings(
    calls: Sequence[Call],
    results: Sequence[Any],
    told_by: Callable[[Any], list[tuple[Path, Key]]] = located,
) -> Bound:
    """The arguments of each call that an earlier one told and was not itself given."""
    told: dict[Key, tuple[int, Path]] = {}
    found: Bound = []
    for number, call in enumerate(calls):
        given = dict(said_to(call))
        found.append({path: told[key] for path, key in given.items() if key in told and _is_named(key)})
        if number < len(results):
            asked = set(given.values())
            for path, key in told_by(results[number]):
                if key not in asked and (key not in told or _is_named(key)):
                    told[key] = (number, path)
    return found


def _is_named(key: Key) -> bool:
    """Texts are told; that two numbers are equal may be chance, so numbers are left as they are."""
    return key[0] == "string"
