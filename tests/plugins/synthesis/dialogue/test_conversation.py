"""Conversations: their references reach their goals, with a user who is content, and nothing less does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from tests.plugins.synthesis.dialogue.talks import (
    DEPOT,
    MATERIALS,
    OFFERED,
    blueprint,
    fetching,
    pin,
    plan,
    played,
    recovering,
    stage,
)

import callwright as cw
from callwright.errors import DataError
from callwright.training import TeacherReply
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Rejected
from callwright.walk.task_rows.rows import task_row
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Distractor, Stage
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.dialogue.words import SCRIPTED, voice_of

OPEN = stage(("open_gate", {}))
ALL = {
    "one call": blueprint(OPEN),
    "a chain": blueprint(fetching()),
    "something missing": blueprint(fetching(information="missing"), OPEN),
    "nearly all missing": blueprint(OPEN, fetching(information="minimal"), stage(("close_gate", {}))),
    "a recovery": blueprint(recovering(), stage(("list_parcels", {}))),
    "a failure in the end": blueprint(stage(("drive_out", {}), ending="failure", code="GATE_CLOSED"), kind="failing"),
    "a tool that comes later": blueprint(
        Stage(OPEN.asked, ending="refusal"), OPEN, kind="clarification", hidden={"open_gate": 1}
    ),
    "a tool that never comes": blueprint(
        Stage(OPEN.asked, ending="refusal"), kind="abstention", hidden={"open_gate": -1}
    ),
    "a tool of another environment": blueprint(
        OPEN, Stage(plan(("list_folders", {})), ending="refusal", elsewhere="email")
    ),
}


def made(what: Blueprint, seed: int = 3, materials: Materials = MATERIALS) -> cw.Task:
    found = converse(what, materials, seed, "t")
    assert isinstance(found, cw.Task), found
    return found


@pytest.mark.parametrize("ir", ["json", "hermes"])
@pytest.mark.parametrize("name", ALL)
def test_the_reference_reaches_the_goal_and_the_user_is_content(name: str, ir: str) -> None:
    for seed in range(4):
        task = made(ALL[name], seed)
        episode = played(task, ir)
        assert episode.stop == "answered"
        assert episode.attempt.goal.equal
        assert episode.turns[-1].user is not None
        assert episode.turns[-1].user.said.text == "Thank you, that is all."
        called = [record.tool for turn in episode.turns if turn.trace for record in turn.trace.records]
        assert called == [call.tool for one in ALL[name].stages for call in one.calls]


@pytest.mark.parametrize("name", ALL)
def test_doing_nothing_reaches_the_goal_only_where_nothing_is_to_change(name: str) -> None:
    task = made(ALL[name])
    reached = DEPOT.open("", 0).check_goal(task.facts["goal"]).equal
    assert reached == task.facts["changes_nothing"]
    assert reached == (name in ("a failure in the end", "a tool that never comes"))


@pytest.mark.parametrize("name", ALL)
def test_tasks_are_rows_and_the_same_each_time(name: str) -> None:
    rows = []
    for _ in range(2):
        task = made(ALL[name])
        facts = {**task.facts}
        rows.append(json.dumps([facts, task.query, task.user.to_json() if task.user else None], sort_keys=True))
        Blueprint.from_json(json.loads(json.dumps(facts["blueprint"])))
    assert rows[0] == rows[1]


def test_a_task_of_a_registered_environment_is_written_down() -> None:
    mail = Materials(cw.environment("email"))
    looks = Blueprint("email", "", 0, "task", (stage(("list_folders", {})),), tuple(mail.environment.tools))
    row = task_row(made(looks, materials=mail), mail.registry)
    assert row["facts"]["teacher"] == SCRIPTED


def test_steps_hold_literal_arguments_edges_and_the_turn_from_which_they_are_due() -> None:
    task = made(ALL["something missing"])
    looked, signed, fetched, opened = task.facts["steps"]
    assert signed == {"calls": [{"name": "sign_in", "arguments": {"pin": pin()}}], "after": [], "turn": 1}
    assert fetched["after"] == [0, 1]
    assert fetched["calls"][0]["arguments"]["parcel_id"].startswith("P")
    assert (looked["turn"], opened["turn"]) == (1, 2)
    assert task.program is not None
    assert task.program.edges == ((0, 2), (1, 2))
    assert (task.depth, task.chain) == (4, 2)


def test_failures_on_purpose_are_made_but_not_due() -> None:
    task = made(ALL["a recovery"])
    assert [step["calls"][0]["name"] for step in task.facts["steps"]] == ["open_gate", "drive_out", "list_parcels"]
    assert task.facts["steps"][1]["after"] == [0]
    assert task.program is not None
    assert len(task.program.calls) == 3
    assert task.facts["gold"][0] == {"calls": [{"tool": "drive_out", "arguments": {}}]}, "it is looked at first"


def test_a_failure_in_the_end_is_due_and_told() -> None:
    task = made(ALL["a failure in the end"])
    assert [step["calls"][0]["name"] for step in task.facts["steps"]] == ["drive_out"]
    reply = voice_of(DEPOT, MATERIALS.registry).replies.read(task.facts["gold"][-1]["say"])
    assert reply is not None
    assert (reply.kind, reply.code) == ("failure", "GATE_CLOSED")
    assert task.program is None


def test_a_tool_that_comes_later_is_no_tool_before() -> None:
    task = made(ALL["a tool that comes later"])
    assert "open_gate" not in task.offered
    assert "open_gate" in task.offered_at(1)
    assert task.facts["steps"][0]["turn"] == 1
    assert not task.answer.is_no_call


def test_where_no_tool_fits_the_right_answer_is_no_call() -> None:
    task = made(ALL["a tool that never comes"])
    assert task.answer.is_no_call
    assert "open_gate" not in task.tools
    assert task.facts["steps"] == []


def test_queries_are_read_back_but_for_what_is_held_back() -> None:
    task = made(ALL["nearly all missing"])
    grammar = voice_of(DEPOT, MATERIALS.registry).grammar
    for one, said in zip(ALL["nearly all missing"].stages, task.facts["stages"], strict=True):
        left_out = [(held["call"], held["argument"]) for held in said["withheld"]]
        assert grammar.parse(said["query"]) == one.asked.without(left_out)


def test_tools_of_others_are_offered_and_closed_sets_taken_out() -> None:
    car = cw.environment("vehicle")
    assert "enum" in str(car.tools["shift_gear"].parameters)
    (name,) = car.tools["shift_gear"].parameters["properties"]
    looks = Blueprint(
        "vehicle",
        "",
        0,
        "task",
        (stage(("get_vehicle_status", {})),),
        tuple(car.tools),
        distractors=(Distractor("email", "list_folders"),),
        stripped=(("shift_gear", name),),
    )
    task = made(looks, materials=Materials(car))
    assert "list_folders" in task.offered
    assert "enum" not in str(task.tools["shift_gear"].parameters)
    assert "enum" in str(car.tools["shift_gear"].parameters), "the environment keeps its own"
    assert task_row(task, Materials(car).registry)["tools"]


def test_a_blueprint_that_does_not_come_to_what_it_says_is_rejected() -> None:
    found = converse(blueprint(stage(("drive_out", {}))), MATERIALS, 0, "t")
    assert isinstance(found, Rejected)
    assert (found.stage, found.evidence["found"]) == ("execution", "GATE_CLOSED")
    other = converse(blueprint(stage(("drive_out", {}), ending="failure", code="NO_FUEL")), MATERIALS, 0, "t")
    assert isinstance(other, Rejected)


def test_the_validator_rejects_calls_of_what_is_not_offered() -> None:
    hidden = evolve(blueprint(OPEN), offered=tuple(name for name in OFFERED if name != "open_gate"))
    found = converse(hidden, MATERIALS, 0, "t")
    assert isinstance(found, Rejected)
    assert (found.stage, found.evidence["why"]) == ("validator", "open_gate is not offered")


def test_a_blueprint_of_another_environment_is_refused() -> None:
    with pytest.raises(DataError, match="the blueprint is of"):
        converse(evolve(blueprint(OPEN), environment="harbour"), MATERIALS, 0, "t")


# Teachers -------------------------------------------------------------------------------------------------------------


def taught(answer: Any) -> Materials:
    teacher = cw.default_registry().create("teacher", "scripted", answer=answer)
    return evolve(MATERIALS, teacher=teacher)


def words(read: Any) -> Any:
    def answer(request: Any) -> TeacherReply:
        if request.role == "judge":
            return TeacherReply(json.dumps(read))
        return TeacherReply("Be so kind and let the gate swing open." if request.role == "user" else "It stands open.")

    return answer


def test_a_teacher_words_the_same_plan() -> None:
    task = made(blueprint(OPEN), materials=taught(words({"calls": [{"tool": "open_gate", "arguments": {}}]})))
    assert task.query == "Be so kind and let the gate swing open."
    assert task.facts["gold"] == [{"calls": [{"tool": "open_gate", "arguments": {}}]}, {"say": "It stands open."}]
    plain = made(blueprint(OPEN))
    assert {**task.facts, "gold": 0, "teacher": 0, "stages": 0} == {
        **plain.facts,
        "gold": 0,
        "teacher": 0,
        "stages": 0,
    }
    assert played(task, "hermes").attempt.goal.equal


def test_words_that_are_read_otherwise_are_rejected() -> None:
    for read in ({"calls": [{"tool": "close_gate", "arguments": {}}]}, {"calls": []}, "nonsense", None):
        found = converse(blueprint(OPEN), taught(words(read)), 0, "t")
        assert isinstance(found, Rejected)
        assert found.stage == "language"


def test_words_of_the_assistant_that_are_not_valid_are_replaced_in_the_end() -> None:
    def answer(request: Any) -> TeacherReply:
        if request.role == "judge":
            return TeacherReply(json.dumps({"calls": [{"tool": "sign_in", "arguments": {}}]}))
        return TeacherReply("Sign me in." if request.role == "user" else "Well, well.")

    asks = blueprint(stage(("sign_in", {"pin": pin()}), information="missing"))
    task = made(asks, materials=taught(answer))
    question = voice_of(DEPOT, MATERIALS.registry).replies.read(task.facts["gold"][0]["say"])
    assert question is not None
    assert question.titles == ("PIN",), "a question that the user would not hear is none"
