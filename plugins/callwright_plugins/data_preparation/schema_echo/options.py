"""The options of the environment and the corpus ``schema-echo``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class SchemaEchoOptions(OptionTable):
    """Options of ``environment = "schema-echo"``."""

    schemas: str | Path | None = Field(default=None, description="A JSON file of definitions, plain or gzip.")
    required: str = Field(
        default="auto", description="Which parameters a call must have: listed, defaults (those without one), or auto."
    )
    definitions: str | Sequence[Mapping[str, Any]] | None = Field(
        default=None, description="The definitions themselves, in place of a file: a list, or the JSON text of one."
    )


class SchemaEchoCorpusOptions(OptionTable):
    """Options of ``corpus = "schema-echo"``."""

    toolace: str | Path | None = Field(default=None, description="The file of ToolACE.")
    xlam: str | Path | None = Field(default=None, description="The file of xLAM.")
    mismatched: str = Field(
        default="drop", description="Trajectories that do not fit their own schemas: drop, or keep as the paper does."
    )
    held_out: float = Field(default=0.02, description="The share of the split validation.")
