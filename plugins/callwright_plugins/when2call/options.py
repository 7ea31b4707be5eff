"""The options of the benchmark ``when2call``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from callwright.options import OptionTable


class When2CallOptions(OptionTable):
    """Options of ``benchmark = "when2call"``."""

    data: str | Path = Field(description="The file of questions, or the folder that it is in.")
    version: str | None = Field(default=None, description="The release; the newest known if left out.")
