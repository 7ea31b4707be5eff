"""Evaluations as logs of Inspect: made by hand, and read back by Inspect itself where it is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli.root import root as command
from callwright.commands.app import App
from callwright.measuring.folders import read_evaluated
from callwright.measuring.inspect_log import inspect_log, log_name
from callwright.measuring.overlap.entries import entry_of_row


@pytest.fixture(scope="module")
def app() -> App:
    return App()


def invoke(app: App, *words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], obj=app)


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
BROKEN = {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{"}}
SAID: list[dict[str, Any]] = [
    {"role": "system", "content": "Call tools."},
    {"role": "user", "content": "Weather in Rome?"},
    {"role": "assistant", "content": None, "reasoning_content": "Rome it is.", "tool_calls": [CALL, BROKEN]},
    {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "sunny"},
    {"role": "assistant", "content": [{"type": "text", "text": "It is sunny."}]},
]


def row(task: str, sample: int, **more: Any) -> dict[str, Any]:
    base = {"id": task, "task": task, "depth": 1, "structure": "none", "answer": False, "valid": True, "failure": ""}
    told = {"masked": False, "sample": sample, "query": "Weather in Rome?", "completion": "It is sunny."}
    return {**base, **told, **more}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ev"
    made.mkdir()
    usage = {"requests": 2, "prompt_tokens": 100, "cached_tokens": 60, "completion_tokens": 7}
    rows = [
        row("a", 0, answer=True, messages=SAID, usage=usage),
        row("a", 1, error="answer:wrong", expected="rain", messages=SAID[1:], truncated=True),
        row("b", 0, masked=True, lost="the worker died"),
    ]
    settings = {"benchmark": "demo:2", "sampler": {"name": "openai", "model": "some/model"}}
    (made / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (made / "verdicts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    stated = {"benchmark": {"why": ["replayed"]}, "values": {"overall": 0.5, "depth 9": None}}
    (made / "evaluation.json").write_text(json.dumps(stated), encoding="utf-8")
    os.utime(made / "settings.json", (0, 0))
    return made


def test_a_log_by_hand(folder: Path) -> None:
    log = inspect_log(read_evaluated(folder))
    assert (log["version"], log["status"]) == (2, "success")
    assert list(log)[:2] + list(log)[-1:] == ["version", "status", "samples"]
    assert {"eval", "plan", "results", "stats"} <= set(log)  # a reader of headers asks for each
    assert (log["eval"]["task"], log["eval"]["task_version"]) == ("demo", "2")
    assert log["eval"]["dataset"]["sample_ids"] == ["a", "b"]
    assert log["eval"]["metadata"]["unofficial"] == ["replayed"]
    (score,) = log["results"]["scores"]
    assert {name: one["value"] for name, one in score["metrics"].items()} == {"accuracy": 0.5, "table: overall": 0.5}
    assert (score["scored_samples"], score["unscored_samples"]) == (2, 1)
    first, second, lost = log["samples"]
    assert [(one["id"], one["epoch"]) for one in log["samples"]] == [("a", 1), ("a", 2), ("b", 1)]
    assert first["messages"] == second["messages"]  # the row of the second leaves the system message out
    assert [one["role"] for one in first["input"]] == ["system", "user"]
    said = first["messages"][2]
    assert said["content"][0] == {"type": "reasoning", "reasoning": "Rome it is."}
    assert said["tool_calls"][0]["arguments"] == {"city": "Rome"}
    assert said["tool_calls"][1]["arguments"] == {}
    assert said["tool_calls"][1]["parse_error"].endswith(": {")
    assert first["model_usage"]["some/model"] == {
        "input_tokens": 40,
        "input_tokens_cache_read": 60,
        "output_tokens": 7,
        "total_tokens": 107,
    }
    assert (first["scores"]["callwright"]["value"], second["scores"]["callwright"]["value"]) == ("C", "I")
    assert (second["target"], second["output"]["choices"][0]["stop_reason"]) == ('"rain"', "max_tokens")
    assert "scores" not in lost
    assert lost["error"]["message"] == "masked: the worker died"
    assert log_name(log) == "1970-01-01T00-00-00+00-00_demo_some-model.json"


def test_an_evaluation_that_was_stopped_is_cancelled(folder: Path) -> None:
    (folder / "evaluation.json").unlink()
    assert inspect_log(read_evaluated(folder))["status"] == "cancelled"


_READ = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log
(one,) = list_eval_logs(sys.argv[1])
header = read_eval_log(one, header_only=True)
log = read_eval_log(one)
assert header.results == log.results and header.samples is None
made = log.samples[0].messages[2]
print(json.dumps({
    "status": log.status, "task": log.eval.task, "model": log.eval.model,
    "accuracy": log.results.scores[0].metrics["accuracy"].value,
    "values": [s.scores["callwright"].value if s.scores else None for s in log.samples],
    "errors": [s.error.message if s.error else None for s in log.samples],
    "call": made.tool_calls[0].arguments, "text": log.samples[0].output.completion,
    "thought": made.content[0].reasoning,
}))
"""


