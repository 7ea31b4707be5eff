"""Entries of one turn and of several in one run: the former are asked once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.measuring.benchmark import about, verdict_by
from callwright.training.evaluation import evaluate
from callwright.walk.limits import SINGLE_TURN, limits_for
from callwright_plugins.bfcl.benchmark import BfclV3
from callwright_plugins.bfcl.multi_turn.package import FOLDER

PARSER = cw.parser("json")
FUNCTION = {
    "name": "area",
    "description": "The area.",
    "parameters": {
        "type": "dict",
        "properties": {"base": {"type": "integer", "description": "In cm."}},
        "required": ["base"],
    },
}


class Caller:
    """Calls something whenever it is asked, as a model that never comes to an end."""

    name = "caller"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def sample(self, requests: Sequence[Any], *, n: int = 1, **how: Any) -> list[list[cw.Completion]]:
        made = []
        for request in requests:
            self.asked[request.task.id] += n
            tool = next(iter(request.task.tools))
            given = {"base": 10} if tool == "area" else {}
            made.append([cw.Completion(PARSER.render(cw.Program((cw.Call(0, tool, given),))))] * n)
        return made


@pytest.fixture
def both(places: tuple[Path, Path], tmp_path: Path) -> BfclV3:
    """The stand-in's entries of several turns beside one of a single turn."""
    data, wheel = places
    shutil.copytree(data, tmp_path / "data")
    row = {"id": "simple_0", "question": [[{"role": "user", "content": "How large?"}]], "function": [FUNCTION]}
    gold = {"id": "simple_0", "ground_truth": [{"area": {"base": [10]}}]}
    (tmp_path / "data" / "BFCL_v3_simple.json").write_text(json.dumps(row) + "\n")
    (tmp_path / "data" / "possible_answer" / "BFCL_v3_simple.json").write_text(json.dumps(gold) + "\n")
    return BfclV3(data=tmp_path / "data", package=wheel)


def test_single_turn_entries_are_asked_once(both: BfclV3) -> None:
    pipeline = cw.Pipeline(both.corpus, "tier", PARSER, conditions=cw.Conditions(limits=both.corpus.limits))
    tasks = [both.corpus.task(key) for key in ("simple_0", "multi_turn_base_0")]
    sampler = Caller()
    kept: list[Any] = []
    evaluate(pipeline, tasks, sampler, keep=lambda attempt, verdict: kept.append(verdict_by(both, attempt)), samples=2)
    assert sampler.asked["simple_0"] == 2
    assert sampler.asked["multi_turn_base_0"] > 20
    assert [judgement.correct for _, judgement in kept] == [True, True, False, False]
    assert [verdict.masked for verdict, _ in kept] == [False] * 4


def test_alone_they_say_nothing_of_turns(both: BfclV3, tmp_path: Path) -> None:
    alone = BfclV3(data=tmp_path / "data")
    assert "one_turn" not in alone.corpus.task("simple_0").facts
    assert both.corpus.task("simple_0").facts["one_turn"] is True
    assert "one_turn" not in both.corpus.task("multi_turn_base_0").facts


def test_only_a_task_that_says_so_is_of_one_turn() -> None:
    limits = cw.TurnLimits(assistant_turns=7, user_turns=3, turn_tokens=50)
    assert limits_for({}, limits) is limits
    assert limits_for({"one_turn": False}, limits) is limits
    one = limits_for({"one_turn": True}, limits)
    assert (one.assistant_turns, one.user_turns, one.turn_tokens) == (1, 1, 50)
    assert limits_for({"one_turn": True}, SINGLE_TURN) is SINGLE_TURN


def test_the_classes_in_the_folder_of_the_data_are_found(
    places: tuple[Path, Path], both: BfclV3, tmp_path: Path
) -> None:
    assert not any("multi-turn is not measured" in why for why in both.unofficial)
    without = BfclV3(data=tmp_path / "data")
    assert any("multi-turn is not measured" in why for why in without.unofficial)
    (tmp_path / "unpacked").mkdir()
    shutil.unpack_archive(places[1], tmp_path / "unpacked", "zip") if places[1].is_file() else shutil.copytree(
        places[1], tmp_path / "unpacked", dirs_exist_ok=True
    )
    shutil.copytree(tmp_path / "unpacked" / FOLDER, tmp_path / "data" / FOLDER)
    found = BfclV3(data=tmp_path / "data")
    assert not any("multi-turn is not measured" in why for why in found.unofficial)


def test_a_part_that_was_answered_is_not_official(both: BfclV3) -> None:
    from callwright.measuring.benchmark import Judged, Judgement

    every = [Judged(task.id, both.category_of(task), Judgement(True, 1.0)) for task in both.tasks()]
    whole = about(both, every)["why"]
    assert not any("answered and judged" in why for why in whole)
    part = about(both, [one for one in every if one.category != "multi_turn_base"])["why"]
    assert set(part) - set(whole) == {"4 of 6 tasks were answered and judged; none of multi_turn_base"}
    masked = [*every[:-1], Judged(every[-1].task, every[-1].category, Judgement(False, 0.0, masked="gone"))]
    assert any(why.startswith("5 of 6 tasks were answered and judged") for why in about(both, masked)["why"])
