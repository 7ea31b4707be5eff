"""What docs/depthbench.md states is what is there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from callwright_plugins.depthbench.corpus import DepthBenchCorpus
from callwright_plugins.depthbench.prove import Proof, table
from callwright_plugins.depthbench.tools import TRAIN, VALIDATION

PAGE = Path(__file__).parents[3] / "docs" / "depthbench.md"
COLUMNS = ("none", "single", "parallel", "linear", "conjunctive", "funnel", "tree", "mixed")


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    return PAGE.read_text(encoding="utf-8")


def test_the_tables_of_tasks_are_counted(page: str) -> None:
    corpus = DepthBenchCorpus()
    for split in corpus.splits:
        found = Counter((task.depth, task.structure) for task in corpus[split])
        assert f"| {split} | {' | '.join(COLUMNS)} | all |" in page
        for depth in range(7):
            cells = [found[depth, structure] for structure in COLUMNS]
            assert f"| {depth} | {' | '.join(str(n or '') for n in cells)} | {sum(cells)} |" in page


def test_the_domains_are_listed(page: str) -> None:
    for split, domains in (("train", TRAIN), ("validation", VALIDATION)):
        names = ", ".join(domain.name for domain in domains)
        assert f"| {split} | {names} | {sum(len(domain.tools) for domain in domains)} |" in page


def test_the_numbers_of_the_proofs_are_those_of_the_command(page: str, proof_of_v1: Proof) -> None:
    for line in table(proof_of_v1).splitlines():
        if not line.startswith("searched"):  # the command of the page searches; test_depthbench_proofs does, too
            assert line.strip() in page
