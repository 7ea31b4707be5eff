"""Closed sets: what a filter may be, told to whoever filtered by something else."""

from __future__ import annotations

from typing import Any

from callwright.environments.world import World


def none_such(world: World, kind: type[Any], field: str, value: str) -> str:
    """A sentence with the values that there are, if no row of a table has ``value`` in ``field``, whatever its case.

    Empty if one has it, or if ``value`` is empty.
    """
    wanted = value.strip().casefold()
    if not wanted:
        return ""
    known = {str(getattr(row, field)).casefold(): str(getattr(row, field)) for row in world.rows(kind)}
    if wanted in known:
        return ""
    return f"there is no {field} {value[:40]!r}; there are {', '.join(known[key] for key in sorted(known) if key)}"
