"""Limits, budgets and refusals as a command has them, with worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from dialects import NO_REFUSALS
from grants import Grants, environment, most_in
from stand_in_server import Faults, Reply, StandIn, chat, usage

KEY = "an-odd-key-of-no-known-form"


def evaluate(
    there: StandIn, *words: str, plugins: Sequence[str] = (), **options: Any
) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "callwright",
        *plugins,
        "evaluate",
        "--corpus",
        "toolworld-mini-v1",
        "--split",
        "evaluation",
    ]
    command += ["--sampler", "openai", "--sampler-option", "model=m", "--sampler-option", f"base_url={there.url}"]
    for name, value in options.items():
        command += ["--sampler-option", f"{name}={value}"]
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    return subprocess.run([*command, *words], capture_output=True, text=True, env=environment, timeout=240)


def test_the_workers_of_a_command_share_its_limit(monkeypatch: pytest.MonkeyPatch, grants: Grants) -> None:
    monkeypatch.setenv("PYTHONPATH", environment(grants.path)["PYTHONPATH"])
    faults = Faults(0.3, kinds=["429", "500"], seed=3)
    with StandIn(lambda asked: chat("no program"), faults=faults, latency=0.02) as there:
        done = evaluate(
            there, "--limit", "40", "--batch", "5", "--workers", "3", "--executor", "process",
            plugins=("-p", "grants"), requests_per_minute=960, retries=15,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert there.answered == 40
        assert len(there.asked) == len(grants.times()) > 44
        # 16 a second, 0.2 s early: three that know nothing of each other begin 48.
        assert most_in(grants.times(), 1.0) <= 16 * (1 + 0.2) + 1


def test_a_budget_ends_the_command_resumably(tmp_path: Path) -> None:
    answer = chat("no program", counted=usage(1000, 10))
    options = {"price_prompt": 1.0, "price_completion": 1.0, "max_new_tokens": 10}
    words = ("--limit", "30", "--batch", "3", "-o", str(tmp_path / "out"), "--workers", "2", "--executor", "process")
    with StandIn(lambda asked: answer) as there:
        done = evaluate(there, *words, max_cost=0.02, **options)
        assert done.returncode == 1, done.stderr
        assert "spent" in done.stderr
        assert "Traceback" not in done.stderr
        paid = there.answered
        assert 0 < paid * 1010 / 1e6 <= 0.02
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY in path.read_text("utf-8", "replace")]


def test_a_wrong_key_ends_the_command_after_one_request() -> None:
    status, body = NO_REFUSALS["key"]
    body = {"error": {**body["error"], "message": f"{body['error']['message']} You sent {KEY}."}}
    with StandIn(lambda asked: Reply(body, status)) as there:
        done = evaluate(there, "--limit", "30", concurrency=1)
        assert (done.returncode, len(there.asked)) == (2, 1), done.stderr
        assert "REDACTED" in done.stderr
        assert KEY not in done.stderr + done.stdout
