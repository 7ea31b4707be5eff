"""Limits, budgets and refusals as a command has them, with worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dialects import NO_REFUSALS
from stand_in_server import Faults, Reply, StandIn, chat, usage

KEY = "an-odd-key-of-no-known-form"


def evaluate(there: StandIn, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "callwright", "evaluate", "--corpus", "toolworld-mini-v1", "--split", "evaluation"]
    command += ["--sampler", "openai", "--sampler-option", "model=m", "--sampler-option", f"base_url={there.url}"]
    for name, value in options.items():
        command += ["--sampler-option", f"{name}={value}"]
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    return subprocess.run([*command, *words], capture_output=True, text=True, env=environment, timeout=240)


def test_the_workers_of_a_command_share_its_limit() -> None:
    faults = Faults(0.3, kinds=["429", "500"], seed=3)
    began = time.monotonic()
    with StandIn(lambda asked: chat("no program"), faults=faults, latency=0.02) as there:
        done = evaluate(
            there, "--limit", "40", "--batch", "5", "--workers", "3", "--executor", "process",
            requests_per_minute=480, retries=15,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert there.answered == 40
        assert len(there.asked) > 44
        # 8 a second, 0.2 s early: by then each process alone would have sent them long ago.
        assert there.asked[-1].at - began >= (len(there.asked) - 1) / 8 - 0.2


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
