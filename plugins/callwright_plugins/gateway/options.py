"""The options of the sampler ``agent``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AllowInfNan, Field

from callwright.options import OptionTable


class AgentOptions(OptionTable):
    """Options of ``sampler = "agent"``."""

    command: str | Sequence[str] = Field(description="What is run for each attempt: a line, or a list of words.")
    engine: Any = Field(default="openai", description="The sampler behind the gateway, which plays the agent's model.")
    engine_options: Mapping[str, Any] | None = Field(default=None, description="Options of that sampler.")
    concurrency: int = Field(default=4, ge=1, description="Agents that run at a time.")
    time_limit: Annotated[float, AllowInfNan(True)] = Field(
        default=600.0, gt=0, description="Seconds for an attempt; an agent that does not end masks its sample."
    )
    environment: Mapping[str, str] | None = Field(default=None, description="Further environment variables of agents.")
