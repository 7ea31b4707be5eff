"""The conformance kit that third parties run, on this environment and corpus."""

from __future__ import annotations

from callwright.testing.checks import check_corpus, check_environment
from callwright_plugins.depthbench.corpus import DepthBenchCorpus
from callwright_plugins.depthbench.environment import DepthBench


def test_the_environment_conforms() -> None:
    check_environment(DepthBench(), scenarios=("user-0000", "user-0777"))


def test_the_corpus_conforms() -> None:
    check_corpus(DepthBenchCorpus())