def test_inspect_reads_the_log_back(app: App, folder: Path, tmp_path: Path) -> None:
    # In a process of its own, with whichever Python has it: Inspect's dependencies are many.
    python = os.environ.get("CALLWRIGHT_INSPECT_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed (CALLWRIGHT_INSPECT_PYTHON names a Python that has it)")
    logs = tmp_path / "logs"
    logs.mkdir()
    assert invoke(app, "benchmark", "export", folder, "--format", "inspect", "-o", logs).exit_code == 0
    run = subprocess.run([python, "-c", _READ, str(logs)], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "status": "success",
        "task": "demo",
        "model": "some/model",
        "accuracy": 0.5,
        "values": ["C", "I", None],
        "errors": [None, None, "masked: the worker died"],
        "call": {"city": "Rome"},
        "text": "It is sunny.",
        "thought": "Rome it is.",
    }


def test_a_log_that_is_there_is_replaced_only_where_that_is_asked_for(app: App, folder: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    words = ("benchmark", "export", folder, "--format", "inspect", "-o", logs)
    assert invoke(app, *words).exit_code == 0
    (log,) = logs.iterdir()
    refused = invoke(app, *words)
    assert (refused.exit_code, f"{log} is there already" in refused.stderr) == (2, True)
    assert invoke(app, *words, "--overwrite").exit_code == 0


def test_what_is_no_evaluation_is_said(app: App, tmp_path: Path) -> None:
    found = invoke(app, "benchmark", "export", tmp_path, "--format", "inspect", "-o", tmp_path / "log.json")
    assert (found.exit_code, "is no evaluation" in found.output) == (2, True)
    words = ("--format", "inspect", "--category", "x", "-o", tmp_path / "log.json")
    assert invoke(app, "benchmark", "export", tmp_path, *words).exit_code == 2


def test_tasks_in_the_form_of_bfcl(app: App, tmp_path: Path) -> None:
    words = ("depthbench-v1", "--category", "depth 6", "--format", "bfcl", "-o", tmp_path / "tasks.json")
    assert invoke(app, "benchmark", "export", *words).exit_code == 0
    made = app.registry.create("benchmark", "depthbench-v1").tasks("depth 6")
    rows = [json.loads(line) for line in (tmp_path / "tasks.json").read_text("utf-8").splitlines()]
    assert [one["id"] for one in rows] == [task.id for task in made]
    for one, task in zip(rows, made, strict=True):
        assert set(one) == {"id", "question", "function"}
        assert all(function["parameters"]["type"] == "dict" for function in one["function"])
        found = entry_of_row(one, "x")
        assert (found.prompt, set(found.schemas.values())) == (task.query, set(task.offered))
