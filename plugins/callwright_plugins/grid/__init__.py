"""Grids: a recipe under several settings and seeds, with means, intervals and paired differences."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright grid``."""
    yield Lazy("grid", "callwright_plugins.grid.command:grid", "train by a recipe under several settings and seeds")
