"""The oracles of worlds-mini-v1: what reaches the goal of a task, what does not, and that its user is content."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

import callwright as cw
from callwright.episodes import Conversation
from callwright.errors import DataError, UnknownName
from callwright.language.program import Program
from callwright.walk.execution import Execution
from callwright.walk.prompt import build_messages
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.prove_rewards.final_state import leave
from callwright_plugins.worlds_mini.corpus import WorldsMini
from callwright_plugins.worlds_mini.script import Script, read_file, read_scripts
from callwright_plugins.worlds_mini.variants import mutants, programs, reordered

SCRIPTS = read_scripts()
IDS = [script.id for script in SCRIPTS]
ALONE = [script for script in SCRIPTS if "+" not in script.environment]


@cache
def corpus() -> WorldsMini:
    made: WorldsMini = cw.corpus("worlds-mini-v1")
    return made


def episode(task: cw.Task, form: str = "json") -> Conversation:
    """The reference, turn by turn, with the task's user."""
    sampler, parser = cw.sampler("gold", ir=form), cw.parser(form)
    made = Conversation(task, parser, [cw.Message.user(task.query)], cw.Conditions(limits=corpus().limits))
    while not made.over:
        request = SamplingRequest(tuple(made.messages), task, made.turns, parser)
        made.accept(sampler.sample([request])[0][0])
    return made


def reached(task: cw.Task, turns: Sequence[Program]) -> bool:
    found = leave(turns, task, task.clock).checked
    assert found is not None
    return bool(found.equal)


def test_for_models_with_little_room_environments_are_small() -> None:
    """The tasks are the same; what is listed and answered is shorter. The reference reaches the goal all the same."""
    small: WorldsMini = cw.corpus("worlds-mini-v1", compact=True, page_bytes=3000)
    for script in (ALONE[0], next(script for script in SCRIPTS if "+" in script.environment)):
        task, whole = small.task(script.id), corpus().task(script.id)
        assert (task.query, task.facts, task.answer) == (whole.query, whole.facts, whole.answer)
        told, all_told = (
            "".join(message.text for message in build_messages(one, cw.parser("json"))) for one in (task, whole)
        )
        assert len(told) < 0.6 * len(all_told)
        assert reached(task, programs(script))
        again = pickle.loads(pickle.dumps(task))
        assert all(spec.brief for spec in again.tools.values())
    with pytest.raises(cw.UsageError, match="page_bytes"):
        cw.corpus("worlds-mini-v1", page_bytes=1)


# The tasks ------------------------------------------------------------------------------------------------------------


def test_every_environment_has_two_tasks() -> None:
    assert Counter(script.environment for script in ALONE) == dict.fromkeys(TOOLS, 2)
    assert len(set(IDS)) == len(IDS)
    assert corpus().splits == {"validation": len(SCRIPTS)}


def test_some_tasks_are_to_change_nothing_and_in_some_time_moves() -> None:
    assert sum(script.changes_nothing for script in SCRIPTS) >= 5
    assert sum(script.clock is not None for script in SCRIPTS) >= 3


@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_a_task_is_a_conversation_of_several_turns_with_reads_and_writes(script: Script) -> None:
    environment = corpus().environment_of(script)
    tools = [tool for turn in script.gold if not isinstance(turn, str) for tool, _ in turn]
    assert len(script.gold) >= 3
    assert any(environment.tools[tool].read_only for tool in tools)
    assert script.user.get("knows") or script.user.get("then")
    writes = [tool for tool in tools if not environment.tools[tool].read_only]
    assert writes or script.changes_nothing


# The reference --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_the_reference_reaches_the_goal_and_the_user_is_satisfied(script: Script) -> None:
    task = corpus().task(script.id)
    made = episode(task)
    said = [turn.user.said for turn in made.turns if turn.user is not None]
    assert made.stop == "answered"
    assert len(made.turns) == len(script.gold)
    assert said[-1].text == "Thank you, that is all."
    assert "That is not done yet." not in [one.text for one in said]
    assert all(record.outcome.executed for record in made.attempt.whole_trace.records)
    assert cw.reward("worlds").score_attempt(made.attempt).total == 1.0
    assert cw.reward("state").score_attempt(made.attempt).total == 1.0


