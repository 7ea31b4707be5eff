"""The options that forms share."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from callwright.options import OptionTable


class FormOptions(OptionTable):
    """Options of the shipped forms."""

    limits: Any = Field(default=None, description="In Python: characters, nesting and calls that are read at most.")
    instructions: Literal["allowed", "paper"] = Field(
        default="allowed", description="What a prompt says of the form: all that is allowed, or the paper's own words."
    )
