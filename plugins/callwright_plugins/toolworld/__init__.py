"""The small world ``toolworld-mini-v1``: typed tools over seeded tables, and tasks that compose them."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME = "toolworld-mini-v1"


@hookimpl
def callwright_environments() -> Iterable[Lazy]:
    """Register the environment."""
    yield Lazy(
        NAME,
        "callwright_plugins.toolworld.environment:ToolWorld",
        summary="30 typed tools over seeded tables (context, restaurants, cars, weather, prices); microseconds a call",
    )


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """Register the corpus."""
    yield Lazy(
        NAME,
        "callwright_plugins.toolworld.corpus:ToolWorldCorpus",
        summary="Tasks of depth 0-6 in which every step changes the answer; held-out compositions; demonstrations",
        takes="callwright_plugins.toolworld.options:ToolWorldOptions",
    )
