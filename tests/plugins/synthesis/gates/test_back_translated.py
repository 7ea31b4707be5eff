"""A second teacher reads what users say without the plan: what it reads as something else does not pass."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner
from tests.plugins.synthesis.dialogue.talks import DEPOT, MATERIALS, blueprint, fetching, recovering, stage

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.program import Call, plain
from callwright.training import TeacherFailure, TeacherReply
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Accepted, Rejected
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.gates import GATES, gate
from callwright_plugins.synthesis.gates.gate import Gated
from callwright_plugins.synthesis.gates.naming import BackTranslated
from callwright_plugins.synthesis.grounded import Grounded

sys.path.append(str(Path(__file__).parents[3] / "core" / "support"))

from stand_in_server import StandIn, chat


def foreign() -> cw.Task:
    """A task of somebody else: a query, a program and its answer."""
    bank = cw.environment("banking")
    calls = (Call(0, "list_accounts", {"limit": 2}), Call(1, "get_account", {"account_id": "A00002"}))
    session = bank.open("", 4)
    values = [session.call(one.tool, dict(one.arguments)).value for one in calls]
    session.close()
    query = "What are my first two accounts, and what is on account A00002?"
    answer = cw.Answer((values[-1],))
    return cw.Task("f", query, bank.tools, answer, bank, seed=4, program=cw.Program(calls))


def stated_by(task: cw.Task) -> dict[str, Any]:
    assert task.program is not None
    return {"calls": [{"tool": one.tool, "arguments": plain(one.arguments)} for one in task.program.calls]}


def talk(*stages: Any, **more: Any) -> cw.Task:
    found = converse(blueprint(*stages, **more), MATERIALS, 3, "t")
    assert isinstance(found, cw.Task), found
    return found


def read_by(task: cw.Task, answer: Callable[[Any], Any]) -> Gated:
    teacher = cw.default_registry().create("teacher", "scripted", answer=answer)
    return gate(task, gates=(BackTranslated(teacher),))


def plans(task: cw.Task) -> Iterator[dict[str, Any]]:
    yield from (one["asked"] for one in task.facts["blueprint"]["stages"])


def saying(*plans: Any) -> Callable[[Any], TeacherReply]:
    left = list(plans)
    return lambda request: TeacherReply(left.pop(0) if isinstance(left[0], str) else json.dumps(left.pop(0)))


def test_what_is_read_as_it_was_meant_passes() -> None:
    task = talk(fetching(), recovering())
    assert read_by(task, saying(*plans(task))).rejected is None


def test_what_comes_to_the_same_passes() -> None:
    task = talk(stage(("open_gate", {})))
    twice = {"calls": [{"tool": "list_parcels", "arguments": {}}, {"tool": "open_gate", "arguments": {}}]}
    assert read_by(task, saying(twice)).rejected is None


@pytest.mark.parametrize(
    "read",
    [
        {"calls": [{"tool": "close_gate", "arguments": {}}]},
        {"calls": []},
        {"calls": [{"tool": "burn_everything", "arguments": {}}]},
    ],
)
def test_what_is_read_as_something_else_does_not(read: Any) -> None:
    task = talk(stage(("open_gate", {})))
    rejected = read_by(task, saying(read)).rejected
    assert rejected is not None
    assert (rejected.stage, rejected.reason) == ("back-translated", "a second teacher reads something else")
    assert rejected.evidence["read"] == read


@pytest.mark.parametrize("text", ["", "Open it.", "[]", '{"calls": 3}', "[" * 3000])
def test_what_is_no_plan_is_nothing_that_could_be_called(text: str) -> None:
    rejected = read_by(talk(stage(("open_gate", {}))), saying(text)).rejected
    assert rejected is not None
    assert rejected.reason == "a second teacher reads nothing that could be called"


def test_the_teacher_sees_tools_and_words_and_not_the_plan() -> None:
    task = talk(fetching(), stage(("open_gate", {})))
    asked: list[Any] = []
    answer = saying(*plans(task))

    def kept(request: Any) -> Any:
        asked.append(request)
        return answer(request)

    assert read_by(task, kept).rejected is None
    assert [one.role for one in asked] == ["judge", "judge"]
    for request, stated in zip(asked, task.facts["stages"], strict=True):
        text = request.messages[-1].text
        assert text.endswith(stated["query"])
        assert all(tool in text for tool in DEPOT.tools)
        assert "API_RESPONSE" not in text
    assert task.query in asked[1].messages[-1].text, "what was said before is known"


def test_a_task_of_somebody_else_is_read_whole() -> None:
    task = foreign()
    right = stated_by(task)
    assert read_by(task, saying(right)).rejected is None
    rejected = read_by(task, saying({"calls": right["calls"][:-1]})).rejected
    assert rejected is not None
    assert rejected.reason == "a second teacher reads something else"


def test_a_teacher_that_does_not_reply_is_no_verdict() -> None:
    with pytest.raises(InfrastructureFailure, match="out of paper"):
        read_by(talk(stage(("open_gate", {}))), lambda request: TeacherFailure("out of paper"))


def test_a_recipe_may_have_a_reader_and_leave_the_words_to_the_grammar(kept_knowledge: Path) -> None:
    materials = Materials(cw.environment("vehicle"), seed=1, count=6)
    options: dict[str, Any] = {"cache": str(kept_knowledge), "calls": 1500, "clarifications": 0, "abstentions": 0}
    synthesizer = Grounded(words="scripted", back_translated=True, **options)
    units = synthesizer.plan(materials)
    with pytest.raises(UsageError, match="name a teacher"):
        synthesizer.make(units[0], materials)
    registry = materials.registry
    deaf = registry.create("teacher", "scripted", answer=lambda request: TeacherReply("What?"))
    for unit in units:
        silent = Grounded(**options).make(unit, materials)
        found = synthesizer.make(unit, evolve(materials, teacher=deaf))
        assert isinstance(found, Rejected)
        if isinstance(silent, Accepted):
            assert found.stage == "back-translated"
        hears = registry.create("teacher", "scripted", answer=saying(*(one["asked"] for one in unit.payload["stages"])))
        again = synthesizer.make(unit, evolve(materials, teacher=hears))
        if isinstance(silent, Accepted):
            assert isinstance(again, Accepted)
            assert again.row == silent.row
            assert again.facts["gates"] == [*(one.name for one in GATES), "back-translated"]


@pytest.mark.parametrize(
    "options", [{"words": "golden"}, {"back_translated": "yes"}, {"back_translated": True, "gates": False}]
)
def test_wrong_options_of_a_reader_are_said(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Grounded(**options)


def test_the_command_asks_a_model_server_and_pays_once(tmp_path: Path) -> None:
    task = foreign()
    right = stated_by(task)
    file = tmp_path / "tasks.jsonl"
    cw.write_tasks(file, [task])
    with StandIn(lambda sent: chat(json.dumps(right))) as server:
        words = ["synthesize", "check", str(file), "--against", "none", "--json", "--teacher", "openai"]
        for option in ("model=reader", f"base_url={server.url}", "api_key_env="):
            words += ["--teacher-option", option]
        words += ["--replies", str(tmp_path / "replies.sqlite")]
        for _ in range(2):
            said = CliRunner().invoke(root, words, obj=App())
            assert said.exit_code == 0, said.output
            assert json.loads(said.stdout)["gates"]["back-translated"] == {"passed": 1, "rejected": 0}
        assert len(server.asked) == 1


def test_options_of_no_teacher_are_refused(tmp_path: Path) -> None:
    said = CliRunner().invoke(root, ["synthesize", "check", str(tmp_path / "x.jsonl"), "--replies", "r"], obj=App())
    assert "for a --teacher" in f"{said.output}{said.exception}"
