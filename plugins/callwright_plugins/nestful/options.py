"""The options of the benchmark ``nestful``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from callwright.options import OptionTable


class NestfulOptions(OptionTable):
    """Options of ``benchmark = "nestful"``."""

    data: str | Path = Field(description="The folder with the samples.")
    package: str | Path | None = Field(
        default=None, description="The folder of the functions of version 2; recorded answers are looked up without it."
    )
    version: str | None = Field(default=None, description="The release; the newest known if left out.")
    interpreter: str | None = Field(default=None, description="Another Python than this one, for these functions.")
