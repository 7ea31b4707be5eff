"""The corpus ``tasks`` and the commands over files of tasks."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from attrs import evolve
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.commands.file_formats import schema_of
from callwright.commands.trust import wishes
from callwright.environments import Fault, Hazards
from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.program import Call, Program
from callwright.testing import check_component
from callwright.walk.limits import limits_of
from callwright_plugins.task_files.checking import NO_PROGRAM, complaint


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks of four environments, of which two are composed of others."""
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    tasks = [
        *cw.corpus("toolworld-mini-v1")["evaluation"][:30],
        *cw.corpus("worlds-mini-v1")["validation"][::10],
        *cw.corpus("depthbench-v1+calendar")["train"][::200],
    ]
    cw.write_tasks(path, tasks, limits=cw.TurnLimits(assistant_turns=6, user_turns=3))
    return path


def run(*words: str) -> Any:
    return CliRunner().invoke(root, [*map(str, words)], obj=App(), catch_exceptions=True)


def test_it_conforms(file: Path) -> None:
    check_component("corpus", cw.corpus("tasks", file=str(file)), again=cw.corpus("tasks", file=str(file)))


def test_every_command_and_recipe_reads_it(file: Path, tmp_path: Path) -> None:
    corpus = cw.corpus("tasks", file=str(file))
    assert dict(corpus.splits) == {"evaluation": 30, "validation": 5, "train": 5}
    assert limits_of(corpus) == cw.TurnLimits(assistant_turns=6, user_turns=3)
    recipe = {"corpus": {"name": "tasks", "file": str(file), "train": "train", "evaluation": "evaluation"}}
    pipeline = cw.Pipeline(corpus, "tier", "json", evaluation="evaluation")
    task = pipeline.tasks("evaluation")[7]
    assert task.program is not None
    assert pipeline.score(pipeline.attempt(task, pipeline.parser.render(task.program))).total == pytest.approx(1.0)
    assert cw.load_recipe(recipe).recipe.corpus.options["file"] == str(file)
    out = tmp_path / "evaluation"
    done = run(
        "evaluate", "--corpus", "tasks", "--corpus-option", f"file={file}", "--split", "evaluation",
        "--sampler", "gold", "--turns", "1", "-o", out, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["overall"] == 1.0
    assert json.loads((out / "ledger.json").read_text())["made_of"]["corpus"]["name"] == "tasks"


def test_a_second_file_is_the_split_test(file: Path, tmp_path: Path) -> None:
    learnt, other = tmp_path / "learnt.jsonl", tmp_path / "other.jsonl"
    tasks = cw.read_tasks(file)
    cw.write_tasks(learnt, tasks.splits["train"])
    cw.write_tasks(other, [*tasks.splits["validation"], *tasks.splits["evaluation"]])
    corpus = pickle.loads(pickle.dumps(cw.corpus("tasks", file=str(learnt), test_file=str(other))))
    assert dict(corpus.splits) == {"train": 5, "test": 35}
    assert [(task.id, task.split) for task in corpus["test"]] == [(task.id, "test") for task in cw.read_tasks(other)]
    assert corpus.task(corpus["test"][3].id).query == corpus["test"][3].query
    with pytest.raises(UnknownName, match="task"):
        corpus.task("nobody's")
    check_component("corpus", corpus, again=cw.corpus("tasks", file=str(learnt), test_file=str(other)))
    same = list(corpus["train"])
    cw.write_tasks(other, [*same[1:], evolve(same[0], query="Something else.")])
    both = cw.corpus("tasks", file=str(learnt), test_file=str(other))
    assert both.task(same[1].id).split == "train"
    with pytest.raises(DataError, match="is another one than that of"):
        both.task(same[0].id)
    cw.write_tasks(learnt, [evolve(task, split="test") for task in tasks.splits["train"]])
    with pytest.raises(UsageError, match="has a split 'test' itself"):
        cw.corpus("tasks", file=str(learnt), test_file=str(other))


def test_a_large_split_is_told_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    from callwright_plugins.task_files import corpus as module

    corpus = cw.corpus("tasks", file=str(file))
    assert corpus.fingerprint("train") is None  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "_EACH", 3)
    told = corpus.fingerprint("train")  # type: ignore[attr-defined]
    other = tmp_path / "other.jsonl"
    other.write_bytes(file.read_bytes())
    assert cw.corpus("tasks", file=str(other)).fingerprint("train") == told  # type: ignore[attr-defined]
    other.write_bytes(file.read_bytes() + b"\n")
    assert cw.corpus("tasks", file=str(other)).fingerprint("train") != told  # type: ignore[attr-defined]


