"""The options of the scripted samplers."""

from __future__ import annotations

from pydantic import Field

from callwright.options import OptionTable


class FormOptions(OptionTable):
    """Options of ``sampler = "gold"`` and ``"no-call"``."""

    ir: str = Field(default="json", description="The form in which programs are written; a pipeline's own in one.")


class NoisyGoldOptions(OptionTable):
    """Options of ``sampler = "noisy-gold"``."""

    p: float = Field(default=0.9, ge=0, le=1, description="The probability that a call is right, for each by itself.")
    ir: str = Field(default="json", description="The form in which programs are written; a pipeline's own in one.")


class RandomValidOptions(OptionTable):
    """Options of ``sampler = "random-valid"``."""

    calls: int = Field(default=1, ge=0, description="Calls in each completion.")
    ir: str = Field(default="json", description="The form in which programs are written; a pipeline's own in one.")
