"""The official verdicts that are here, by the classes of the official wheels."""

from __future__ import annotations

import ast
import gzip
import json
import tempfile
import zipfile
from pathlib import Path

import pytest

import callwright as cw
from callwright.episodes import Conversation
from callwright.walk.users.kinds import kinds_of
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES, LIMITS
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn

PARSER = cw.parser("json")


@pytest.mark.parametrize(
    ("version", "release", "folder"), [("v3", "2025.8.6.2", "v3_git"), ("v4", "2026.3.23", "v4_package")]
)
def test_verdicts_equal_the_official_ones(
    version: str, release: str, folder: str, official_data: Path, official_wheels: Path
) -> None:
    rows = official_data / "bfcl" / f"official_verdicts_mt_perturbed_{version}.jsonl.gz"
    if not rows.is_file():
        pytest.skip("the official verdicts are not here (CALLWRIGHT_DATA)")
    wheel = official_wheels / f"bfcl_eval-{release}-py3-none-any.whl"
    suite = MultiTurn(version, official_data / "bfcl" / folder, wheel)
    tasks = {task.id: task for category in CATEGORIES for task in suite.tasks(category)}
    known = [json.loads(line) for line in gzip.decompress(rows.read_bytes()).splitlines()]
    attempts = []
    for row in known:
        attempt = suite.answer(row, tasks[row["id"]], PARSER)
        assert attempt is not None
        attempts.append((tasks[row["id"]], attempt))
    found = suite.judge_together(attempts)
    assert [(one.correct, one.error or None) for one in found] == [(row["valid"], row["error_type"]) for row in known]
    assert len(found) == 2432
    suite.close()


def written(text: str, task: cw.Task) -> cw.Call:
    """A gold call as a model would write it: every argument has its name."""
    tree = ast.parse(text.strip(), mode="eval").body
    assert isinstance(tree, ast.Call)
    assert isinstance(tree.func, ast.Name)
    names = list(task.tools[tree.func.id].parameters["properties"])
    given = {name: ast.literal_eval(one) for name, one in zip(names, tree.args, strict=False)}
    return cw.Call(0, tree.func.id, {**given, **{str(one.arg): ast.literal_eval(one.value) for one in tree.keywords}})


@pytest.mark.parametrize(("version", "release"), [("v3", "2025.8.6.2"), ("v4", "2026.3.23")])
def test_gold_calls_are_right_as_the_turns_of_a_model(version: str, release: str, official_wheels: Path) -> None:
    """Lived turn by turn in sessions of the official classes; one entry has no gold calls for its last question."""
    conditions = cw.Conditions(limits=LIMITS, users=kinds_of(cw.default_registry()))
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(official_wheels / f"bfcl_eval-{release}-py3-none-any.whl") as wheel,
    ):
        wheel.extractall(folder)
        suite = MultiTurn(version, Path(folder) / "bfcl_eval" / "data", folder)
        done = PARSER.render(cw.Program(text="Done."))
        wrong = []
        for task in [task for category in CATEGORIES for task in suite.tasks(category)[::5]]:
            talk = Conversation(task, PARSER, (cw.Message.user(task.query),), conditions)
            for calls in suite.entries[task.id].gold:
                for text in (*(PARSER.render(cw.Program((written(call, task),))) for call in calls), done):
                    if not talk.over:
                        talk.accept(cw.Completion(text))
            found = suite.judge(task, talk.attempt)
            talk.close()
            if not found.correct:
                wrong.append((task.id, found))
        assert wrong == []
        suite.close()
