"""Servers at a URL: what was done there has been done, and what they answer is bounded too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
ANSWERS = {
    "huge": b'{"content":[{"type":"text","text":"%s"}]}' % (b"x" * 300_000),
    "broken": rb'{"content":[{"type":"text","text":"\ud800"}]}',
    "fine": b'{"content":[{"type":"text","text":"fine"}]}',
}


class Remote(ThreadingHTTPServer):
    """A server of the older protocol in one connection for each request."""

    daemon_threads = True

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.release = threading.Event()  # of what takes too long
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"


class Handler(BaseHTTPRequestHandler):
    server: Remote

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = asked.get("method")
        if "id" not in asked:
            self.answer(b"", 202)
        elif method == "initialize":
            about = {"name": "remote", "version": "1"}
            found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
            self.result(asked["id"], json.dumps(found).encode())
        elif method == "tools/list":
            idempotent = {"idempotentHint": True}
            listed = [{"name": name, "description": name, "inputSchema": NOTHING} for name in ("pay", *ANSWERS)]
            listed.append({**listed[0], "name": "set", "annotations": idempotent})
            self.result(asked["id"], json.dumps({"tools": listed}).encode())
        elif method == "tools/call":
            name = asked["params"]["name"]
            self.server.calls.append(name)
            if name in ("pay", "set"):
                self.server.release.wait(60)
            self.result(asked["id"], ANSWERS.get(name, ANSWERS["fine"]))
        else:
            self.answer(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no"}}' % asked["id"])

    def result(self, id: int, result: bytes) -> None:
        self.answer(b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (id, result))

    def answer(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.answer(b"")


@pytest.fixture
def remote() -> Iterator[Remote]:
    server = Remote()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()
    thread.join(timeout=120)


def wrapped(remote: Remote, **options: Any) -> MCPEnvironment:
    return MCPEnvironment(url=remote.url, legacy=True, isolation=options.pop("isolation", "connection"), **options)


@pytest.mark.parametrize("isolation", ["connection", "shared"])
def test_nothing_is_done_twice_at_a_url(remote: Remote, isolation: str) -> None:
    environment = wrapped(remote, isolation=isolation, time_limit=1.0, retries=2)
    try:
        session = environment.open()
        assert session.call("fine", {}).kind == "ok"
        found = session.call("pay", {})
        assert (found.kind, found.code) == ("infrastructure_error", "timeout")
        assert "may have happened" in found.message
        assert remote.calls == ["fine", "pay"]
        again = environment.open()
        assert again.call("set", {}).code == "timeout"  # it says that twice is once
        assert remote.calls == ["fine", "pay", "set", "set", "set"]
    finally:
        environment.stop()


@pytest.mark.parametrize(("tool", "code"), [("huge", "too_large"), ("broken", "protocol")])
def test_answers_of_a_url_are_bounded_and_read(remote: Remote, tool: str, code: str) -> None:
    environment = wrapped(remote, reply_limit=100_000)
    try:
        session = environment.open()
        found = session.call(tool, {})
        assert (found.kind, found.code) == ("infrastructure_error", code)
        assert remote.calls == [tool]
        assert environment.open().call("fine", {}).value == "fine"
    finally:
        environment.stop()
