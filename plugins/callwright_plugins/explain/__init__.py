"""``callwright explain``: one completion, the whole walk from task to reward, and where each point was lost."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright explain``."""
    yield Lazy(
        "explain",
        "callwright_plugins.explain.command:explain",
        "one completion, the whole walk, where each point was lost",
    )
