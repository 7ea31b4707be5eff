"""Grounded synthesis: what the tools of an environment can do and need, proven by calls, and words for tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

if TYPE_CHECKING:
    from pathlib import Path

_HERE = "callwright_plugins.synthesis"


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """The commands beside ``callwright synthesize RECIPE``."""
    yield Lazy("synthesize check", f"{_HERE}.check_command:check_", "all gates on the tasks of a file")
    yield Lazy(
        "synthesize compare", f"{_HERE}.compare_command:compare_", "the same plans in the words of several teachers"
    )
    yield Lazy(
        "synthesize difficulty",
        f"{_HERE}.difficulty_command:difficulty_",
        "how often a solver solves each task; harder ones in the place of those that are too easy",
    )
    yield Lazy(
        "synthesize explore", f"{_HERE}.explore_command:explore_", "what the tools of an environment can be made to do"
    )
    yield Lazy("synthesize graph", f"{_HERE}.graph_command:graph_", "which tools need one another, proven by calls")
    yield Lazy(
        "synthesize inspect", f"{_HERE}.inspect_command:inspect_", "look at tasks, and keep or drop them by a key"
    )
    yield Lazy(
        "synthesize mcp",
        f"{_HERE}.mcp_command:mcp_",
        "make tasks for an MCP server, and a recipe to train",
        extra="mcp",
    )
    yield Lazy("synthesize report", f"{_HERE}.report_command:report_", "write the page of a finished synthesis")


@hookimpl
def callwright_synthesis_finished(folder: Path) -> None:
    """Write ``report.html`` into the folder."""
    from callwright_plugins.synthesis.report.page import write_page

    write_page(folder)


@hookimpl
def callwright_synthesizers() -> Iterable[Lazy]:
    """Register the synthesizer ``grounded``."""
    yield Lazy(
        "grounded",
        f"{_HERE}.grounded:Grounded",
        summary="conversations about what an environment can do, executed",
        takes=f"{_HERE}.options:GroundedOptions",
    )
