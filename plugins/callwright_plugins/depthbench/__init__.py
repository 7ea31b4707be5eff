"""DepthBench: the environments and corpora ``depthbench-v1`` and ``-v1.1``, 163 executable tools, 1,710 tasks each."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME = "depthbench-v1"
NAME_1_1 = "depthbench-v1.1"


@hookimpl
def callwright_environments() -> Iterable[Lazy]:
    """Register the environment."""
    yield Lazy(
        NAME,
        "callwright_plugins.depthbench.environment:DepthBench",
        takes="callwright_plugins.depthbench.benchmark:DepthBenchEnvironmentOptions",
        summary="163 deterministic tools in twenty domains, from the weather to flight bookings",
    )
    yield Lazy(
        NAME_1_1,
        "callwright_plugins.depthbench.environment:DepthBenchV11",
        summary="the tools of depthbench-v1 without columns for margins; names in any case, rows that can be edited",
    )


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """Register the corpus."""
    yield Lazy(
        NAME,
        "callwright_plugins.depthbench.corpus:DepthBenchCorpus",
        takes="callwright_plugins.depthbench.benchmark:DepthBenchOptions",
        summary="944 training and 766 validation tasks of depth 0-6 on disjoint tools; every step changes the answer",
    )
    yield Lazy(
        NAME_1_1,
        "callwright_plugins.depthbench.corpus:DepthBenchV11Corpus",
        takes="callwright_plugins.depthbench.benchmark:DepthBenchV11Options",
        summary="as many tasks of each kind as depthbench-v1, judged in several worlds; every bound decides in one",
    )


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmark."""
    yield Lazy(
        NAME,
        "callwright_plugins.depthbench.benchmark:DepthBenchV1",
        takes="callwright_plugins.depthbench.benchmark:VersionOptions",
        summary="the 766 validation tasks, by depth",
    )
    yield Lazy(
        NAME_1_1,
        "callwright_plugins.depthbench.benchmark:DepthBenchV11",
        takes="callwright_plugins.depthbench.benchmark:VersionOptions",
        summary="the 766 validation tasks of depthbench-v1.1, right in all worlds, by depth",
    )


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """Register the commands."""
    yield Lazy("corpus export", "callwright_plugins.depthbench.command:export", summary="write a corpus to a file")
    yield Lazy("corpus import", "callwright_plugins.depthbench.command:import_", summary="read an exported file back")
    yield Lazy(
        "corpus build", "callwright_plugins.depthbench.command:build", summary="build DepthBench again, and compare"
    )
