"""The official scores, and the page that says where and why Callwright differs from them."""

from __future__ import annotations

import importlib.util
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import callwright as cw

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
    assert released / json_rows < 0.04
    # all of it is what the released parser makes of a text: where the programs are the same, so are the scores
    parsing = {
        "dup_key",
        "empty_call_object",
        "think_mentions_tool_call",
        "two_names_extra_first",
        "two_names_extra_last",
    }
    assert {kind for (recipe, form, kind) in off if (recipe, form) == ("tier-released", "json")} == parsing


def test_gold_completions_are_full() -> None:

    module = load(ROOT / "benchmarks" / "official_scores.py")
    corpus, tier = cw.corpus("depthbench-official", data=str(DATA)), cw.reward("tier")
    parsers = {form: cw.parser(form) for form in ("json", "xml", "direct")}
    styles, full = set(), Counter()
    for row in module.official_rows(DATA):
        if row["kind"] in ("gold", "gold_explicit_tag"):
            reward = tier.score_attempt(cw.Attempt(corpus.task(row["qid"]), row["completion"], parsers[row["ir"]]))
            assert reward.total == pytest.approx(1.0), (row["ir"], row["qid"], reward.explain())
            styles.add(row["ref_style"])
            full[row["ir"]] += 1
    assert styles == {"bare", "field", None}
    assert full == {"json": 1075, "xml": 679, "direct": 679}


def test_dangling_references_earn_four_tenths_in_every_row() -> None:
    corpus, tier, parser = cw.corpus("depthbench-official", data=str(DATA)), cw.reward("tier"), cw.parser("json")
    seen = Counter()
    for row in load(ROOT / "benchmarks" / "official_scores.py").official_rows(DATA):
        attempt = cw.Attempt(corpus.task(row["qid"]), row["completion"], parser)
        if row["ir"] == "json" and attempt.program is not None and attempt.program.dangling:
            whole = row["scores"]["paper"] if row["scores"]["paper"] != "same" else row["scores"]["released"]
            lost = 0.025 * (whole["n_param_err"] + whole["n_type_err"])
            assert tier.score_attempt(attempt).total == pytest.approx(0.4 - lost if not whole["n_name_err"] else 0.1)
            seen[row["kind"]] += 1
    kinds = {"ref_self", "ref_future", "ref_nonexistent", "reversed_all", "drop_first_call_keep_ids"}
    assert kinds <= seen.keys()
    assert sum(seen.values()) > 130


def test_rows_are_accounted_for_by_reason() -> None:
    module = load(ROOT / "benchmarks" / "official_scores.py")
    counts = found()
    by_reason = module.by_reason(counts, ROOT / "docs" / "divergences.md")
    for recipe in ("tier", "tier-released"):
        listed = sum(number for (of, _), number in by_reason.items() if of == recipe)
        off = sum(n for part in ("differing", "masked") for (of, _, _), n in counts[part].items() if of == recipe)
        assert listed == off
    assert not [reason for _, reason in by_reason if not reason]
