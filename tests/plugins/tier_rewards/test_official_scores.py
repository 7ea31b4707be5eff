"""The official scores, and the page that says where and why Callwright differs from them."""

from __future__ import annotations

import importlib.util
import os
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("CALLWRIGHT_DATA", ROOT.parent / "shared" / "data")) / "depthbench_official"

pytestmark = pytest.mark.skipif(
    not (DATA / "queries.json").exists(), reason="the official DepthBench files are not here (CALLWRIGHT_DATA)"
)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def found() -> dict[str, Any]:
    return load(ROOT / "benchmarks" / "official_scores.py").compare(DATA)


def documented() -> dict[tuple[str, str, str], tuple[int, int]]:
    page = (ROOT / "docs" / "divergences.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| (tier|tier-released) \| (\w+) \| (\w+) \| (\d+) \| (\d+) \| (.+) \|$", re.MULTILINE)
    table = {}
    for recipe, form, kind, differ, masked, why in row.findall(page):
        assert len(why) > 10, f"{recipe} {form} {kind} has no reason"
        table[recipe, form, kind] = (int(differ), int(masked))
    return table


def test_differences_are_those_documented() -> None:
    counts = found()
    keys = counts["differing"].keys() | counts["masked"].keys()
    actual = {key: (counts["differing"][key], counts["masked"][key]) for key in keys}
    assert actual == documented()


def test_most_rows_are_equal() -> None:
    rows, off = found()["rows"], found()["differing"]
    assert sum(rows.values()) == 5301
    json_rows = sum(count for (form, _), count in rows.items() if form == "json")
    released = sum(count for (recipe, form, _), count in off.items() if (recipe, form) == ("tier-released", "json"))
    assert released / json_rows < 0.06


def test_gold_completions_are_full() -> None:
    import callwright as cw

    module = load(ROOT / "benchmarks" / "official_scores.py")
    corpus, tier, parser = cw.corpus("depthbench-official", data=str(DATA)), cw.reward("tier"), cw.parser("json")
    styles = set()
    for row in module.official_rows(DATA):
        if row["ir"] == "json" and row["kind"] in ("gold", "gold_explicit_tag"):
            reward = tier.score_attempt(cw.Attempt(corpus.task(row["qid"]), row["completion"], parser))
            assert reward.total == pytest.approx(1.0), (row["qid"], reward.explain())
            styles.add(row["ref_style"])
    assert styles == {"bare", "field", None}
