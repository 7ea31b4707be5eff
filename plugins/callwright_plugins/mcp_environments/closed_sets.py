"""Closed sets: what a filter may be, told to whoever filtered by something else."""

from __future__ import annotations

from typing import Any

from callwright.environments.world import World


def none_such(world: World, kind: type[Any], field: str, value: str, what: str = "") -> str:
    """A sentence with the values that there are, if no row of a table has ``value`` in ``field``, whatever its case.

    Empty if one has it, or if ``value`` is empty. A field may hold several. ``what`` is what the sentence calls it,
    where that is not the name of the field.
    """
    wanted = value.strip().casefold()
    if not wanted:
        return ""
    held = (getattr(row, field) for row in world.rows(kind))
    values = {str(one) for value in held for one in (value if isinstance(value, tuple) else (value,))}
    known = {value.casefold(): value for value in sorted(values)}
    if wanted in known:
        return ""
    return (
        f"there is no {what or field} {value[:40]!r}; there are {', '.join(known[key] for key in sorted(known) if key)}"
    )
