"""The options of ToolRL's rewards."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from callwright.options import OptionTable

_PAIRS: Final = "Which predicted calls may stand for a true one: any, as printed, or those of the same name."
_EXTRA: Final = "Calls beyond those that are due: free, as printed, or counted in the maximum."
_MATCHING: Final = "Which call stands for which true one: the optimal assignment, or greedy in the order of true calls."


class CorrectnessOptions(OptionTable):
    """Options of the reward component ``toolrl-correctness``."""

    scale: Any = Field(default=None, description="In Python: its range over the steps; -3 to 3 if left out.")
    granularity: str = Field(default="full", description="What is compared (section 5.3).")
    matching: Literal["optimal", "greedy"] = Field(default="optimal", description=_MATCHING)
    pairs: Literal["any", "same-name"] = Field(default="any", description=_PAIRS)
    extra_calls: Literal["free", "counted"] = Field(default="free", description=_EXTRA)


class FormatOptions(OptionTable):
    """Options of the reward component ``toolrl-format``."""

    scale: Any = Field(default=None, description="In Python: its range over the steps; 0 to 1 if left out.")


class LengthOptions(OptionTable):
    """Options of the reward component ``toolrl-length``."""

    target: Any = Field(default=None, description="In Python: its target over the steps; 512 words if left out.")


class ToolRLOptions(OptionTable):
    """Options of ``reward = "toolrl"`` and ``"toolrl-guarded"``."""

    matching: Literal["optimal", "greedy"] = Field(default="optimal", description=_MATCHING)
    pairs: Literal["any", "same-name"] = Field(default="any", description=_PAIRS)


class AblationOptions(ToolRLOptions):
    """Options of the recipes that change one thing of section 5."""

    change: str = Field(description="What is changed; each recipe has its own.")
    extra_calls: Literal["free", "counted"] = Field(default="free", description=_EXTRA)
    switch: int = Field(default=30, description="Steps of the first of two stages.")


class ReleasedOptions(OptionTable):
    """Options of the recipes ``toolrl-released-…``."""

    variant: str = Field(default="default", description="The switches of the released code; each recipe has its own.")
    matching: Literal["greedy", "optimal"] = Field(default="greedy", description=_MATCHING)
    pairs: Literal["same-name", "any"] = Field(default="same-name", description=_PAIRS)
    names: Literal["multiset", "set"] = Field(default="multiset", description="How names of tools are compared.")
    first_step: int = Field(
        default=0, description="What schedules call the first step of a training: 1 in the released trainer."
    )
