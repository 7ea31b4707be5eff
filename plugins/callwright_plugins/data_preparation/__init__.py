"""Data preparation: published tool-use data of the user's own as the rows that ToolRL trains on."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright prepare``."""
    yield Lazy(
        "prepare",
        "callwright_plugins.data_preparation.command:prepare",
        "make training rows of ToolACE, Hammer and xLAM files",
    )
