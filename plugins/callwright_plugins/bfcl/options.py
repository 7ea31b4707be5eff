"""The options of BFCL's benchmarks."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from callwright.options import OptionTable


class BfclOptions(OptionTable):
    """Options of ``benchmark = "bfcl-v3"`` and ``"bfcl-v4"``."""

    version: str | None = Field(default=None, description="The release; the newest known if left out.")
    data: str | Path | None = Field(default=None, description="A folder with BFCL's files.")
    package: str | Path | None = Field(default=None, description="The wheel bfcl-eval, where its checker is wanted.")


class BfclMultiTurnOptions(BfclOptions):
    """Options of ``benchmark = "bfcl-multi-turn"``."""

    category: str | None = Field(default=None, description="One of the four categories alone.")
