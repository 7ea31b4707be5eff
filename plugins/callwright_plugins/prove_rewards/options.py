"""The options of Prove's rewards."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from callwright.options import OptionTable

_MATCHING: Final = "Which call stands for which true one: the first that is unused, or the assignment that fits best."
_ALPHA: Final = "Weight of calls beyond the budget (equation 2)."
_BETA: Final = "The budget beyond the true number of calls, as a share of it."
_EXACT: Final = "Compare digests where a task states no goal."
_PARTIAL: Final = "A state that is not right earns the share of rows that are."


class EfficiencyOptions(OptionTable):
    """Options of the reward component ``efficiency``."""

    alpha: float = Field(default=0.5, description=_ALPHA)
    beta: float = Field(default=0.5, description=_BETA)


class FinalStateOptions(OptionTable):
    """Options of the reward component ``final-state`` and of ``reward = "state"``."""

    exact: bool = Field(default=False, description=_EXACT)
    partial: bool = Field(default=False, description=_PARTIAL)


class MatchingOptions(OptionTable):
    """Options of the reward components ``prove-argument`` and ``prove-coverage``."""

    matching: str = Field(default="first-unused", description=_MATCHING)


class ProveOptions(OptionTable):
    """Options of ``reward = "prove"``."""

    matching: str = Field(default="first-unused", description=_MATCHING)
    alpha: float = Field(default=0.5, description=_ALPHA)
    beta: float = Field(default=0.5, description=_BETA)


class AblationOptions(ProveOptions):
    """Options of ``reward = "prove-no-…"`` and ``"prove-flat-budget"``."""

    change: str = Field(description="The row of Table 5; each recipe has its own.")


class ProveStateOptions(FinalStateOptions):
    """Options of ``reward = "prove-state"``."""

    weight: float = Field(default=1.0, description="Of leaving the right state.")
    matching: str = Field(default="first-unused", description=_MATCHING)


class WithEfficiencyOptions(EfficiencyOptions):
    """Options of ``reward = "tier-efficiency"``."""

    base: str = Field(default="tier", description="The recipe that the penalty is added to.")
    weight: float = Field(default=0.15, description="Of the penalty, on the scale of that recipe's totals.")
