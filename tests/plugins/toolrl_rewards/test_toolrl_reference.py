"""The released recipes equal ToolRL's reference scores on every row; the paper recipes stay in range there."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError
from callwright.walk import Progress
from callwright_plugins.toolrl_rewards.recipes import ABLATIONS, VARIANTS
from callwright_plugins.toolrl_rewards.truth import BadGroundTruth


@pytest.fixture(scope="module")
def agreement(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("toolrl_agreement", root / "benchmarks" / "toolrl_agreement.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(agreement: ModuleType, official_data: Path) -> list[dict[str, Any]]:
    folder = official_data / "toolrl"
    if not (folder / "reference_scores.jsonl.gz").is_file():
        pytest.skip("ToolRL's reference scores are not here (CALLWRIGHT_DATA)")
    return list(agreement.reference_rows(folder))


def test_every_row_of_every_variant_and_matching_policy_is_equal(
    agreement: ModuleType, rows: list[dict[str, Any]]
) -> None:
    found = agreement.compare(rows)
    assert set(found) == set(VARIANTS) | set(agreement.MATCHING)
    assert {name: verdicts["differ"] for name, verdicts in found.items() if verdicts["differ"]} == {}
    for variant in VARIANTS:
        assert {verdict: len(ids) for verdict, ids in found[variant].items()} == {
            "equal": 3508,
            "refused": 8,
            "differ": 0,
        }
    assert {len(found[column]["equal"]) for column in agreement.MATCHING} == {2471}


def test_refused_ground_truths_are_named_when_they_are_loaded(rows: list[dict[str, Any]]) -> None:
    recipe = cw.reward("toolrl-released-default")
    bad = [row for row in rows if "error" in row["scores"]["default"]]
    assert len(bad) == 8
    for row in bad:
        with pytest.raises(BadGroundTruth, match="cannot be read: line 1 of its calls is not JSON") as caught:
            recipe.row_task(row)
        assert isinstance(caught.value, DataError)
        assert caught.value.task == row["id"]


def test_the_paper_recipe_reads_what_the_released_one_refuses(rows: list[dict[str, Any]]) -> None:
    recipe = cw.reward("toolrl")
    for row in rows:
        if row["perturbation"] == "gt_think_mentions_tags__self":
            assert recipe.score_pair(row["completion"], row["ground_truth"]).total == 4.0


@pytest.mark.parametrize("name", ["toolrl", "toolrl-guarded", *(f"toolrl-{change}" for change in ABLATIONS)])
def test_paper_recipes_stay_in_range_and_explain_every_lost_point(name: str, rows: list[dict[str, Any]]) -> None:
    recipe = cw.reward(name)
    kinds: Counter[str] = Counter()
    for row in rows[::4]:
        reward = recipe.score_pair(row["completion"], row["ground_truth"], Progress(row["step"], row["total_steps"]))
        assert recipe.low <= reward.total <= recipe.high
        assert reward.total == pytest.approx(sum(weighted.contribution for weighted in reward.scores.values()))
        for weighted in reward.scores.values():
            assert weighted.score.full == (not weighted.score.evidence), (row["id"], weighted)
            kinds.update(evidence.code for evidence in weighted.score.evidence)
        answers_all = row["gt_kind"] != "synthetic_tool_and_response"  # there "perfect" lacks the response
        if row["perturbation"] == "perfect" and "length" not in name and answers_all:
            assert all(weighted.score.full for weighted in reward.scores.values()), row["id"]
    assert {"blocks", "stray_text", "wrong_value", "missing_call", "extra_call", "not_json"} <= kinds.keys()


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_released_recipes_explain_every_lost_point(variant: str, rows: list[dict[str, Any]]) -> None:
    recipe = cw.reward(f"toolrl-released-{variant}")
    for row in rows[::16]:
        if "error" in row["scores"][variant]:
            continue
        reward = recipe.score_pair(row["completion"], row["ground_truth"], Progress(row["step"], row["total_steps"]))
        for weighted in reward.scores.values():
            assert weighted.score.full == (not weighted.score.evidence), (row["id"], weighted)


def test_the_paper_formula_equals_the_reference_where_nothing_is_repaired(rows: list[dict[str, Any]]) -> None:
    """One call each, same name, no bools: there the paper's formula and the released code are the same."""
    recipe, compared = cw.reward("toolrl"), 0
    for row in rows:
        block = row["matching"]
        if block is None or (block["n_gt"], block["n_pred"]) != (1, 1) or block["any_ne_named"]:
            continue
        if row["perturbation"] not in ("perfect", "wrong_value", "missing_param", "extra_param", "wrong_param_name"):
            continue
        reward = recipe.score_pair(row["completion"], row["ground_truth"])
        assert reward.scores["correctness"].score.value == pytest.approx(block["correct_optimal_any_name"], abs=1e-9)
        compared += 1
    assert compared > 100
