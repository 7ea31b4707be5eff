"""The options of the rewards for costs."""

from __future__ import annotations

from pydantic import Field

from callwright.options import OptionTable


class CostOptions(OptionTable):
    """Options of the reward component ``cost``."""

    slack: int = Field(default=0, description="Cents that may be spent beside what the task needs.")


class LatencyOptions(OptionTable):
    """Options of the reward component ``latency``."""

    slack: int = Field(default=0, description="Seconds that may pass beside what the task needs.")


class IrreversibleOptions(OptionTable):
    """Options of the reward component ``irreversible``."""

    penalty: float = Field(default=0.5, description="Taken off for each irreversible call that was not needed.")


class WithCostsOptions(OptionTable):
    """Options of ``reward = "tier-costs"`` and ``"state-costs"``."""

    base: str = Field(default="tier", description="The recipe that terms for costs are added to.")
    cost: float = Field(default=0.5, description="Weight of money, on the scale of the recipe's own; 0 leaves it out.")
    latency: float = Field(default=0.5, description="Weight of time.")
    irreversible: float = Field(default=1.0, description="Weight of irreversible calls.")
    rate_limits: float = Field(default=0.5, description="Weight of calls beyond a limit.")
    slack_cents: int = Field(default=0, description="Cents that may be spent beside what the task needs.")
    slack_seconds: int = Field(default=0, description="Seconds that may pass beside what the task needs.")
    penalty: float = Field(default=0.5, description="Taken off for each irreversible call that was not needed.")
