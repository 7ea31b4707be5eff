"""A mixture of what an environment gives and of imported rows: what each kind earns, and where it can go."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.plugins.synthesis.dialogue.talks import played

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.recipe_file import shipped_syntheses
from callwright.training.synthesis.recipe import load_synthesis
from callwright.training.synthesis.work import open_synthesis
from callwright.walk.task_rows.reading import read_rows
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.blueprints.knobs import MIXTURE

#: Rows of When2Call's supervised file and of xLAM-irrelevance, written by us.
LAMPS = {
    "name": "lamp",
    "description": "Switch a lamp.",
    "parameters": {"type": "dict", "properties": {"room": {"type": "str", "description": "Where."}}},
    "required": ["room"],
}
SAID = {
    "Light in the hall, please.": '<TOOLCALL>[{"name": "lamp", "arguments": {"room": "hall"}}]</TOOLCALL>',
    "Switch on a lamp.": "In which room?",
    "How tall is the tower?": "I'm sorry, I can't look that up with the tools I have.",
}
RECIPE = """
name = "mixed"
[synthesis]
environments = ["vehicle"]
count = 30
[synthesis.synthesizer]
name = "grounded"
calls = 1500
cache = {cache!r}
clarifications = 0.3
abstentions = 0.2
[[synthesis.mixture]]
count = 9
[[synthesis.mixture]]
kinds = ["clarification"]
count = 6
[[synthesis.mixture]]
kinds = ["abstention"]
count = 3
[[synthesis.mixture]]
file = {file!r}
count = 4
"""


def ran(*words: str) -> str:
    done = CliRunner().invoke(root, words, obj=App(), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, kept_knowledge: Path) -> Path:
    here = tmp_path_factory.mktemp("mixture")
    rows: list[dict[str, Any]] = [
        {"tools": [LAMPS], "messages": [{"role": "user", "content": one}, {"role": "assistant", "content": other}]}
        for one, other in SAID.items()
    ]
    (here / "w.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tool = {"name": "lamp", "description": "Switch a lamp.", "parameters": {"room": {"type": "str"}}}
    irrelevant = {"id": 1, "query": "Sing a song.", "tools": json.dumps([tool]), "answers": "[]"}
    (here / "x.jsonl").write_text(json.dumps(irrelevant) + "\n")
    file = here / "imported.jsonl"
    ran(
        "prepare",
        "tasks",
        "--when2call",
        str(here / "w.jsonl"),
        "--irrelevance",
        str(here / "x.jsonl"),
        "-o",
        str(file),
    )
    (here / "mixed.toml").write_text(RECIPE.format(cache=str(kept_knowledge), file=str(file)))
    said = ran("synthesize", str(here / "mixed.toml"), "-o", str(here / "mixed"))
    assert "22 tasks in" in said, said
    return here / "mixed"


def test_one_file_has_them_all_in_exact_counts(folder: Path) -> None:
    rows = list(read_rows(folder / "tasks.jsonl")[1])
    kinds = Counter(
        ("imported" if "source" in row["facts"] else "own", row["facts"]["kind"].replace("failing", "task"))
        for row in rows
    )
    assert kinds == {
        ("own", "task"): 9, ("own", "clarification"): 6, ("own", "abstention"): 3,
        ("imported", "call"): 1, ("imported", "clarification"): 1, ("imported", "abstention"): 2,
    }  # fmt: skip
    assert "22 of 22 tasks hold" in ran("tasks", "check", str(folder / "tasks.jsonl"))
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize("ir", ["json", "hermes"])
def test_the_reference_earns_everything_wherever_it_fails_at_nothing(folder: Path, ir: str) -> None:
    seen: Counter[str] = Counter()
    for task in cw.read_tasks(folder / "tasks.jsonl"):
        attempt = played(task, ir).attempt
        calls = len(attempt.trace.records)
        earned = {name: cw.reward(name).score_attempt(attempt).total for name in ("tier", "prove")}
        if all(record.outcome.executed for record in attempt.trace.records):
            assert earned["tier"] == cw.reward("tier").high, task.id
            assert earned["prove"] == pytest.approx(cw.reward("prove").high if calls else 1.0), task.id
            seen[task.facts["kind"]] += 1
        else:  # what fails on purpose costs what failures cost, and all that is due is done
            assert task.facts["recovers"] or task.facts["kind"] == "failing", task.id
            assert earned["prove"] > 1.0, task.id
    assert seen.keys() >= {"task", "clarification", "abstention", "call"}


def test_what_needs_one_turn_earns_everything_of_toolrl(folder: Path) -> None:
    parser, reward = cw.parser("toolrl"), cw.reward("toolrl")
    seen: Counter[str] = Counter()
    for task in cw.read_tasks(folder / "tasks.jsonl"):
        if "source" in task.facts:
            assert task.program is not None
            assert reward.score_attempt(cw.Attempt(task, parser.render(task.program), parser)).total == reward.high
            seen[task.facts["kind"]] += 1
    assert seen == {"call": 1, "clarification": 1, "abstention": 2}


@pytest.mark.parametrize("name", ["mixed.jsonl.gz", "mixed.parquet"])
def test_other_forms_of_the_file_hold_the_same_tasks(folder: Path, tmp_path: Path, name: str) -> None:
    option = f"file={folder / 'tasks.jsonl'}"
    ran("tasks", "export", "tasks", "--corpus-option", option, "-o", str(tmp_path / name))
    before = {row["id"]: row for row in read_rows(folder / "tasks.jsonl")[1]}
    assert {row["id"]: row for row in read_rows(tmp_path / name)[1]} == before


def test_as_chats_they_end_with_what_is_right_to_say_or_to_call(folder: Path, tmp_path: Path) -> None:
    option = f"file={folder / 'tasks.jsonl'}"
    chats = tmp_path / "chats.jsonl"
    ran("tasks", "export", "tasks", "--corpus-option", option, "-o", str(chats), "--format", "openai")
    found = [json.loads(line)["messages"] for line in chats.read_text().splitlines()]
    assert len(found) == 22
    asked = {chat[-2]["content"]: chat[-1] for chat in found if chat[-2]["role"] == "user"}
    for query in ("Switch on a lamp.", "How tall is the tower?"):
        assert asked[query]["content"] == SAID[query]
        assert not asked[query].get("tool_calls")
    assert any(message.get("tool_calls") for chat in found for message in chat)


def test_the_shipped_mixture_is_that_of_the_paper() -> None:
    assert set(shipped_syntheses()) == {"prove-mixture"}
    loaded = load_synthesis("prove-mixture")
    assert tuple(part.count for part in loaded.table.mixture) == MIXTURE
    assert sum(MIXTURE) == 13_517
    here = open_synthesis(loaded, cw.default_registry())
    assert [one.name for one in here.environments] == list(TOOLS)
