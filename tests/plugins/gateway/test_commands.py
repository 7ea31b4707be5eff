"""``callwright evaluate --agent`` and ``callwright gateway``, as their users give them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai", reason="needs OpenAI's client: pip install 'callwright[openai]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[gateway]'")

AGENT = str(Path(__file__).parent / "support" / "plain_agent.py")
BARE = str(Path(__file__).parent / "support" / "bare_agent.py")
CALL = {"name": "FindRestaurants", "arguments": '{"location": "Lima"}'}


class Stub(BaseHTTPRequestHandler):
    """A model server: one call, then an answer."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said: dict[str, Any] = {"role": "assistant", "content": "done"}
        if not any(message["role"] == "assistant" for message in body["messages"]):
            said = {"role": "assistant", "tool_calls": [{"id": "theirs", "type": "function", "function": CALL}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        written = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A model server, as options of the sampler ``openai``."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    stub = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    thread = threading.Thread(target=stub.serve_forever)
    thread.start()
    url = f"base_url=http://127.0.0.1:{stub.server_port}/v1"
    yield ["--sampler", "openai", "--sampler-option", "model=m", "--sampler-option", url]
    stub.shutdown()
    stub.server_close()
    thread.join()


def callwright(*words: str) -> list[str]:
    return [sys.executable, "-m", "callwright", *words]


def test_an_agent_is_evaluated_and_goes_on_where_it_was(server: list[str], tmp_path: Path) -> None:
    command = callwright(
        "evaluate", "--corpus", "toolworld-mini-v1", "--ir", "hermes", "--split", "evaluation", "--limit", "3",
        "--turns", "5", "--agent", f"{sys.executable} {AGENT}", *server, "-o", str(tmp_path / "e"), "--json",
    )  # fmt: skip
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    assert found["n"] == 3
    assert "sk-secret" not in made.stdout + made.stderr
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert json.loads(again.stdout)["overall"] == found["overall"]
    rows = [json.loads(line) for line in (tmp_path / "e" / "verdicts.jsonl").read_text().splitlines()]
    assert len(rows) == 3


def test_an_agent_may_read_what_its_calls_came_to(server: list[str], tmp_path: Path) -> None:
    command = callwright(
        "evaluate", "--corpus", "toolworld-mini-v1", "--ir", "hermes", "--split", "evaluation", "--limit", "1",
        "--agent", f"{sys.executable} {BARE}", *server, "-o", str(tmp_path / "e"),
    )  # fmt: skip
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    row = json.loads((tmp_path / "e" / "verdicts.jsonl").read_text())
    assert len(row["completions"]) == 2
    assert json.loads((tmp_path / "e" / "settings.json").read_text())["turns"] == {"assistant_turns": 64}
    alone = [word if word != str(tmp_path / "e") else str(tmp_path / "one") for word in command]
    made = subprocess.run([*alone, "--turns", "1"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "completions" not in json.loads((tmp_path / "one" / "verdicts.jsonl").read_text())


def test_how_an_agent_died_is_said(server: list[str]) -> None:
    command = callwright(
        "evaluate", "--corpus", "toolworld-mini-v1", "--ir", "hermes", "--split", "evaluation", "--limit", "2",
        "--agent", f"{sys.executable} {BARE} dies", *server,
    )  # fmt: skip
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 1, made.stderr
    assert "2: the agent ended with status 1: no such luck" in made.stdout


def test_an_agent_needs_a_model() -> None:
    command = callwright("evaluate", "--corpus", "toolworld-mini-v1", "--agent", "python x")
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stdout) == (2, "")
    assert "--agent needs --sampler" in made.stderr


def test_sessions_are_served_until_they_are_stopped(server: list[str], tmp_path: Path) -> None:
    rows = tmp_path / "sessions.jsonl"
    command = callwright(
        "gateway", "--corpus", "toolworld-mini-v1", "--task", "evaluation-16", *server, "--reward", "tier",
        "-o", str(rows),
    )  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        with urllib.request.urlopen(f"{where['OPENAI_BASE_URL']}/chat/completions", body, timeout=20) as answer:
            said = json.load(answer)["choices"][0]["message"]
        (call,) = said["tool_calls"]
        assert (call["id"], call["function"]) == ("call_s1_1", CALL)
        url = f"{where['CALLWRIGHT_TOOLS_URL']}/FindRestaurants"
        request = urllib.request.Request(url, CALL["arguments"].encode(), {"x-call-id": call["id"]})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert json.load(answer)["is_error"] is False
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    row = json.loads(out)
    assert json.loads(rows.read_text()) == row
    assert (row["turns"], row["findings"], row["reward"]) == (1, [], 0.5)


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_served(
    server: list[str], tmp_path: Path
) -> None:
    asked = callwright("gateway", "--corpus", "toolworld-mini-v1", "--task", "evaluation-16", *server)
    for output in (tmp_path, tmp_path / "missing" / "sessions.jsonl"):
        made = subprocess.run([*asked, "-o", str(output)], capture_output=True, text=True, check=False, timeout=120)
        assert made.returncode == 2
        assert made.stdout == ""
        assert f"{output} cannot be written" in made.stderr
