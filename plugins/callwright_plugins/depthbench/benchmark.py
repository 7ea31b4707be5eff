"""The benchmarks ``depthbench-v1`` and ``-v1.1``: the 766 validation tasks, added up by depth as in TIER's Table 1."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from callwright.measuring.benchmark import CorpusBenchmark
from callwright.options import OptionTable
from callwright_plugins.depthbench import NAME, NAME_1_1
from callwright_plugins.depthbench.corpus import DepthBenchCorpus, DepthBenchV11Corpus


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
