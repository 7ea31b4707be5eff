"""The options of the benchmark ``t-eval``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class TEvalOptions(OptionTable):
    """Options of ``benchmark = "t-eval"``."""

    data: str | Path = Field(description="The folder with the files of a release; some of them are enough.")
    version: str | None = Field(
        default=None, description="The layout; the first of which the folder has files if left out."
    )
    embedder: Any = Field(
        default="sentence-transformers",
        description="What compares texts: sentence-transformers (official), trigrams (without weights), or an object.",
    )
    embedder_model: str | None = Field(default=None, description="Its model: a name or a folder.")