@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_the_user_tells_what_it_knows_only_when_asked_and_the_agent_uses_nothing_before(script: Script) -> None:
    task = corpus().task(script.id)
    session = task.environment.open(task.scenario, task.seed)
    held_back: dict[str, Any] = {
        name: session.knowledge(stated.get("of", "me"))[stated["knowledge"]] if isinstance(stated, dict) else stated
        for name, stated in script.user.get("knows", {}).items()
    }
    heard = task.query
    for turn in episode(task).turns:
        for value in held_back.values():
            written = json.dumps([call.arguments for call in turn.calls], default=str)
            if len(str(value)) > 3 and str(value) in written:
                assert str(value) in heard, f"{value!r} was used before it was told"
        if turn.user is not None:
            heard += "\n" + turn.user.said.text
    for name, value in held_back.items():
        shown = {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
        assert shown not in task.query, f"{name} stands in the query"
        assert shown in heard, f"{name} was never asked for"


@pytest.mark.parametrize("form", ["xml", "direct", "hermes", "toolrl"])
def test_the_reference_is_as_good_in_every_form(form: str) -> None:
    for script in SCRIPTS[::3]:
        made = episode(corpus().task(script.id), form)
        assert made.stop == "answered"
        assert cw.reward("state").score_attempt(made.attempt).total == 1.0


def test_a_form_without_references_calls_what_takes_a_result_after_it() -> None:
    task = corpus().task("banking-savings-course")
    made = episode(task, "hermes")
    assert [[call.tool for call in turn.calls] for turn in made.turns] == [
        [],
        ["find_customer"],
        ["verify_identity", "list_accounts"],
        ["get_account", "transfer_funds", "set_card_status"],
        [],
    ]
    assert all(not call.located for turn in made.turns for call in turn.calls)


def test_a_noisy_reference_is_right_with_its_probability() -> None:
    from callwright.pipeline import open_pipeline
    from callwright.training.evaluation import evaluate

    pipeline = open_pipeline(cw.reward("worlds"), corpus())
    tasks = list(pipeline.tasks("validation", None))
    shares = [
        sum(one.answer for one in evaluate(pipeline, tasks, cw.sampler("noisy-gold", p=p))) / len(tasks)
        for p in (1.0, 0.9, 0.0)
    ]
    assert shares[0] == 1.0 > shares[1] > shares[2]


def test_an_evaluation_finds_the_reference_right_everywhere_and_silence_where_nothing_is_to_change() -> None:
    from callwright.pipeline import open_pipeline
    from callwright.training.evaluation import evaluate

    pipeline = open_pipeline(cw.reward("worlds"), corpus())
    tasks = list(pipeline.tasks("validation", None))
    assert all(verdict.answer and verdict.valid for verdict in evaluate(pipeline, tasks, cw.sampler("gold")))
    silent = evaluate(pipeline, tasks, cw.sampler("no-call"))
    assert [verdict.answer for verdict in silent] == [script.changes_nothing for script in SCRIPTS]
    assert {verdict.failure for verdict in silent} == {"", "goal:missed"}


# What misses the goal, and what reaches it too ------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_doing_nothing_reaches_the_goal_only_where_nothing_is_to_change(script: Script) -> None:
    assert reached(corpus().task(script.id), ()) == script.changes_nothing


@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_no_mutant_reaches_the_goal(script: Script) -> None:
    task = corpus().task(script.id)
    found = list(mutants(script))
    assert len(found) >= 4
    assert len({name for name, _ in found}) == len(found)
    assert [name for name, turns in found if reached(task, turns)] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_every_task_has_a_write_too_many_that_executes(script: Script) -> None:
    task = corpus().task(script.id)
    added = [edit for edit in script.mutants if "add" in edit]
    assert added
    for edit in added:
        execution = Execution(task.environment, task.tools, scenario=task.scenario, seed=task.seed, clock=task.clock)
        ((_, turns),) = [one for one in mutants(script) if one[0] == edit["name"]]
        traces = [execution.run(turn) for turn in turns]
        execution.close()
        record = traces[int(edit["after"])].records[-1]
        assert record.tool == edit["add"][0]
        assert not task.tools[record.tool].read_only
        assert record.outcome.executed, (edit["name"], record.outcome)


@pytest.mark.parametrize("script", [one for one in SCRIPTS if not one.changes_nothing], ids=lambda one: one.id)
def test_mutants_change_a_value_or_an_entity_and_leave_a_call_out(script: Script) -> None:
    assert sum("at" in edit for edit in script.mutants) >= 2
    assert any("drop" in edit for edit in script.mutants)


def test_another_legal_order_reaches_the_goal() -> None:
    tried = 0
    for script in SCRIPTS:
        for turns in reordered(script):
            tried += 1
            assert turns != programs(script)
            assert reached(corpus().task(script.id), turns), script.id
    assert tried >= 0.8 * len(SCRIPTS)


# The corpus -----------------------------------------------------------------------------------------------------------


def test_tasks_are_found_by_their_ids_and_say_what_they_are_about() -> None:
    for script in SCRIPTS:
        task = corpus().task(script.id)
        assert (task.id, task.facts["environment"]) == (script.id, script.environment)
        assert corpus().script(task.id).about == script.about
        json.dumps(dict(task.facts))
    with pytest.raises(UnknownName, match="banking-savings-course"):
        corpus().task("banking-savings-corse")
    with pytest.raises(UnknownName, match="split"):
        corpus()["train"]


def test_the_corpus_travels() -> None:
    again = pickle.loads(pickle.dumps(corpus()))
    task = again["validation"][3]
    assert task.query == corpus()["validation"][3].query
    assert pickle.loads(pickle.dumps(task)).facts == task.facts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks = 3", "not iterable"),
        ('environment = "email"\n[[tasks]]\nid = "a"', "mutants"),
        ('[[tasks]]\nid = "a"\ngaol = {}', "there is no key 'gaol'"),
        ('[[tasks]]\nid = "a"\nmutants = [{ swap = 1 }]', "is no edit"),
        ('[[tasks]]\nid = "a"\n[tasks.goal]\nhold = []', "holds"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as told:
        read_file("email.toml", text)
    assert "worlds_mini/data/email.toml" in str(told.value)
