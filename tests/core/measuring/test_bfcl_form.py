"""Tasks of several turns in BFCL's form, held against its own files."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.environments import FunctionEnvironment
from callwright.errors import UsageError
from callwright.measuring.benchmark import CorpusBenchmark
from callwright.measuring.bfcl_form import bfcl_row
from callwright.plugins import load_plugins
from callwright.walk.users.kinds import UserKinds


@cw.tool
def sort(file: str) -> str:
    """Sort a file."""
    return file


@cw.tool
def grep(file: str, pattern: str) -> str:
    """Search a file."""
    return file + pattern


FILES = FunctionEnvironment("files", [sort, grep])


def task(*says: Any, **more: Any) -> cw.Task:
    user = cw.UserSpec("replayed", {"says": list(says), "stop": "###STOP###"})
    return evolve(cw.Task("t1", "Find it.", FILES.tools, cw.Answer(), FILES, user=user), **more)


@pytest.fixture(scope="module")
def registry() -> cw.Registry:
    return load_plugins()


@pytest.fixture(scope="module")
def kinds(registry: cw.Registry) -> UserKinds:
    return UserKinds(registry)


def test_each_turn_of_the_user_is_a_list_of_its_own(kinds: UserKinds) -> None:
    row = bfcl_row(task("Sort it.", "", "Thanks. ###STOP###", "never", appear={"sort": 2}), kinds)
    assert row["question"] == [
        [{"role": "user", "content": "Find it."}],
        [{"role": "user", "content": "Sort it."}],
        [],
    ]
    assert [function["name"] for function in row["function"]] == ["grep"]
    assert {turn: [one["name"] for one in tools] for turn, tools in row["missed_function"].items()} == {"2": ["sort"]}
    assert row["missed_function"]["2"][0]["parameters"]["type"] == "dict"
    single = bfcl_row(task(user=None), kinds)
    assert set(single) == {"id", "question", "function"}
    assert single["question"] == [[{"role": "user", "content": "Find it."}]]


@pytest.mark.parametrize("version", ["v3_git", "v4_package"])
def test_the_questions_of_bfcl_come_out_as_they_went_in(kinds: UserKinds, official_data: Path, version: str) -> None:
    compared = silent = 0
    for path in sorted((official_data / "bfcl" / version).glob("BFCL_v*_multi_turn_*.json")):
        for line in path.read_text("utf-8").splitlines():
            official = json.loads(line)
            texts = [turn[0]["content"] if turn else "" for turn in official["question"]]
            assert all(len(turn) <= 1 for turn in official["question"])
            appear = {name: int(turn) for turn, names in official.get("missed_function", {}).items() for name in names}
            spec = FILES.tools["sort"]
            tools = {**FILES.tools, **{name: evolve(spec, name=name) for name in appear}}
            made = bfcl_row(task(*texts[1:], query=texts[0], tools=tools, appear=appear), kinds)
            assert made["question"] == official["question"]
            found = {turn: [one["name"] for one in some] for turn, some in made.get("missed_function", {}).items()}
            assert found == official.get("missed_function", {})
            compared += 1
            silent += "" in texts
    assert compared > 100
    assert silent > 10


def test_tasks_that_the_form_cannot_say_are_refused_by_name(kinds: UserKinds) -> None:
    calling = task({"say": "Done.", "calls": [{"tool": "flip"}]})
    opened = task(opening=cw.Opening([cw.InitialCall("sort", {"file": "a"})]))
    scripted = task(user=cw.UserSpec("scripted", {}))
    for wrong, said in ((calling, "calls 'flip'"), (opened, "opening"), (scripted, "words hang on what the agent")):
        with pytest.raises(UsageError, match=f"task 't1' has .*{said}"):
            bfcl_row(wrong, kinds)


def test_the_command_writes_several_turns(tmp_path: Path) -> None:
    class Files:
        name, environment, splits = "files", FILES, {"evaluation": 1}

        def __getitem__(self, split: str) -> Any:
            return [task("Sort it.")]

        def task(self, task_id: str) -> cw.Task:
            return task("Sort it.")

    class Sorting(CorpusBenchmark):
        """Sorts."""

        name = "sorting"

        def __init__(self, version: str | None = None) -> None:
            super().__init__(Files(), "evaluation", version)

    plugin = SimpleNamespace(callwright_benchmarks=cw.hookimpl(lambda: [cw.Lazy("sorting", Sorting)]))
    app = App(registry=load_plugins(extra={"sorting": plugin}))
    words = ["benchmark", "export", "sorting", "--format", "bfcl", "-o", str(tmp_path / "tasks.json")]
    assert CliRunner().invoke(root, words, obj=app, catch_exceptions=False).exit_code == 0
    (row,) = map(json.loads, (tmp_path / "tasks.json").read_text().splitlines())
    assert row["question"][1] == [{"role": "user", "content": "Sort it."}]
