"""Every algorithm against TRL, OpenRLHF and verl on the same random tensors, wherever one of them can be imported.

They cannot be installed together. The table in docs/algorithms.md has all three columns.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
specification = importlib.util.spec_from_file_location(
    "algorithm_agreement", ROOT / "benchmarks" / "algorithm_agreement.py"
)
agreement = importlib.util.module_from_spec(specification)
sys.modules["algorithm_agreement"] = agreement
specification.loader.exec_module(agreement)

#: The algorithms that each peer has, and the least that is compared of each.
EXPECTED = {
    "TRL": {"grpo", "bn-grpo", "dapo", "dr-grpo", "gspo", "cispo", "rloo"},
    "OpenRLHF": {"grpo", "bn-grpo", "dapo", "dr-grpo", "rloo", "reinforce++", "reinforce++-baseline", "ppo"},
    "verl": {"grpo", "bn-grpo", "dapo", "dr-grpo", "rloo", "reinforce++", "reinforce++-baseline", "ppo"},
}


@pytest.mark.filterwarnings("ignore")  # of the peers' own deprecations
@pytest.mark.parametrize("peer", agreement.PEERS)
def test_everything_agrees_with(peer: str) -> None:
    reason = agreement.why_not(peer)
    if reason is not None:
        pytest.skip(f"{reason}; docs/algorithms.md says how it was compared")
    found = agreement.measure(peer, batches=8)
    assert found.keys() == EXPECTED[peer]
    for algorithm, worst in found.items():
        assert "advantages" in worst
        assert ("returns" in worst) == (algorithm in ("ppo", "reinforce++"))
        assert max(worst.values()) < agreement.TOLERANCE, algorithm


def test_a_difference_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same measurement against a peer that is wrong by little: an advantage that is off by 1e-5."""

    def wrong(batches: int) -> object:
        sample = agreement.Sample(1, holes=True)
        advantages, _ = sample.ours(agreement.PPO(kl_weight=0))
        yield "ppo", iter([("advantages", agreement.apart(advantages, advantages + 1e-5)), ("returns", 0.0)])

    monkeypatch.setitem(agreement.CASES, "verl", wrong)
    assert agreement.measure("verl", 1)["ppo"]["advantages"] > agreement.TOLERANCE


def test_the_table_of_the_page_holds() -> None:
    """Every algorithm has a row in docs/algorithms.md, in which no difference exceeds the tolerance."""
    page = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    table = page.split("## Against TRL, OpenRLHF and verl", 1)[1].split("\n## ", 1)[0]
    rows = dict(re.findall(r"^\| `([\w+-]+)` \| (.*) \|$", table, flags=re.MULTILINE))
    assert rows.keys() == set().union(*EXPECTED.values())
    for name, row in rows.items():
        cells = row.split(" | ")
        assert [cell != "has none" for cell in cells] == [name in EXPECTED[peer] for peer in EXPECTED]
        assert all(float(value) < agreement.TOLERANCE for value in re.findall(r"\d\.\de[+-]\d+", row))
