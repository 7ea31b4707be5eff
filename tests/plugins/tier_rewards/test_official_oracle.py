"""``tier`` and its ablations equal the specification oracle on every row of the official scores, each component."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from official_questions import OfficialQuestions, lines
from specification_forms import read
from specification_oracle import Verdict, score

import callwright as cw

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("CALLWRIGHT_DATA") or ROOT.parent / "shared" / "data") / "depthbench_official"
FORMS = ("json", "xml", "direct")
RECIPES = ("tier", "tier-guarded", "tier-strict", "simple", "tier-no-parse", "tier-no-execution")

pytestmark = pytest.mark.skipif(
    not (DATA / "reference_scores.jsonl.gz").exists(),
    reason="the official DepthBench files are not here (CALLWRIGHT_DATA)",
)


@cache
def rows() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {form: [] for form in FORMS}
    for row in lines(DATA / "reference_scores.jsonl.gz"):
        found[row["ir"]].append(row)
    return found


@cache
def verdicts(form: str) -> list[Verdict]:
    questions = OfficialQuestions(DATA)
    return [score(read(row["completion"], form), questions[row["qid"]]) for row in rows()[form]]


@cache
def attempts(form: str) -> list[cw.Attempt]:
    corpus, parser = cw.corpus("depthbench-official", data=str(DATA)), cw.parser(form)
    return [cw.Attempt(corpus.task(row["qid"]), row["completion"], parser) for row in rows()[form]]


def close(ours: float | None, theirs: Any) -> bool:
    return (ours is None) == (theirs is None) and (ours is None or abs(ours - float(theirs)) <= 1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_totals_are_the_oracles(form: str, recipe: str) -> None:
    reward = cw.reward(recipe)
    differ: Counter[str] = Counter()
    for row, verdict, attempt in zip(rows()[form], verdicts(form), attempts(form), strict=True):
        if not close(reward.score_attempt(attempt).total, verdict.totals[recipe]):
            differ[row["kind"]] += 1
    assert not differ


@pytest.mark.parametrize("form", FORMS)
def test_every_component_of_tier_is_the_oracles(form: str) -> None:
    reward = cw.reward("tier")
    differ: Counter[tuple[str, str]] = Counter()
    for row, verdict, attempt in zip(rows()[form], verdicts(form), attempts(form), strict=True):
        found = reward.score_attempt(attempt)
        if found.total is None:
            continue  # which component the machinery hides is the total's business
        weights = {"answer": 0.5}
        for name, expected in verdict.components.items():
            if expected is None or abs(found.scores[name].contribution - weights.get(name, 0.1) * expected) > 1e-9:
                differ[row["kind"], name] += 1
    assert not differ


@pytest.mark.parametrize("form", FORMS)
def test_few_rows_hang_on_what_was_never_recorded(form: str) -> None:
    """So that the comparison is one of numbers: the oracle knows the total of nearly every row."""
    unknown = sum(verdict.totals["tier"] is None for verdict in verdicts(form))
    assert len(verdicts(form)) > 900
    assert unknown / len(verdicts(form)) < 0.02
