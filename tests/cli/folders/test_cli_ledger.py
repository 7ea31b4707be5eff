"""Two worlds are never mixed: locks, edited corpora, edited plugins, and what is accepted of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.training.ledger.owner import owned

Invoke = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]
EVALUATE = ("evaluate", "--corpus", "sums-v1", "--sampler", "noisy-gold", "--batch", "4", "-o")

BRIEF = """
import callwright as cw
from cli_fakes import Sums, Format

class Mine(Sums):
    name = "mine-v1"

def recipe():
    return cw.RewardRecipe("brief", (cw.Term(Format(), weight=1.0),))

@cw.hookimpl
def callwright_corpora():
    yield cw.Lazy("mine-v1", "brief_plugin:Mine", "mine")

@cw.hookimpl
def callwright_reward_recipes():
    yield cw.Lazy("brief", "brief_plugin:recipe", "brief")
"""


def test_a_held_folder_is_refused_by_run_and_evaluate_and_can_be_read(
    invoke: Invoke, recipe: Path, tmp_path: Path
) -> None:
    assert invoke("run", recipe, "-o", tmp_path / "run").exit_code == 0
    assert invoke(*EVALUATE, tmp_path / "e").exit_code == 0
    before = (tmp_path / "e" / "verdicts.jsonl").read_bytes()
    with owned(tmp_path / "run"), owned(tmp_path / "e"):
        for words in (("run", tmp_path / "run"), (*EVALUATE, tmp_path / "e")):
            result = invoke(*words)
            assert result.exit_code == 1
            assert f"is being written by process {os.getpid()} on " in result.stderr
        assert invoke("report", tmp_path / "run").exit_code == 0
    assert (tmp_path / "e" / "verdicts.jsonl").read_bytes() == before
    assert invoke(*EVALUATE, tmp_path / "e").exit_code == 0


def test_an_edited_corpus_is_refused_by_its_tasks_or_accepted_in_writing(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cli_fakes

    folder = tmp_path / "e"
    assert invoke(*EVALUATE, folder).exit_code == 0
    lines = (folder / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "verdicts.jsonl").write_bytes(b"".join(lines[:4]))
    made = cli_fakes.Sums._task

    def edited(self: cli_fakes.Sums, split: str, index: int) -> cw.Task:
        from attrs import evolve

        task = made(self, split, index)
        return evolve(task, query=task.query + "!") if index in (3, 7) else task

    monkeypatch.setattr(cli_fakes.Sums, "_task", edited)
    from callwright.plugins import load_plugins
    from callwright_plugins import json_ir, scripted_samplers

    modules = {"json-ir": json_ir, "scripted-samplers": scripted_samplers, "fakes": cli_fakes}
    fresh = load_plugins(extra=modules, entry_points=False)
    result = invoke(*EVALUATE, folder, plugins=fresh)
    assert result.exit_code == 1
    assert "tasks of the split 'validation' (2 changed: validation-3, validation-7)" in result.stderr
    assert (folder / "verdicts.jsonl").read_bytes() == b"".join(lines[:4])
    result = invoke(*EVALUATE, folder, "--accept-changes", plugins=fresh)
    assert result.exit_code == 0, result.stderr
    (noted,) = json.loads((folder / "ledger.json").read_text())["continued"]
    assert "validation-3, validation-7" in noted["changes"][0]["what"]
    assert invoke(*EVALUATE, folder, plugins=fresh).exit_code == 0  # once is enough


def callwright(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    support = str(Path(__file__).parents[1] / "support")
    return subprocess.run(
        [sys.executable, "-m", "callwright", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": support},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_edited_plugin_is_refused_and_a_folder_remembers_it(tmp_path: Path) -> None:
    (tmp_path / "brief_plugin.py").write_text(BRIEF)
    text = (
        'name = "b"\nreward = "brief"\nalgorithm = "nothing"\n[corpus]\nname = "mine-v1"\nevaluation = "validation"\n'
    )
    (tmp_path / "b.toml").write_text(text + '[trainer]\nname = "slow"\nsteps = 2\n')
    words = ("-p", "cli_fakes", "-p", "brief_plugin")
    done = callwright(tmp_path, *words, "run", "b.toml", "-o", "r")
    assert done.returncode == 0, done.stderr
    again = callwright(tmp_path, "run", "r")
    assert again.returncode == 0, again.stderr
    assert "with -p brief_plugin, which r remembers" in again.stderr
    before = (tmp_path / "r" / "metrics.jsonl").read_bytes()
    (tmp_path / "brief_plugin.py").write_text(BRIEF.replace("weight=1.0", "weight=0.5"))
    refused = callwright(tmp_path, *words, "run", "r")
    assert refused.returncode == 1
    assert "the plugin 'brief_plugin', source of the module brief_plugin" in refused.stderr
    assert (tmp_path / "r" / "metrics.jsonl").read_bytes() == before
    (tmp_path / "brief_plugin.py").unlink()
    gone = callwright(tmp_path, "run", "r")
    assert "remembers the plugin brief_plugin, which cannot be imported from here" in gone.stderr
    assert gone.returncode == 2


PHRASES = BRIEF.replace(
    "def recipe():",
    """
