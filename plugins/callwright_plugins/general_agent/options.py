"""The options of the corpus ``general-agent``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from callwright.options import OptionTable
from callwright.registration import Reach


class FolderOptions(OptionTable):
    """Which tasks of a folder. Bad ones raise :class:`callwright.UsageError`."""

    data: str | Path = Field(description="The folder with a folder for each task.")
    min_tier: int | None = Field(default=None, ge=0, description="The easiest tier.")
    max_tier: int | None = Field(default=None, ge=0, description="The hardest tier.")
    families: tuple[str, ...] = Field(
        default=(), description="Only tasks of these, the name without its tier; all if empty."
    )


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the corpus would run: a module of each task."""
    if options.get("data"):
        yield Reach("code", f"imports and runs tools.py of the tasks in {options['data']}", ("data",))
