"""Models at work on multi-turn entries: sessions in the process of the classes, turns, functions that appear, steps."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import stand_in_wheel

import callwright as cw
from callwright.environments.protocol import Session
from callwright.episodes import Conversation
from callwright.measuring.benchmark import attempt_of
from callwright.testing.checks import check_environment
from callwright.walk.users.kinds import kinds_of
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES, LIMITS, STEPS
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn

PARSER = cw.parser("json")
CONDITIONS = cw.Conditions(limits=LIMITS, users=kinds_of(cw.default_registry()))
MISS = "multi_turn_miss_func_0"


def task_of(suite: MultiTurn, key: str) -> cw.Task:
    return next(task for task in suite.tasks(key.rpartition("_")[0]) if task.id == key)


def calls(*given: tuple[str, dict[str, Any]]) -> str:
    return PARSER.render(cw.Program(tuple(cw.Call(at, name, arguments) for at, (name, arguments) in enumerate(given))))


DONE = PARSER.render(cw.Program(text="Done."))
LAMP = calls(("create_ticket", {"title": "Lamp"}))
CLOSE = calls(("close_ticket", {"ticket_id": 0}))
LIST = calls(("list_tickets", {}))


def lived(task: cw.Task, *texts: str) -> cw.Attempt:
    """An attempt that was made turn by turn, with the task's user."""
    talk = Conversation(task, PARSER, (cw.Message.user(task.query),), CONDITIONS)
    try:
        for text in texts:
            talk.accept(cw.Completion(text))
        return talk.attempt
    finally:
        talk.close()


def test_the_environment_is_one(suite: MultiTurn) -> None:
    check_environment(suite.environment, scenarios=("multi_turn_base_0", "multi_turn_long_context_0"))


def test_a_session_begins_as_its_entry_and_is_its_own(suite: MultiTurn) -> None:
    def titles(session: Session) -> Any:
        return session.call("list_tickets", {}).value["titles"]

    first, second = (suite.environment.open("multi_turn_base_0") for _ in range(2))
    assert first.digest() == second.digest()
    assert first.call("create_ticket", {"title": "a (b)"}).value == {"id": 2, "title": "a(b)"}  # as the checker has it
    assert first.digest() != second.digest()
    assert (titles(first), titles(second)) == (["Roof", "Wall", "a(b)"], ["Roof", "Wall"])
    assert titles(suite.environment.open("multi_turn_long_context_0")) == ["Roof", "Wall", "filler"]
    raised = first.call("divide", {"a": 1, "b": 0})
    assert (raised.kind, raised.message) == ("execution_error", "division by zero")
    assert first.call("create_ticket", {"title": "x", "priority": 9}).value == {"error": "no such priority"}
    assert first.call("close_ticket", {"number": 0}).kind == "execution_error"
    first.close()
    first.close()
    with pytest.raises(cw.InfrastructureFailure):
        first.call("list_tickets", {})
    with pytest.raises(cw.UsageError, match="multi_turn_base_0"):
        suite.environment.open("multi_turn_base_9")


def test_a_session_whose_process_is_lost_is_a_failure_of_the_machinery(suite: MultiTurn) -> None:
    other = suite.environment.open("multi_turn_base_0")
    assert suite.classes is not None
    number, _ = suite.classes.begin(suite.entries["multi_turn_base_0"])
    with pytest.raises(cw.InfrastructureFailure, match="status 3"):
        suite.classes.call(number, ["die", [], {}])
    with pytest.raises(cw.InfrastructureFailure, match="was lost"):
        other.call("list_tickets", {})
    other.close()
    assert suite.environment.open("multi_turn_base_0").call("add", {"a": 1, "b": 1}).value == {"result": 2}


def test_tasks_have_the_turns_of_their_entries(suite: MultiTurn) -> None:
    task = task_of(suite, MISS)
    assert (task.query, task.facts) == ("A ticket for the lamp.", {"category": "multi_turn_miss_func", "turns": 4})
    assert "close_ticket" not in task.offered
    assert list(task.appearing(2)) == ["close_ticket"]
    assert task.tools["create_ticket"].parameters["properties"]["priority"]["type"] == "integer"
    assert pickle.loads(pickle.dumps(task)).id == MISS
    alone = task_of(suite, "multi_turn_base_1")
    assert alone.user is None


