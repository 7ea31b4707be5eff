"""The benchmark ``depthbench-official``: TIER's released queries, judged against what was recorded of their backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from callwright.measuring.benchmark import CorpusBenchmark, Need
from callwright_plugins.recorded.depthbench_official import DepthBenchOfficial


class DepthBenchOfficialBenchmark(CorpusBenchmark):
    """The validation split of the released benchmark. ``data`` is the folder.

    Raises :class:`callwright.errors.DataError` if it is not a copy of the benchmark.
    """

    name = "depthbench-official"
    versions = ("2026",)
    needs = (
        Need(
            "data",
            "the released queries, and a recording of their backend (--data DIR, their folder)",
            ("queries.json", "function_definitions.json", "cassette.jsonl"),
            "TIER's release of DepthBench; the recording is made of its backend",
        ),
    )
    unofficial = (
        "the released backend is replayed from a recording: an attempt that needs a call which was never recorded is "
        "masked",
        "answers are compared by value, while the released scorer compares texts",
        "the paper's 766 validation ids are not published: the split is the released code's rule",
    )

    def __init__(self, data: str | Path, version: str | None = None) -> None:
        self._data = Path(data)
        super().__init__(DepthBenchOfficial(data), "validation", version)

    def __reduce__(self) -> Any:
        """As the folder, which must be where it is unpickled."""
        return type(self), (self._data.absolute(), self.version)
