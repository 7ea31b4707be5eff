"""The options of the corpus ``toolrl-rows``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from callwright.options import OptionTable


class ToolRLRowsOptions(OptionTable):
    """Options of ``corpus = "toolrl-rows"``."""

    file: str | Path = Field(description="The rows, as ToolRL released them.")
    test_file: str | Path | None = Field(
        default=None, description="The rows of the split test; else those that say so, else every fiftieth."
    )