def test_options_that_are_none_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs the option 'file'"):
        cw.corpus("tasks")
    with pytest.raises(UsageError, match=r"'file' must be str \| Path, not 3"):
        cw.corpus("tasks", file=3)
    with pytest.raises(UsageError, match="'trust' must be true or false, not 'yes'"):
        cw.corpus("tasks", file=str(file), trust="yes")
    with pytest.raises(UnknownName, match=r"split of tasks\.jsonl named 'test'"):
        cw.corpus("tasks", file=str(file))["test"]
    cw.write_tasks(tmp_path / "none.jsonl", [])
    with pytest.raises(DataError, match="holds no tasks"):
        cw.corpus("tasks", file=str(tmp_path / "none.jsonl"))


def test_what_a_trusted_file_starts_is_asked_about(file: Path, tmp_path: Path) -> None:
    head, *rows = file.read_text().splitlines()
    said = json.loads(head)
    said["environments"][0] |= {"name": "mcp", "options": {"command": ["touch", "x"]}}
    path = tmp_path / "foreign.jsonl"
    path.write_text("\n".join([json.dumps(said), *rows]) + "\n")
    with pytest.raises(DataError, match="does not get to do so"):
        cw.corpus("tasks", file=str(path))
    asked = cw.load_recipe({"corpus": {"name": "tasks", "file": str(path), "trust": True}})
    (wish,) = wishes(asked, cw.default_registry(), {"corpus": "corpus"})
    assert "touch x" in str(wish)
    untrusted = cw.load_recipe({"corpus": {"name": "tasks", "file": str(path)}})
    assert wishes(untrusted, cw.default_registry(), {"corpus": "corpus"}) == []


# Commands -------------------------------------------------------------------------------------------------------------


def test_tasks_of_a_corpus_are_exported(tmp_path: Path) -> None:
    out = tmp_path / "tasks.jsonl.gz"
    done = run("tasks", "export", "worlds-mini-v1", "-o", out, "--limit", "4")
    assert (done.exit_code, done.stdout) == (0, f"4 tasks in {out}\n")
    found = cw.read_tasks(out)
    assert list(found) == list(cw.corpus("worlds-mini-v1")["validation"][:4])
    assert found.head.limits == limits_of(cw.corpus("worlds-mini-v1"))
    assert found.head.about == {"corpus": "worlds-mini-v1"}
    done = run("tasks", "export", "depthbench-v1", "-o", tmp_path / "a.jsonl", "--split", "valid")
    assert (done.exit_code, "Did you mean 'validation'" in done.stderr) == (2, True)


def test_files_fit_their_schemas(file: Path) -> None:
    head, *rows = map(json.loads, file.read_text().splitlines())
    assert jsonschema_rs.validator_for(schema_of("task-head")).is_valid(head)
    validator = jsonschema_rs.validator_for(schema_of("task-row"))
    for row in rows:
        validator.validate(row)
    assert not validator.is_valid({**rows[0], "colour": 1})


def test_chats_hold_executed_results(tmp_path: Path) -> None:
    out = tmp_path / "chats.jsonl"
    done = run("tasks", "export", "toolworld-mini-v1", "-o", out, "--format", "openai", "--split", "evaluation")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 280
    assert "API_RESPONSE" not in out.read_text()
    assert {message["role"] for row in rows for message in row["messages"]} == {"user", "assistant", "tool"}
    assert all(row["messages"][-1]["role"] == "assistant" for row in rows)


def test_chats_of_conversations_are_those_of_the_corpus(tmp_path: Path) -> None:
    out = tmp_path / "chats.jsonl"
    words = ("tasks", "export", "village-v1", "-o", out, "--format", "openai", "--split", "train", "--limit", "5")
    assert run(*words).exit_code == 0
    corpus = cw.corpus("village-v1")
    for line, task in zip(out.read_text().splitlines(), corpus["train"][:5], strict=True):
        first, *others = json.loads(line)["messages"]
        assert first == {"role": "user", "content": task.query}
        assert others == [message.to_openai() for message in corpus.reference(task)]  # type: ignore[attr-defined]


def test_a_task_without_a_reference_is_no_chat(tmp_path: Path, file: Path) -> None:
    done = run(
        "tasks", "export", "tasks", "--corpus-option", f"file={file}", "-o", tmp_path / "a.txt", "--format", "openai"
    )
    assert (done.exit_code, "ends in .jsonl" in done.stderr) == (2, True)


def test_a_file_and_its_tasks_are_shown(file: Path) -> None:
    done = run("tasks", "show", file, "--json")
    found = json.loads(done.stdout)
    assert (found["tasks"], found["splits"]) == (40, {"evaluation": 30, "validation": 5, "train": 5})
    assert found["environments"]["toolworld-mini-v1"] == 30
    task = cw.corpus("toolworld-mini-v1")["evaluation"][4]
    shown = run("tasks", "show", file, task.id)
    assert json.loads(shown.stdout)["query"] == task.query
    assert "40 tasks" in run("tasks", "show", file).stdout
    assert run("tasks", "show", file, "nobody").exit_code == 2


