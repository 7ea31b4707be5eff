"""The options of the corpus ``village-v1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class VillageOptions(OptionTable):
    """Options of ``corpus = "village-v1"``."""

    train_size: int = Field(default=2000, description="Errands of the split train.")
    evaluation_size: int = Field(default=25, description="Errands of each kind in the split evaluation.")
    seed: int = Field(default=0, description="Draws the errands; what is held out does not depend on it.")
    mix: Sequence[str] = Field(
        default=("save", "cancel", "pay", "bring", "bring"),
        description="The kinds of the errands of training, in turn.",
    )


class StatefulOptions(OptionTable):
    """Options of the environments ``village-bakery`` and ``village-purse``."""

    toolsets: Any = Field(
        default=(), description="Tools that others add to it: names of toolsets or, in Python, these."
    )
    scale: float = Field(default=1.0, description="Rows of a world, as a multiple of the scenario's own.")
