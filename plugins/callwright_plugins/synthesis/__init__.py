"""Grounded synthesis: what the tools of an environment can do and need, proven by calls, and words for tasks."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.synthesis"


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright synthesize check``, ``explore`` and ``graph``."""
    yield Lazy("synthesize check", f"{_HERE}.check_command:check_", "all gates on the tasks of a file")
    yield Lazy(
        "synthesize explore", f"{_HERE}.explore_command:explore_", "what the tools of an environment can be made to do"
    )
    yield Lazy("synthesize graph", f"{_HERE}.graph_command:graph_", "which tools need one another, proven by calls")


@hookimpl
def callwright_synthesizers() -> Iterable[Lazy]:
    """Register the synthesizer ``grounded``."""
    yield Lazy(
        "grounded", f"{_HERE}.grounded:Grounded", summary="conversations about what an environment can do, executed"
    )