def test_tasks_that_hold_are_said_to_hold(file: Path) -> None:
    done = run("tasks", "check", file)
    assert (done.exit_code, done.stdout.startswith("40 of 40 tasks hold")) == (0, True), done.output


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ({"chnaged": []}, "There is no part of a goal named 'chnaged'"),
        ({"changed": [{"table": "acounts"}]}, "There is no table of the goal named 'acounts'"),
        (5, "a goal must be an object"),
    ],
)
def test_a_goal_that_nobody_can_read_is_named(tmp_path: Path, goal: Any, said: str) -> None:
    bank = cw.environment("banking")
    call = cw.Call(0, "list_accounts", {"customer_id": "C00001"})
    stated = {"changed": [{"table": "accounts", "must": False}]}
    known = bank.open("typical", seed=1).call(call.tool, dict(call.arguments)).value
    tasks = [
        cw.Task(
            name, "", bank.tools, cw.Answer((known,)), bank, "typical", 1, split="s", depth=1,
            program=cw.Program((call,)), facts={"goal": fact},
        )
        for name, fact in (("good", stated), ("bad", goal))
    ]  # fmt: skip
    path = tmp_path / "goals.jsonl"
    cw.write_tasks(path, tasks)
    done = run("tasks", "check", path)
    assert done.exit_code == 1
    assert "1 of 2 tasks hold" in done.stdout
    assert f"goals.jsonl:3: bad: its goal cannot be read: {said}" in done.stdout


def test_a_file_without_tasks_is_not_told_as_one_that_holds(file: Path, tmp_path: Path) -> None:
    empty = tmp_path / "none.jsonl"
    empty.write_text(file.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    done = run("tasks", "check", empty)
    assert done.exit_code == 2
    assert "none.jsonl holds no tasks" in f"{done.stderr}{done.exception}"


def test_tasks_that_do_not_hold_are_named(file: Path, tmp_path: Path) -> None:
    head, *rows = file.read_text().splitlines()
    task = json.loads(rows[3])
    task["answer"] = ["something else"]
    broken = json.loads(rows[9])
    broken["tools"] = []
    path = tmp_path / "broken.jsonl"
    other = json.loads(rows[11]) | {"tools": ["no_such_tool"]}
    path.write_text("\n".join([head, json.dumps(task), json.dumps(broken), json.dumps(other), rows[20]]) + "\n")
    done = run("tasks", "check", path, "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["tasks"], found["hold"]) == (1, 4, 1)
    assert [one["task"] for one in found["wrong"]] == [task["id"], broken["id"], ""]
    assert [one["place"] for one in found["wrong"]] == [f"{path}:{line}" for line in (2, 3, 4)]
    assert "another value" in found["wrong"][0]["wrong"]
    assert "fails" in found["wrong"][1]["wrong"]
    assert f"{path}:2: {task['id']}: its program returns another value" in run("tasks", "check", path).stdout


def test_every_world_of_a_task_is_tried() -> None:
    task = next(one for one in cw.corpus("depthbench-v1", instances=True)["train"] if one.instances)
    assert complaint(task) is None
    instance = task.instances[0]
    wrong = evolve(task, instances=(evolve(instance, answer=cw.Answer(("other",))),))
    assert "in the instance" in (complaint(wrong) or "")
    assert complaint(evolve(task, program=None)) == NO_PROGRAM
    assert "calls nothing" in (complaint(evolve(task, program=Program(()))) or "")
    assert "fails" in (complaint(evolve(task, program=Program((Call(0, "nothing", {}),)))) or "")


def test_a_program_begins_after_the_opening_of_its_task_and_meets_no_hazards() -> None:
    shop = cw.environment("shopping")
    opening = cw.Opening([cw.InitialCall("add_to_cart", {"variant_id": "V00001"})])
    session = shop.open()
    session.call("add_to_cart", {"variant_id": "V00001"})
    answer = cw.Answer((session.call("view_cart", {}).value,))
    task = cw.Task("t", "", shop.tools, answer, shop, program=Program((Call(0, "view_cart", {}),)), opening=opening)
    assert complaint(task) is None
    assert complaint(evolve(task, hazards=Hazards((Fault("unavailable", 1.0),)))) is None
    assert "returns another value" in (complaint(evolve(task, opening=None)) or "")
    wrong = evolve(task, program=None, opening=cw.Opening([cw.InitialCall("add_to_cart", {"variant_id": "none"})]))
    assert "the opening must execute" in (complaint(wrong) or "")


def test_a_world_that_cannot_be_opened_is_said() -> None:
    task = cw.corpus("worlds-mini-v1")["validation"][0]
    assert "cannot be opened" in (complaint(evolve(task, scenario="nowhere", program=None)) or "")
