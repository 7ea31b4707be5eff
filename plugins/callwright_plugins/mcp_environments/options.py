"""The options of the twenty environments."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class StatefulOptions(OptionTable):
    """Options of ``environment = "banking"`` and the nineteen others."""

    toolsets: Any = Field(
        default=(), description="Tools that others add to it: names of toolsets or, in Python, these."
    )
    scale: float = Field(default=1.0, description="Rows of a world, as a multiple of the scenario's own.")
