"""From the command of a server to tasks and a recipe: with a server of ours, started as anybody's would be."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import UnknownName, UsageError
from callwright_plugins.synthesis.mcp_command import _server, _starts_anew

SERVER = [sys.executable, "-m", "callwright", "env", "serve", "email", "--stdio"]
#: A synthesizer of tasks of one call, which needs no exploring.
PLUGIN = """
import callwright as cw
from callwright.training import Accepted, Unit


class LookUps:
    name = "look-ups"

    def plan(self, materials):
        tools = materials.environment.tools.values()
        fit = sorted(one.name for one in tools if one.read_only and not one.parameters.get("required"))
        return [Unit(f"task-{n}", n, n // len(fit), {"tool": fit[n % len(fit)]}) for n in range(materials.count)]

    def make(self, unit, materials):
        environment, tool = materials.environment, unit.payload["tool"]
        session = environment.open("", unit.seed)
        outcome = session.call(tool, {})
        session.close()
        return Accepted(materials.row(cw.Task(
            id=unit.id, query=environment.tools[tool].description, tools=dict(environment.tools),
            answer=cw.Answer((outcome.value,)), environment=environment, seed=unit.seed, depth=1,
            split="validation" if unit.index % 3 == 0 else "train",
            program=cw.Program((cw.Call(0, tool, {}),)))), {})

    def compare(self, made):
        return [None] * len(made)


@cw.hookimpl
def callwright_synthesizers():
    yield cw.Lazy("look-ups", LookUps, summary="one call")
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "one_call_tasks.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "one_call_tasks"


def run(*words: str) -> Result:
    return CliRunner().invoke(root, list(words), obj=App(), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "variables", "settings", "anew"),
    [
        (["serve", "{workspace}"], [], [], True),
        (["serve"], ["NOTES={workspace}/notes.json"], [], True),
        (["serve"], [], ['cwd="{workspace}"'], True),
        (["serve", "{workspace}"], [], ["reset=workspace"], False),
        (["serve", "{workspace}"], [], ["isolation=shared"], False),
        (["serve"], [], [], False),
        (["serve"], [], ["env=none"], False),  # which is refused in words when the server is to be started
        (["https://example.com/mcp"], [], [], False),
    ],
)
def test_it_is_known_which_server_is_started_anew_for_each_session(
    words: list[str], variables: list[str], settings: list[str], anew: bool
) -> None:
    assert _starts_anew(_server(words, variables, settings)) is anew


def test_a_server_becomes_tasks_chats_a_page_and_a_recipe_that_evaluates(plugin: str, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    out = tmp_path / "mail"
    given = ["--count", "6", "--synthesizer", "look-ups", "--no-probe"]
    given += ["--teacher", "scripted", "--teacher-option", 'lines=[{says = ["Yes."]}]']
    bounded = [*given, "--max-cost", "1", "--", *SERVER]
    refused = run("-p", plugin, "synthesize", "mcp", "-o", str(tmp_path / "bounded"), *bounded)
    assert "--max-cost bounds a teacher that asks a server" in str(refused.exception)
    done = run("-p", plugin, "synthesize", "mcp", "-o", str(out), *given, "--", *SERVER)
    assert done.exception is None, done.output
    assert "6 tasks, 2 of them held out" in done.output
    assert "--yes" not in done.output  # which nobody gave
    assert "reset=workspace" not in done.output  # it has no folder
    with (out / "synthesis.toml").open("rb") as file:
        assert tomllib.load(file)["synthesis"]["teacher"] == {"name": "scripted", "lines": [{"says": ["Yes."]}]}
    assert (out / "tasks" / "report.html").is_file()
    chats = [json.loads(line) for line in (out / "chats.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(chats) == 6
    assert all(chat["tools"] for chat in chats)
    tasks = cw.read_tasks(out / "tasks" / "tasks.jsonl", trust=True)
    assert {name: len(part) for name, part in tasks.splits.items()} == {"train": 4, "validation": 2}
    again = run("-p", plugin, "synthesize", "mcp", "-o", str(out), *given, "--", *SERVER)
    assert again.exception is None, again.output
    recipe = str(out / "train.toml")
    assert "--set model=DIRECTORY" in done.output  # nothing is shown turn by turn, so none is made
    assert run("run", recipe, "--dry-run", "--yes").exception is None
    measured = run("evaluate", "--recipe", str(out / "train.toml"), "--sampler", "gold", "--yes", "--json")
    assert measured.exception is None, measured.output
    assert json.loads(measured.output[measured.output.index("{") :])


def test_what_grounded_makes_of_a_server_is_earned_by_its_reference_alone(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    out = tmp_path / "mail"
    given = ["--count", "8", "--synthesizer-option", "calls=100", "--no-probe"]
    done = run("synthesize", "mcp", "-o", str(out), *given, "--", *SERVER)
    assert done.exception is None, done.output
    tasks = cw.read_tasks(out / "tasks" / "tasks.jsonl", trust=True)
    assert len(tasks) >= 4
    assert {task.environment.name for task in tasks} == {"mcp"}
    assert set(tasks.splits) == {"train", "validation"}  # what is measured before and after is learnt by nobody
    assert "nothing tells whether" not in done.output  # no conversation is planned that nothing could judge
    assert len(list((out / "knowledge").glob("mcp-*"))) == 1
    recipe = str(out / "train.toml")
    with (out / "train.toml").open("rb") as file:
        corpus = tomllib.load(file)["corpus"]
    assert (corpus["name"], corpus["train"], corpus["evaluation"]) == ("compact-tasks", "train", "validation")
    assert run("run", recipe, "--dry-run", "--yes").exception is None
    real = run("run", recipe, "--dry-run", "--yes", "--set", "corpus.name=tasks")
    assert "a tiny model needs a vocabulary" in str(real.exception)  # whoever changes one line is told of the other
    for sampler, least, most in (("gold", 1.0, 1.0), ("no-call", 0.0, 0.5)):
        given = ["--recipe", recipe, "--split", "train", "--sampler", sampler, "--yes", "--json"]
        done = CliRunner().invoke(root, ["evaluate", *given], obj=App())
        assert least <= json.loads(done.stdout)["overall"] <= most, done.output


def test_a_wrong_synthesizer_or_variable_is_said_before_a_server_is_started(tmp_path: Path) -> None:
    command = ["synthesize", "mcp", "-o", str(tmp_path / "x"), "--no-probe"]
    assert isinstance(run(*command, "--synthesizer", "nonsense", "--", "no-such-program").exception, UnknownName)
    assert isinstance(run(*command, "-e", "novalue", "--", "no-such-program").exception, UsageError)
    assert isinstance(run(*command, "--max-cost", "1", "--", "no-such-program").exception, UsageError)
    assert isinstance(run(*command, "--teacher", "nonsense", "--", "no-such-program").exception, UnknownName)
    assert not (tmp_path / "x").exists()
