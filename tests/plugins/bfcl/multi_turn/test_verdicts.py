"""Verdicts: every class of errors, the official quirks, and what is lost with the process of the classes."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import stand_in_wheel

import callwright as cw
from callwright.errors import DataError
from callwright.machines.foreign_code.code import ForeignLimits
from callwright.measuring.benchmark import Judgement
from callwright.testing import check_component
from callwright_plugins.bfcl.multi_turn import package
from callwright_plugins.bfcl.multi_turn.benchmark import BfclMultiTurn
from callwright_plugins.bfcl.multi_turn.classes import OfficialClasses
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn

PARSER = cw.parser("json")
BASE = "multi_turn_base_0"
GOLD = [["create_ticket(title='Printer (hall)', priority=2)"], ["list_tickets()", "add(a=1, b=2)"]]


def task_of(suite: MultiTurn, key: str) -> cw.Task:
    return next(task for task in suite.tasks(key.rpartition("_")[0]) if task.id == key)


def judged(suite: MultiTurn, row: dict[str, Any]) -> Judgement:
    task = task_of(suite, row["id"])
    attempt = suite.answer(row, task, PARSER)
    assert attempt is not None
    return suite.judge(task, attempt)


def said(suite: MultiTurn, *turns: Any, key: str = BASE) -> tuple[bool, str]:
    """The verdict on calls by turn and step."""
    found = judged(suite, {"id": key, "calls": list(turns)})
    assert found.masked is None
    return found.correct, found.error.removeprefix("multi_turn:")


def test_gold_calls_are_right_in_every_category(suite: MultiTurn) -> None:
    for category, number, _, _, gold in stand_in_wheel.ENTRIES:
        assert said(suite, *[[calls] for calls in gold], key=f"{category}_{number}") == (True, "")
        steps = [[[call] for call in calls] for calls in gold]
        assert said(suite, *steps, key=f"{category}_{number}") == (True, "")


RIGHT, EMPTY, STATE, RESPONSE = (
    (True, ""),
    (False, "empty_turn_model_response"),
    (False, "instance_state_mismatch"),
    (False, "execution_response_mismatch"),
)


@pytest.mark.parametrize(
    ("turns", "verdict"),
    [
        ([[GOLD[0]], []], EMPTY),
        ([[GOLD[0]], [[]]], EMPTY),
        ([[], [GOLD[1]]], EMPTY),
        ([[GOLD[0]], [[], []]], RESPONSE),  # two steps without calls are not an empty turn
        ([[["list_tickets()"]], [GOLD[1]]], STATE),
        ([[GOLD[0], ["close_ticket(ticket_id=0)"]], [GOLD[1]]], STATE),
        ([[GOLD[0]], [["list_tickets()"]]], RESPONSE),
        ([[GOLD[0]], [["add(a=1, b=2)", "list_tickets()"]]], RIGHT),  # in any order
        ([[GOLD[0], GOLD[1]], [["add(1, 1)"]]], RIGHT),  # what an earlier turn returned counts
        ([[GOLD[0]], [GOLD[1], GOLD[1]]], RIGHT),  # reading more than needed changes nothing
        ([[GOLD[0], ["nobody(1)", "create_ticket(1, 2, 3)", "broken("]], [GOLD[1]]], RIGHT),
        ([[["create_ticket(title='Printer(hall)', priority=2)"]], [GOLD[1]]], RIGHT),  # a space before a bracket
        ([[["create_ticket('Printer  (hall)', 2)"]], [GOLD[1]]], RIGHT),
        ([[["create_ticket(title='Printer hall', priority=2)"]], [GOLD[1]]], STATE),
        ([[["create_ticket(title='Printer (hall)')"]], [GOLD[1]]], STATE),
        ([[GOLD[0], ["create_ticket(title='x', priority=9)"]], [GOLD[1]]], RIGHT),  # refused: no state has changed
        ([[GOLD[0]], [GOLD[1], ["send(text='hello')"]]], STATE),
    ],
)
def test_the_checks_of_a_turn(suite: MultiTurn, turns: list[Any], verdict: tuple[bool, str]) -> None:
    assert said(suite, *turns) == verdict


def test_a_turn_without_gold_calls_is_executed_and_not_checked(suite: MultiTurn) -> None:
    key = "multi_turn_miss_param_0"
    assert said(suite, [["list_tickets()"]], [["create_ticket('Door')"]], key=key) == RIGHT
    assert said(suite, [["create_ticket('Door')"]], [["list_tickets()"]], key=key) == RIGHT
    assert said(suite, [["create_ticket('Door')"]], [["create_ticket('Door')"]], key=key) == STATE


def test_another_number_of_turns_is_forced_termination(suite: MultiTurn) -> None:
    assert said(suite, [GOLD[0]]) == (False, "force_terminated")
    assert said(suite, [GOLD[0]], [GOLD[1]], []) == (False, "force_terminated")
    assert said(suite) == (False, "force_terminated")


def test_official_result_rows_are_read(suite: MultiTurn) -> None:
    text = "[create_ticket(title='Printer (hall)', priority=2)]"
    ends = ["[list_tickets(), add(a=1, b=2)]", "That is all."]
    assert judged(suite, {"id": BASE, "result": [[text, "Done."], ends], "valid": False}).correct
    served = [[[{"create_ticket": json.dumps({"title": "Printer (hall)", "priority": 2})}], "Done."]]
    served.append([[{"list_tickets": "{}"}], [{"add": {"a": 1, "b": 2}}], []])
    assert judged(suite, {"id": BASE, "result": served}).correct
    for bad, error in (
        ("Error during inference: 429", "inference_error"),
        (None, "inference_error"),
        ([[text]], "force_terminated"),
        ([["no calls"], ends], "empty_turn_model_response"),
        ([text, ends], "empty_turn_model_response"),  # a text in the place of a turn: every sign is a step
        ([5, ends], "empty_turn_model_response"),
    ):
        assert judged(suite, {"id": BASE, "result": bad}).error == f"multi_turn:{error}"
    task = task_of(suite, BASE)
    assert suite.answer({"id": BASE}, task, PARSER) is None
    for calls in ("x", [["create_ticket()"]], [[[1]]], [[{}]], {}):
        with pytest.raises(DataError, match="no list of turns"):
            suite.answer({"id": BASE, "calls": calls}, task, PARSER)


def test_evidence_says_what_differs(suite: MultiTurn) -> None:
    found = judged(suite, {"id": "multi_turn_base_1", "calls": [[["send(text='bye')"]]]})
    assert found.evidence == ("turn 0: MessageAPI.sent is ['bye'], not ['hello']",)
    found = judged(suite, {"id": BASE, "calls": [[GOLD[0]], [["list_tickets()"]]]})
    assert found.evidence == ('turn 1: no call returned {"result": 3}',)


# The process ----------------------------------------------------------------------------------------------------------


def test_only_the_answer_that_ends_the_process_is_masked(suite: MultiTurn) -> None:
    task = task_of(suite, BASE)
    rows = [[[GOLD[0]], [GOLD[1]]], [[["die()"]], [GOLD[1]]], [[GOLD[0]], [["list_tickets()"]]]]
    attempts = [(task, suite.answer({"calls": calls}, task, PARSER)) for calls in rows]
    found = suite.judge_together([(task, attempt) for task, attempt in attempts if attempt is not None])
    assert [(one.correct, one.masked is None) for one in found] == [(True, True), (False, False), (False, True)]
    assert "status 3" in (found[1].masked or "")
    assert said(suite, *rows[0]) == RIGHT


def test_a_call_that_hangs_is_ended_and_masked(places: tuple[Path, Path]) -> None:
    suite = MultiTurn("v3", places[0])
    suite.classes = OfficialClasses(places[1], "v3", limits=ForeignLimits(time=1))
    found = judged(suite, {"id": BASE, "calls": [[["hang()"]], [GOLD[1]]]})
    assert "more than 1 s" in (found.masked or "")
    suite.close()


def test_the_gold_side_is_computed_once(suite: MultiTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(suite, [GOLD[0]], [GOLD[1]]) == RIGHT
    asked: Counter[str] = Counter()
    code = suite.classes._judging  # type: ignore[union-attr]
    call = code.call
    monkeypatch.setattr(code, "call", lambda name, *given: (asked.update([name]), call(name, *given))[1])
    for _ in range(5):
        assert said(suite, [GOLD[0]], [GOLD[1]]) == RIGHT
    assert asked == {"official_classes:judge": 5}


def test_without_the_wheel_tasks_are_read_and_judging_says_what_is_missing(places: tuple[Path, Path]) -> None:
    suite = MultiTurn("v3", places[0])
    task = task_of(suite, BASE)
    attempt = suite.answer({"calls": [[GOLD[0]], [GOLD[1]]]}, task, PARSER)
    assert attempt is not None
    with pytest.raises(cw.UsageError, match="--package"):
        suite.judge(task, attempt)
    with pytest.raises(cw.UsageError, match="--package"):
        task.environment.open(task.scenario)


def test_another_release_is_refused(places: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(cw.UsageError, match=r"pip download --no-deps bfcl-eval==0\.0\.0"):
        OfficialClasses(tmp_path, "v3")
    wheel = stand_in_wheel.write_wheel(tmp_path / "wheel")
    file = wheel / package.FOLDER / "math_api.py"
    file.write_text(file.read_text() + "# changed\n")
    with pytest.raises(cw.UsageError, match="of another release"):
        OfficialClasses(wheel, "v3")
    (tmp_path / "a.whl").write_bytes(b"no wheel")
    with pytest.raises(cw.UsageError, match="neither the wheel nor"):
        OfficialClasses(tmp_path / "a.whl", "v3")


def test_the_wheel_itself_will_do(places: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as packed:
        for file in places[1].rglob("*.py"):
            packed.write(file, file.relative_to(places[1]))
    suite = MultiTurn("v3", places[0], tmp_path / "a.whl")
    assert said(suite, [GOLD[0]], [GOLD[1]]) == RIGHT
    folder = suite.classes._package.folder  # type: ignore[union-attr]
    assert folder.is_dir()
    suite.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: (data / "BFCL_v3_multi_turn_base.json").unlink(), "--data"),
        (lambda data: (data / "BFCL_v3_multi_turn_base.json").write_text("{}\n"), "json:1: an object with id"),
        (lambda data: (data / "BFCL_v3_multi_turn_base.json").write_text("{\n"), "json:1: no JSON"),
        (lambda data: (data / "possible_answer/BFCL_v3_multi_turn_base.json").write_text(""), "no gold calls"),
    ],
)
def test_data_that_cannot_be_read_is_said_with_its_place(tmp_path: Path, change: Any, said: str) -> None:
    data = stand_in_wheel.write_data(tmp_path / "data")
    change(data)
    with pytest.raises((cw.UsageError, DataError), match=said):
        MultiTurn("v3", data).tasks("multi_turn_base")
    with pytest.raises(cw.UsageError, match="BFCL_v4"):
        MultiTurn("v4", data).tasks("multi_turn_base")


# As a benchmark -------------------------------------------------------------------------------------------------------


def test_it_is_a_benchmark_as_any_other(places: tuple[Path, Path]) -> None:
    check_component("benchmark", BfclMultiTurn("v3", *places))
    check_component("benchmark", BfclMultiTurn("v3", *places, category="multi_turn_base"))


def test_the_benchmark_adds_up_as_the_official_table(places: tuple[Path, Path]) -> None:
    from callwright.measuring.benchmark import Judged

    made = BfclMultiTurn("v3", *places)
    assert made.categories == {"multi_turn_base": 2, **dict.fromkeys(CATEGORIES[1:], 1)}
    right, wrong = Judgement(correct=True, score=1.0), Judgement(correct=False, score=0.0)
    judged = [Judged(task.id, made.category_of(task), wrong if task.id == BASE else right) for task in made.tasks()]
    assert made.aggregate(judged) == {"overall": 3.5 / 4, "multi_turn_base": 0.5, **dict.fromkeys(CATEGORIES[1:], 1.0)}
    assert made.aggregate(judged[:1])["overall"] is None
    again = pickle.loads(pickle.dumps(made.tasks("multi_turn_base")[0]))
    assert again.environment.open(again.scenario).call("add", {"a": 1, "b": 2}).value == {"result": 3}
    with pytest.raises(cw.UsageError, match="--data"):
        BfclMultiTurn("v3")
    with pytest.raises(cw.UsageError, match="no version 'v5'"):
        BfclMultiTurn("v5", *places)
