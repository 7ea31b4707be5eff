"""Recorded environments: tools answer from a recording, so that slow, paid or remote ones can be trained against.

Also the corpus ``depthbench-official``, which reads TIER's released benchmark from a folder that the user names.
"""

from __future__ import annotations

from collections.abc import Iterator

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.recorded"


@hookimpl
def callwright_environments() -> Iterator[Lazy]:
    """The environment that answers from a recording."""
    yield Lazy(
        "recorded",
        f"{_HERE}.environment:RecordedEnvironment",
        "answers from the recording in a folder (data=DIR)",
        takes=f"{_HERE}.options:RecordedOptions",
    )


@hookimpl
def callwright_corpora() -> Iterator[Lazy]:
    """The released DepthBench, read from the user's copy."""
    yield Lazy(
        "depthbench-official",
        f"{_HERE}.depthbench_official:DepthBenchOfficial",
        "TIER's released benchmark with recorded tool results (data=DIR)",
        takes=f"{_HERE}.options:DepthBenchOfficialOptions",
    )


@hookimpl
def callwright_benchmarks() -> Iterator[Lazy]:
    """The released DepthBench as a benchmark."""
    yield Lazy(
        "depthbench-official",
        f"{_HERE}.benchmark:DepthBenchOfficialBenchmark",
        "TIER's released queries against a recording of their backend, by depth (data=DIR)",
        takes=f"{_HERE}.options:DepthBenchOfficialBenchmarkOptions",
    )


@hookimpl
def callwright_commands() -> Iterator[Lazy]:
    """``callwright env record``."""
    yield Lazy("env record", f"{_HERE}.command:record", "record what an environment answers, for training offline")
