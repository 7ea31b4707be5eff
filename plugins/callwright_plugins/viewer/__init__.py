"""The viewer: every rollout of runs, evaluations, scored files, syntheses and traces, while they grow."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright view``."""
    yield Lazy(
        "view",
        "callwright_plugins.viewer.command:view",
        "look at every rollout: live, searchable, comparable, in the browser or in the terminal",
    )
