"""What leaves a synthesis: its file of tasks in the forms and bridges of trainers, each read by the package itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App

RECIPE = """
name = "talks"

[synthesis]
environments = ["video_meeting"]
count = 6

[synthesis.synthesizer]
name = "grounded"
calls = 1500
gates = false
several_servers = 0.0
clarifications = 0.0
"""


def run(*words: Any) -> Result:
    done = CliRunner().invoke(root, [*map(str, words)], obj=App())
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exports")
    (path / "talks.toml").write_text(RECIPE)
    run("synthesize", path / "talks.toml", "-o", path / "talks")
    return path / "talks" / "tasks.jsonl"


def chosen(file: Path) -> list[str]:
    return ["--corpus-option", f"file={file}"]


def test_chats_are_read_by_datasets_with_tools_and_calls_in_the_order_of_what_they_need(
    file: Path, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package: pip install 'callwright[trl]'")
    run("tasks", "export", "tasks", *chosen(file), "-o", tmp_path / "chats.jsonl", "--format", "openai")
    lines = [json.loads(line) for line in (tmp_path / "chats.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 6
    for line in lines:
        answered: set[str] = set()
        for message in line["messages"]:
            if message["role"] == "tool":
                answered.add(message["tool_call_id"])
        asked = [call["id"] for message in line["messages"] for call in message.get("tool_calls") or ()]
        assert sorted(asked) == sorted(answered)
        called = {call["function"]["name"] for message in line["messages"] for call in message.get("tool_calls") or ()}
        assert called <= {tool["function"]["name"] for tool in line["tools"]}
    # Arguments have other members in each row, which a column of structs cannot hold: texts are what trainers take.
    texts = [{"messages": json.dumps(line["messages"]), "tools": json.dumps(line["tools"])} for line in lines]
    read = datasets.Dataset.from_list(texts)
    assert [json.loads(one["messages"])[0]["role"] for one in read] == [line["messages"][0]["role"] for line in lines]


def test_parquet_is_read_by_datasets_and_says_what_the_lines_say(file: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package: pip install 'callwright[trl]'")
    run("tasks", "export", "tasks", *chosen(file), "-o", tmp_path / "tasks.parquet")
    read = datasets.Dataset.from_parquet(str(tmp_path / "tasks.parquet"), cache_dir=str(tmp_path / "cache"))
    tasks = list(cw.read_tasks(file))
    assert [(one["id"], one["query"]) for one in read] == [(task.id, task.query) for task in tasks]
    assert json.loads(read[0]["facts"])["gold"] == tasks[0].facts["gold"]
    assert [task.facts for task in cw.read_tasks(tmp_path / "tasks.parquet")] == [task.facts for task in tasks]


def test_trl_has_a_row_and_a_reward_for_each_task(file: Path) -> None:
    pytest.importorskip("trl", reason="needs the package: pip install 'callwright[trl]'")
    from callwright_plugins import trl_bridge

    corpus = cw.corpus("tasks", file=str(file))
    data = trl_bridge.dataset(corpus, "train", "json")
    assert data["task_id"] == [task.id for task in corpus["train"]]
    task = next(one for one in corpus["train"] if one.program is not None and one.program.calls)
    place = data["task_id"].index(task.id)
    gold = cw.parser("json").render(task.program)
    reward = trl_bridge.reward("tier", corpus=corpus)
    best, worst = reward([data["prompt"][place]] * 2, [gold, "no idea"], None, task_id=[task.id] * 2)
    assert best == 1.0 > worst


def test_verl_reads_rows_whose_ground_truth_is_scored(file: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the package: pip install 'callwright[data]'")
    from callwright_plugins import verl_bridge

    run("verl-export", "tasks", tmp_path / "verl.parquet", *chosen(file))
    rows = parquet.read_table(tmp_path / "verl.parquet").to_pylist()
    corpus = cw.corpus("tasks", file=str(file))
    assert [row["reward_model"]["ground_truth"] for row in rows] == [task.id for task in corpus["train"]]
    (tmp_path / "recipe.toml").write_text(
        f'name = "r"\nreward = "tier"\ncorpus = {{ name = "tasks", file = {json.dumps(str(file))}, train = "train", '
        'evaluation = "train" }\n'
    )
    score = verl_bridge.compute_score(str(tmp_path / "recipe.toml"))
    task = next(one for one in corpus["train"] if one.program is not None and one.program.calls)
    assert score(rows[0]["data_source"], cw.parser("json").render(task.program), task.id, {})["score"] == 1.0
    assert score(rows[0]["data_source"], "no idea", task.id, {})["score"] < 1.0


def test_openrlhf_is_handed_each_task_once_before_any_again(file: Path, tmp_path: Path) -> None:
    done = run(
        "run", "tier-cpu", "--set", "trainer={name='openrlhf'}", "--set", "model=/models/none", "--set", "corpus=tasks",
        "--set", f"corpus.file={file}", "--set", "corpus.train=train", "--set", "corpus.evaluation=train",
        "-o", tmp_path / "run", "--dry-run", "--json",
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["unsupported"] == []
    assert any(one["path"].endswith("train.jsonl") for one in told["files"])
    from callwright_plugins.openrlhf_trainer.export import draw

    tasks = cw.corpus("tasks", file=str(file))["train"]
    drawn = [task.id for task in draw(tasks, None, 2 * len(tasks), 0)]
    assert sorted(drawn[: len(tasks)]) == sorted(drawn[len(tasks) :]) == sorted(task.id for task in tasks)


@pytest.mark.parametrize(
    "words",
    [
        ["tasks", "export", "worlds-mini-v1", "--limit", "1", "-o"],
        ["corpus", "export", "depthbench-v1", "--split", "validation", "-o"],
        ["benchmark", "export", "depthbench-v1", "--category", "depth 6", "-o"],
    ],
)
def test_what_is_there_already_is_not_replaced_unasked(tmp_path: Path, words: list[str]) -> None:
    there = tmp_path / "tasks.jsonl"
    there.write_text("precious")
    words = [*words, str(there)]
    done = CliRunner().invoke(root, words, obj=App())
    assert (done.exit_code, there.read_text()) == (2, "precious")
    assert "is there already: name another file, or replace it with --overwrite" in done.output
    run(*words, "--overwrite")
    assert there.read_text() != "precious"
