"""The command line with the installed plugins: files that they write fit the schemas that the command line prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner, Result

from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.commands.file_formats import schema_of

TINY = (
    *("trainer.steps=2", "trainer.warm_start.steps=2", "trainer.warm_start.count=24", "trainer.warm_start.batch=4"),
    *("trainer.prompts=2", "trainer.group=2", "trainer.max_new_tokens=8", "trainer.evaluation_tasks=1"),
    *("trainer.evaluate_every=1", "model.tiny.width=16", "model.tiny.heads=2", "model.tiny.layers=1"),
)


@pytest.fixture(scope="module")
def builtin() -> Callable[..., Result]:
    """``builtin("score", …)`` with every installed plugin."""
    app = App()
    app.registry  # noqa: B018 - loads the plugins once for all commands

    def run(*words: str | Path) -> Result:
        arguments = [str(word) for word in words]
        return CliRunner().invoke(root_command, arguments, obj=App(registry=app.registry), catch_exceptions=False)

    return run


def fits(name: str, path: Path) -> int:
    validator = jsonschema_rs.validator_for(schema_of(name))
    if path.suffix == ".json":
        validator.validate(json.loads(path.read_text()))
        return 1
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        validator.validate(row)
    return len(rows)


def test_files_of_a_training_run(builtin: Callable[..., Result], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "run"
    result = builtin("run", "tier-mini", *(word for one in TINY for word in ("--set", one)), "-o", folder)
    assert result.exit_code == 0, result.stderr
    assert fits("metrics", folder / "metrics.jsonl") == 2
    assert fits("rollouts", folder / "rollouts.jsonl") > 0
    assert fits("evaluation", folder / "evaluation.json")
    assert fits("manifest", folder / "manifest.json")
    assert "Accuracy by depth" in result.stdout
    page = (folder / "report.html").read_text()
    for heading in ("Accuracy", "Reward", "Diagnostics", "Warm start", "Rollouts", "Reproduce"):
        assert f"<h2>{heading}</h2>" in page
    for title in ("Executed and answered", "Calls a program", "KL", "Entropy", "Gradient norm", "Length"):
        assert f"<b>{title}</b>" in page


def test_recordings(builtin: Callable[..., Result], tmp_path: Path) -> None:
    corpus = ("--corpus", "toolworld-mini-v1", "--split", "evaluation")
    result = builtin("env", "record", *corpus, "-o", tmp_path / "recording")
    assert result.exit_code == 0, result.stderr
    (path,) = (tmp_path / "recording").glob("*.jsonl")
    assert fits("recording", path) > 100


def test_gold_completions_earn_everything_and_are_explained(builtin: Callable[..., Result], tmp_path: Path) -> None:
    corpus, folder = ("--corpus", "toolworld-mini-v1"), tmp_path / "e"
    options = ("--split", "evaluation", "--limit", "60")
    evaluated = builtin("evaluate", *corpus, *options, "--sampler", "gold", "-o", folder, "--json")
    assert json.loads(evaluated.stdout)["overall"] == 1.0
    scored = json.loads(builtin("score", folder / "verdicts.jsonl", *corpus, "--json").stdout)
    assert scored["mean_total"] == pytest.approx(1.0)
    assert scored["stages"] == {"done": 60}
    first = json.loads((folder / "verdicts.jsonl").read_text().splitlines()[-1])
    explained = builtin("explain", *corpus, "--task", first["task"], "--completion", first["completion"])
    assert explained.exit_code == 0
    assert explained.stdout.splitlines()[-1] == "total 1"


def test_built_in_plugins_pass_the_check(builtin: Callable[..., Result]) -> None:
    result = builtin("plugins", "check", "--quick")
    assert result.exit_code == 0, result.stdout