def test_an_episode_over_all_turns_is_right(suite: MultiTurn) -> None:
    task = task_of(suite, MISS)
    attempt = lived(task, LAMP, DONE, "I cannot.", CLOSE, DONE, LIST, DONE)
    assert (attempt.stop, [len(turns) for turns in attempt.user_turns]) == ("answered", [2, 1, 2, 2])
    assert suite.judge(task, attempt).correct
    silent = lived(task, LAMP, DONE, DONE, DONE, LIST, DONE)
    assert suite.judge(task, silent).error == "multi_turn:empty_turn_model_response"
    early = lived(task, LAMP, CLOSE, DONE, DONE, LIST, DONE, LIST, DONE)  # unknown to the model, and yet executed
    assert suite.judge(task, early).error == "multi_turn:instance_state_mismatch"


def test_the_twenty_first_step_ends_the_entry(suite: MultiTurn) -> None:
    task = task_of(suite, "multi_turn_base_0")
    create = calls(("create_ticket", {"title": "Printer (hall)", "priority": 2}))
    both = calls(("list_tickets", {}), ("add", {"a": 1, "b": 2}))
    forced = lived(task, create, *[LIST] * STEPS)
    assert (forced.stop, suite.judge(task, forced).error) == ("steps", "multi_turn:force_terminated")
    enough = lived(task, create, *[LIST] * (STEPS - 1), DONE, both, DONE)
    assert suite.judge(task, enough).correct
    last = lived(task, create, DONE, both, *[LIST] * STEPS)  # in the last turn nothing is missing
    assert (last.stop, suite.judge(task, last).correct) == ("steps", True)


def test_references_are_what_they_stood_for(suite: MultiTurn) -> None:
    task = task_of(suite, "multi_turn_base_1")
    show = cw.Program((cw.Call(0, "add", {"a": 1, "b": 2}), cw.Call(1, "send", {"text": cw.Reference(0, ("result",))})))
    attempt = lived(task, PARSER.render(show), DONE)
    found = suite.judge(task, attempt)
    assert found.evidence == ("turn 0: MessageAPI.sent is [3], not ['hello']",)


def test_rows_of_completions_and_messages_are_judged(suite: MultiTurn) -> None:
    task = task_of(suite, MISS)
    wire = [
        {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": one}]}
        if one
        else {"role": "assistant", "content": "Done."}
        for one in (
            {"name": "create_ticket", "arguments": '{"title": "Lamp"}'},
            None,
            None,
            {"name": "close_ticket", "arguments": '{"ticket_id": 0}'},
            None,
            {"name": "list_tickets", "arguments": "{}"},
            None,
        )
    ]
    for row in (
        {"completion": [LAMP, DONE, "What?", CLOSE, DONE, LIST, DONE]},
        {"completion": [[LAMP], ["What?"], [CLOSE], [LIST]]},
        {"messages": [{"role": "user", "content": task.query}, *wire]},
    ):
        found = attempt_of(row, task, PARSER, CONDITIONS)
        assert found is not None
        assert suite.judge(task, found[1]).correct, row


def test_an_attempt_of_another_length_is_no_answer(suite: MultiTurn) -> None:
    task = task_of(suite, MISS)
    assert suite.judge(task, cw.Attempt(task, LAMP, PARSER)).error == "multi_turn:force_terminated"
    assert suite.judge(task, cw.Attempt(task, "", PARSER)).error == "multi_turn:force_terminated"


def test_the_files_are_those_of_the_stand_in(places: tuple[Path, Path]) -> None:
    ids = {json.loads(line)["id"] for file in places[0].glob("BFCL_v3*.json") for line in file.read_text().splitlines()}
    assert ids == {f"{category}_{number}" for category, number, *_ in stand_in_wheel.ENTRIES}
    assert {key.rpartition("_")[0] for key in ids} == set(CATEGORIES)
