"""What is proven of the tasks of depthbench-v1, for the tests of the proofs and those of the page that states them."""

from __future__ import annotations

import pytest

from callwright_plugins.depthbench.corpus import DepthBenchCorpus
from callwright_plugins.depthbench.prove import Proof, prove


@pytest.fixture(scope="session")
def proof_of_v1() -> Proof:
    """Every wrong and every equal program of every task, tried once for all tests."""
    corpus = DepthBenchCorpus()
    return prove((task for split in corpus.splits for task in corpus[split]), search=0)
