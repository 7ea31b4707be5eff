"""The command line with the installed plugins: files that they write fit the schemas that the command line prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner, Result

import callwright as cw
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


@pytest.mark.parametrize(
    ("options", "total"),
    [((), 0.0), (("--truncated", "as_is"), 1.0), (("--truncated", "overlong"), 1.0), (("--truncated", "mask"), None),
     (("--floor", "-2"), -2.0), (("--truncated", "as_is", "--floor", "-2"), 1.0)],
)  # fmt: skip
def test_a_row_may_say_that_it_was_cut_off(
    builtin: Callable[..., Result], tmp_path: Path, options: tuple[str, ...], total: float | None
) -> None:
    text = cw.parser("json").render(cw.corpus("toolworld-mini-v1").task("train-3").program) + "and so on " * 260
    row = {"id": 1, "task": "train-3", "completion": text}
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(
        "".join(json.dumps({**row, **more}) + "\n" for more in ({"truncated": True}, {"truncated": False}, {}))
    )
    result = builtin("score", source, "--corpus", "toolworld-mini-v1", *options, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert [json.loads(line)["total"] for line in out.read_text().splitlines()] == [total, 1.0, 1.0]
    assert fits("score-input", source) == fits("score-output", out) == 3


def test_a_row_with_its_ground_truth_may_be_cut_off_too(builtin: Callable[..., Result], tmp_path: Path) -> None:
    truth = "<think> a </think>\n<response> b </response>"
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": 1, "completion": truth, "ground_truth": truth, "truncated": cut} for cut in (True, False)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert builtin("score", source, "--recipe", "toolrl", "-o", out).exit_code == 0
    cut, whole = (json.loads(line)["total"] for line in out.read_text().splitlines())
    assert cut == -3.0 < whole


@pytest.mark.parametrize("policy", ["floor", "as_is", "mask"])
def test_a_run_with_cut_off_rollouts_is_scored_again_as_it_was(
    builtin: Callable[..., Result], tmp_path: Path, policy: str
) -> None:
    """In 8 tokens no completion of an untaught policy ends."""
    pytest.importorskip("torch")
    folder = tmp_path / "run"
    words = (*TINY, f"reward.truncated={policy}", "trainer.steps=5", "trainer.evaluate_every=0", "trainer.group=8")
    words = (*words, "trainer.learning_rate=1e-6")  # it stays untaught
    result = builtin("run", "tier-mini", *(word for one in words for word in ("--set", one)), "-o", folder)
    assert result.exit_code == 0, result.stderr
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["truncated"] > 0.5 for row in metrics] == [True] * 5
    assert [row["alarm"] is None for row in metrics] == [True] * 4 + [False]
    assert all(row.get("masked_cut", 0) == (row["masked"] if policy == "mask" else 0) for row in metrics)
    rows = [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]
    for row in rows:
        assert ("truncated" in row["scores"]) is (policy == "floor" and row["truncated"])
        assert (row["total"] is None) is (policy == "mask" and row["truncated"])
    assert fits("metrics", folder / "metrics.jsonl") == 5
    assert fits("rollouts", folder / "rollouts.jsonl") == len(rows)
    assert fits("manifest", folder / "manifest.json")
    again = builtin("rescore", folder, "--json")
    assert again.exit_code == 0, again.output
    found = json.loads(again.stdout)["replay"]
    assert found["differing"] == 0
    assert found["rewards"] == sum(row["total"] is not None for row in rows)
    page = (folder / "report.html").read_text()
    assert f"<dt>Cut-off completions</dt><dd>{policy}" in page
    assert ("because the length limit cut them off" in page) is (policy == "mask")
    assert builtin("lab", folder, "--recipes", "tier,toolrl,tier-released", "--json").exit_code == 0
