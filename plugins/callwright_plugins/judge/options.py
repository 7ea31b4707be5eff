"""The options of the reward component ``judge`` and of the recipe ``tier-judged``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class JudgeOptions(OptionTable):
    """Options of the reward component ``judge``."""

    rubric: Any = Field(default="answer", description="A shipped rubric by name, or the path of a TOML file.")
    teacher: Any = Field(default="openai", description="Who judges: a registered teacher or, in Python, a teacher.")
    model: str | None = Field(default=None, description="The teacher's model.")
    base_url: str | None = Field(default=None, description="The address of its server.")
    api_key_env: str | None = Field(default=None, description="The environment variable with its key.")
    server: Mapping[str, Any] | None = Field(default=None, description="Further options of the teacher.")
    votes: int = Field(default=1, description="Verdicts for an attempt, each with a seed and an order of its own.")
    pooling: str = Field(default="median", description="What becomes of several: median, majority or mean.")
    temperature: float | None = Field(
        default=None, description="Of the verdicts; 0 for one and 0.7 for several if left out."
    )
    max_tokens: int = Field(default=1024, description="Tokens of a verdict at most.")
    seed: int = Field(default=0, description="From which those of the votes are drawn.")
    cache: str | None = Field(default=None, description="The file in which verdicts are kept.")
    replay: bool = Field(default=False, description="Take verdicts from there alone, and ask nobody.")
    stop_after: int = Field(default=20, description="The command ends after so many masked samples in a row.")
    stop_share: float = Field(default=0.5, description="And when more than this share of the last fifty are masked.")


class TierJudgedOptions(JudgeOptions):
    """Options of ``reward = "tier-judged"``: those of the judge, and its weight."""

    weight: float = Field(default=2.0, description="Of the judge, beside the 10 of tier.")
