"""The options of recordings: the environment ``recorded``, and DepthBench as it was released."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from callwright.options import OptionTable


class RecordedOptions(OptionTable):
    """Options of ``environment = "recorded"``."""

    data: str | Path = Field(description="The folder of the recording.")
    name: str = Field(default="recorded", description="The name of the environment.")
    definitions: str | Path | None = Field(
        default=None, description="Definitions of the tools, where not in the folder."
    )
    scenario_tools: Mapping[str, str] | None = Field(
        default=None, description="Tools that read the scenario, with the parameter by which a call names another."
    )


class DepthBenchOfficialOptions(OptionTable):
    """Options of ``corpus = "depthbench-official"``."""

    data: str | Path = Field(description="The folder of the released benchmark.")
    shown: Literal["query", "all"] = Field(
        default="query", description="Tools in a prompt: the query's and three others, or all 163."
    )


class DepthBenchOfficialBenchmarkOptions(OptionTable):
    """Options of ``benchmark = "depthbench-official"``."""

    data: str | Path = Field(description="The folder of the released benchmark.")
    version: str | None = Field(default=None, description="The release; the only one if left out.")
