"""The benchmark ``depthbench-v1``: the 766 validation tasks of the corpus, added up by depth as in TIER's Table 1."""

from __future__ import annotations

from typing import Any

from callwright.measuring.benchmark import CorpusBenchmark
from callwright_plugins.depthbench import NAME
from callwright_plugins.depthbench.corpus import DepthBenchCorpus


class DepthBenchV1(CorpusBenchmark):
    """The validation split. It is this project's own benchmark, not the one whose numbers TIER prints."""

    name = NAME
    versions = ("1",)

    def __init__(self, version: str | None = None) -> None:
        super().__init__(DepthBenchCorpus(), "validation", version)

    def __reduce__(self) -> Any:
        """As its version: the tasks are in the package."""
        return type(self), (self.version,)
