"""Grounded synthesis: what the tools of an environment can do and need, proven by calls, and words for tasks."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.synthesis"


@hookimpl
def callwright_synthesizers() -> Iterable[Lazy]:
    """Register the pipeline."""
    yield Lazy(
        "grounded",
        f"{_HERE}.grounded:grounded",
        "conversations planned in an environment's live state, proven solvable there",
        extra="synthesis",
    )


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright synthesize explore`` and ``callwright synthesize graph``."""
    yield Lazy(
        "synthesize explore", f"{_HERE}.explore_command:explore_", "what the tools of an environment can be made to do"
    )
    yield Lazy("synthesize graph", f"{_HERE}.graph_command:graph_", "which tools need one another, proven by calls")
