"""The benchmarks ``depthbench-v1`` and ``-v1.1``: the 766 validation tasks, added up by depth as in TIER's Table 1.

The tables of options stand here too: what is imported to run a task does without pydantic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from callwright.measuring.benchmark import CorpusBenchmark
from callwright.options import OptionTable
from callwright_plugins.depthbench import NAME, NAME_1_1
from callwright_plugins.depthbench.corpus import DepthBenchCorpus, DepthBenchV11Corpus
from callwright_plugins.depthbench.world import V1


class DepthBenchEnvironmentOptions(OptionTable):
    """Options of ``environment = "depthbench-v1"``."""

    version: str = Field(default=V1.name, description="The version whose tools and data these are.")


class DepthBenchOptions(OptionTable):
    """Options of ``corpus = "depthbench-v1"``."""

    file: str | Path | None = Field(default=None, description="A file of its tasks; what is shipped if left out.")
    shots: str = Field(
        default="fixed", description="Worked examples of prompts: fixed, or oracle, by the shape of the task itself."
    )
    instances: bool = Field(default=False, description="A program has to be right in further worlds, too.")
    fresh: int = Field(default=0, description="So many tasks of each in other worlds come after those of training.")


class DepthBenchV11Options(DepthBenchOptions):
    """Options of ``corpus = "depthbench-v1.1"``."""

    instances: bool = Field(default=True, description="A program has to be right in further worlds, too.")


class VersionOptions(OptionTable):
    """Options of the benchmarks ``depthbench-v1`` and ``-v1.1``."""

    version: str | None = Field(default=None, description="The version; each has one alone.")


class DepthBenchV1(CorpusBenchmark):
    """The validation split. It is this project's own benchmark, not the one whose numbers TIER prints."""

    name = NAME
    versions = ("1",)

    def __init__(self, version: str | None = None) -> None:
        super().__init__(DepthBenchCorpus(), "validation", version)

    def __reduce__(self) -> Any:
        """As its version: the tasks are in the package."""
        return type(self), (self.version,)


class DepthBenchV11(CorpusBenchmark):
    """The validation split of ``depthbench-v1.1``; right is what is right in all worlds of a task."""

    name = NAME_1_1
    versions = ("1.1",)

    def __init__(self, version: str | None = None) -> None:
        super().__init__(DepthBenchV11Corpus(), "validation", version)

    def __reduce__(self) -> Any:
        """As its version: the tasks are in the package."""
        return type(self), (self.version,)