class Says(cw.RewardComponent):
    name = "says"
    def __init__(self, phrases):
        with open(phrases) as file:
            self.phrases = file.read().split()
    def score(self, attempt):
        return cw.Score(float(any(phrase in attempt.completion.text for phrase in self.phrases)))

def recipe(phrases):
    return cw.RewardRecipe("brief", (cw.Term(Says(phrases)),))

def unused():""",
)


def test_a_changed_file_that_an_option_names_is_refused_or_accepted_in_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a rubric is to a judge. Nothing else of the recipe changes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "brief_plugin", raising=False)

    def callwright(*words: str) -> Result:
        return CliRunner().invoke(root_command, words, obj=App(), catch_exceptions=False)

    (tmp_path / "brief_plugin.py").write_text(PHRASES)
    (tmp_path / "polite.txt").write_text("please")
    (tmp_path / "b.toml").write_text(
        'name = "b"\nalgorithm = "nothing"\n[corpus]\nname = "mine-v1"\nevaluation = "validation"\n'
        '[reward]\nname = "brief"\nphrases = "polite.txt"\n[trainer]\nname = "slow"\nsteps = 2\n'
    )
    row = {"id": 1, "task": "train-1", "completion": "please"}
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n")
    plugins = ("-p", "cli_fakes", "-p", "brief_plugin")
    run = (*plugins, "run", "b.toml", "-o", "r")
    score = (*plugins, "score", "in.jsonl", "--corpus", "mine-v1", "--recipe", "brief", "-o", "out.jsonl")
    score = (*score, "--recipe-option", "phrases=polite.txt")
    for words in (run, run, score, score):
        done = callwright(*words)
        assert done.exit_code == 0, done.stderr
    (tmp_path / "polite.txt").write_text("please thanks")
    refused = callwright(*run)
    assert refused.exit_code == 1
    assert "the file of reward.phrases (sha256:" in refused.stderr
    again = callwright(*score)
    assert again.exit_code == 2
    assert "is the output of another command (files of the reward was {" in again.stderr
    assert callwright(*run, "--accept-changes").exit_code == 0
    (noted,) = json.loads((tmp_path / "r" / "ledger.json").read_text())["continued"]
    assert [change["what"] for change in noted["changes"]] == ["the file of reward.phrases"]
    assert callwright(*score, "--overwrite").exit_code == 0


def test_changed_weights_are_refused_by_their_file_or_accepted_in_writing(
    invoke: Invoke, recipe: Path, tmp_path: Path
) -> None:
    model, folder = tmp_path / "model", tmp_path / "r"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(bytes(1000))
    recipe.write_text(f'model = "{model}"\n' + recipe.read_text())
    assert invoke("run", recipe, "-o", folder).exit_code == 0
    before = (folder / "ledger.json").read_bytes()
    os.utime(model / "model.safetensors", ns=(1, 1))
    assert invoke("run", folder).exit_code == 0
    assert (folder / "ledger.json").read_bytes() == before
    (model / "model.safetensors").write_bytes(bytes(999) + b"x")
    refused = invoke("run", folder)
    assert refused.exit_code == 1
    assert f"the weights {model}/model.safetensors (" in refused.stderr
    assert "config.json" not in refused.stderr
    assert invoke("run", folder, "--accept-changes").exit_code == 0
    (noted,) = json.loads((folder / "ledger.json").read_text())["continued"]
    assert noted["changes"][0]["what"] == f"the weights {model}/model.safetensors"
    assert invoke("run", folder).exit_code == 0

    known = json.loads((folder / "ledger.json").read_text())
    del known["made_of"]["weights"]  # of an earlier version
    (folder / "ledger.json").write_text(json.dumps(known))
    assert "before its ledger held digests of weights" in invoke("run", folder).stderr
    assert "before its ledger held digests of weights" not in invoke("run", folder).stderr


def test_the_model_of_a_sampler_is_of_the_evaluation(invoke: Invoke, tmp_path: Path) -> None:
    folder, model = tmp_path / "e", tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    words = (*EVALUATE, folder, "--sampler-option", f"path={model}")
    words = tuple("modelled" if word == "noisy-gold" else word for word in words)
    assert invoke(*words).exit_code == 0
    lines = (folder / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "verdicts.jsonl").write_bytes(b"".join(lines[:4]))
    (model / "config.json").write_text("{ }")
    refused = invoke(*words)
    assert refused.exit_code == 1
    assert f"the weights {model}/config.json (" in refused.stderr


def test_doctor_names_a_damaged_row_of_an_evaluation_and_repairs_it(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "e"
    invoke(*EVALUATE, folder)
    whole = (folder / "verdicts.jsonl").read_bytes()
    assert invoke("doctor", folder).exit_code == 0
    lines = whole.splitlines(keepends=True)
    (folder / "verdicts.jsonl").write_bytes(b"".join([*lines[:5], b"oops\n", *lines[6:]]))
    found = json.loads(invoke("doctor", folder, "--json").stdout)
    assert found["damage"] == ["verdicts.jsonl, line 6: not a JSON object, and 6 rows after it"]
    assert found["rows_lost"] == {"verdicts.jsonl": 7}
    assert invoke("doctor", folder).exit_code == 1
    assert invoke("doctor", folder, "--repair").exit_code == 0
    assert invoke("doctor", folder).exit_code == 0  # what was set aside is damaged, and nobody reads it
    assert invoke(*EVALUATE, folder).exit_code == 0
    assert (folder / "verdicts.jsonl").read_bytes() == whole

    aside = (folder / "set-aside-verdicts.jsonl").read_bytes()
    (folder / "verdicts.jsonl").write_bytes(b"oops\n" + whole)
    settings = (folder / "settings.json").read_text()
    (folder / "settings.json").write_text("{")
    assert invoke("doctor", folder, "--repair").exit_code == 1  # for that is damaged as before
    assert (folder / "set-aside-verdicts.jsonl").read_bytes() == aside
    assert (folder / "set-aside-verdicts.jsonl-2").read_bytes() == b"oops\n" + whole
    (folder / "settings.json").write_text(settings)
    assert invoke("doctor", folder).exit_code == 0


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file by name, but for how long attempts took, which differs from start to start."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "seconds.jsonl"}


def test_an_edited_row_of_an_evaluation_is_named_refused_and_made_again(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "e"
    invoke(*EVALUATE, folder)
    whole = bytes_of(folder)
    rows = folder / "verdicts.jsonl"
    lines = whole["verdicts.jsonl"].splitlines(keepends=True)
    edited = lines[5].replace(b'"answer": true', b'"answer": null').replace(b'"answer": false', b'"answer": true')
    edited = edited.replace(b'"answer": null', b'"answer": false')
    assert json.loads(edited)["answer"] is not json.loads(lines[5])["answer"]

    rows.write_bytes(b"".join([*lines[:5], edited, *lines[6:]]))
    refused = invoke(*EVALUATE, folder)
    assert refused.exit_code == 1
    assert f"verdicts.jsonl, line 6: not as it was written, and {len(lines) - 6} rows after it" in refused.stderr
    found = json.loads(invoke("doctor", folder, "--json").stdout)
    assert found["damage"] == [f"verdicts.jsonl, line 6: not as it was written, and {len(lines) - 6} rows after it"]
    assert found["rows_lost"] == {"verdicts.jsonl": len(lines) - 5}
    assert invoke("doctor", folder, "--repair").exit_code == 0
    assert invoke("doctor", folder).exit_code == 0
    (folder / "set-aside-verdicts.jsonl").unlink()
    assert invoke(*EVALUATE, folder).exit_code == 0
    assert bytes_of(folder) == whole

    rows.write_bytes(b"".join(lines[:-2]))  # rows that went, of an evaluation that is done
    found = json.loads(invoke("doctor", folder, "--json").stdout)
    assert found["damage"] == [f"verdicts.jsonl, line {len(lines) - 1}: missing, and 1 rows after it"]
    assert invoke(*EVALUATE, folder).exit_code == 0
    assert bytes_of(folder) == whole

    rows.write_bytes(b"".join([*lines[:5], edited, *lines[6:]]))
    accepted = invoke(*EVALUATE, folder, "--accept-changes")
    assert accepted.exit_code == 0, accepted.stderr
    (noted,) = json.loads((folder / "ledger.json").read_text())["continued"]
    assert "verdicts.jsonl, line 6" in noted["changes"][0]["what"]
    assert invoke(*EVALUATE, folder).exit_code == 0
    assert invoke("doctor", folder).exit_code == 0


def test_two_runs_in_one_folder_make_one(start: Start, recipe: Path, tmp_path: Path) -> None:
    files = ("r/metrics.jsonl", "r/evaluation.json")
    two_make_one(start, ("run", recipe, "-o"), tmp_path, "r", "r/metrics.jsonl", files)


def test_two_evaluations_in_one_folder_make_one(start: Start, tmp_path: Path) -> None:
    words = ("evaluate", "--corpus", "sums-v1", "--sampler", "waits", "--batch", "1", "-o")
    two_make_one(start, words, tmp_path, "e", "e/verdicts.jsonl", ("e/verdicts.jsonl", "e/evaluation.json"))


@pytest.mark.parametrize("workers", [(), ("--workers", "2", "--executor", "process")])
def test_two_scores_into_one_file_make_one(
    start: Start, tmp_path: Path, gold: Callable[[str], str], workers: tuple[str, ...]
) -> None:
    rows = tmp_path / "in.jsonl"
    tasks = [f"train-{index}" for index in (1, 2, 4, 5, 7, 8)]
    rows.write_text("".join(json.dumps({"id": task, "task": task, "completion": gold(task)}) + "\n" for task in tasks))
    words = ("score", rows, "--corpus", "sums-v1", "--recipe", "waits-at-gate", *workers, "-o")
    two_make_one(start, words, tmp_path, "out", "out.ledger.json", ("out", "out.ledger.json"))


def two_make_one(
    start: Start, words: Sequence[str | Path], base: Path, output: str, sign: str, files: Sequence[str]
) -> None:
    """The first waits at a gate until the second was answered; then it ends in what it would have made alone."""
    whole, both, gate = base / "whole", base / "both", base / "gate"
    whole.mkdir()
    both.mkdir()
    alone = start(*words, whole / output)
    _, errors = alone.communicate()
    assert alone.returncode == 0, errors
    first = start(*words, both / output, env={"CLI_FAKES_GATE": str(gate)})
    begun, deadline = both / sign, time.monotonic() + 120
    while not begun.exists() and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    second = start(*words, both / output, env={"CLI_FAKES_GATE": str(gate)})
    _, said = second.communicate()
    assert second.returncode == 1, said
    assert f"is being written by process {first.pid} on " in said
    assert first.poll() is None
    gate.touch()
    _, errors = first.communicate()
    assert first.returncode == 0, errors
    for name in files:
        assert (both / name).read_bytes() == (whole / name).read_bytes()
    assert not list(both.rglob("*.lock"))


def test_a_run_folder_does_not_bring_its_own_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = tmp_path / "brought"
    folder.mkdir()
    for name in ("__init__.py", "evil.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    plugins = {"evil": {"module": "brought.evil", "source": "0" * 64}, "itself": {"module": "brought", "source": "0"}}
    (folder / "ledger.json").write_text(json.dumps({"made_of": {"plugins": plugins}, "continued": []}))
    App().recall(folder)
    said = capsys.readouterr().err
    assert said.count("names a module of its own as a plugin, which is not loaded") == 2
    assert not (tmp_path / "ran").exists()
    assert "brought" not in sys.modules
