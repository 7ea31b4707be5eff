"""Noise: what is left of the answer of a read-only tool when a part of it does not arrive.

Nothing is made up. A field that tells one thing from another (an id, where a page goes on) always arrives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, TypeAlias

_PAGE: Final = frozenset({"items", "total", "next_cursor"})
#: What arrives, and what is said of the rest.
Spoiled: TypeAlias = tuple[Any, str]


def without_a_field(value: Any, draw: Random, kept: Sequence[str] = ()) -> Spoiled | None:
    """The value without one of its fields, or a page whose items lack one; ``None`` where none can be missed.

    ``kept`` are fields that arrive all the same, beside ids.
    """
    items = _items(value)
    rows = [value] if items is None else items
    fields = {
        name
        for row in rows
        if isinstance(row, Mapping)
        for name, inner in row.items()
        if inner is not None and name not in kept and name not in _PAGE and name != "id" and not name.endswith("_id")
    }
    if not fields:
        return None
    lost = draw.choice(sorted(fields))
    said = f"the field {lost!r} did not arrive; call again for all of it"
    rows = [
        {name: inner for name, inner in row.items() if name != lost} if isinstance(row, dict) else row for row in rows
    ]
    return (rows[0] if items is None else _with_items(value, rows)), said


def half_of_it(value: Any) -> Spoiled | None:
    """The first half of a page or a list; ``None`` where it has not two items."""
    items = _items(value)
    if items is None or len(items) < 2:
        return None
    arrived = items[: len(items) // 2]
    said = f"only the first {len(arrived)} of {len(items)} items of this page arrived; call again for all of them"
    return _with_items(value, arrived), said


def _items(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        return list(value["items"])
    return None


def _with_items(value: Any, items: list[Any]) -> Any:
    return items if isinstance(value, list) else {**value, "items": items}
