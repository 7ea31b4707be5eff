"""The options of the benchmark ``api-bank``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from callwright.options import OptionTable


class ApiBankOptions(OptionTable):
    """Options of ``benchmark = "api-bank"``."""

    data: str | Path = Field(description="The folder with level-1-api_processed.json and the two others.")
    version: str | None = Field(default=None, description="The release; the newest known if left out.")
