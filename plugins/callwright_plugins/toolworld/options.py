"""The options of the corpus ``toolworld-mini-v1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from callwright.options import OptionTable

MIX: Final = (0, 1, 2, 2, 3, 3, 4, 4, 5, 6)


class ToolWorldOptions(OptionTable):
    """Options of ``corpus = "toolworld-mini-v1"``."""

    train_size: int = Field(default=4000, description="Tasks of the split train.")
    evaluation_size: int = Field(default=40, description="Tasks of each depth in the split evaluation.")
    seed: int = Field(default=0, description="Draws the tasks; what is held out does not depend on it.")
    mix: Sequence[int] = Field(default=MIX, description="The depths of the tasks of training, in turn.")
