"""Sessions over a service: what it answers becomes an outcome, and what it does not answer masks the sample."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.environments.backends import CheckpointedService, HTTPService
from callwright.errors import UsageError
from callwright.testing import checks_for


class Counters(BaseHTTPRequestHandler):
    """A service with a counter for each session."""

    worlds: ClassVar[dict[str, dict[str, Any]]] = {}
    kept: ClassVar[dict[str, dict[str, Any]]] = {}

    def log_message(self, *_: Any) -> None: ...

    def _answer(self, status: int, value: Any) -> None:
        said = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _do(self, method: str) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        name = self.headers["X-Session"]
        path = self.path.partition("?")[0]
        if path == "/session" and method == "POST":
            self.worlds[name] = {"count": [{"id": 1, "value": body["seed"]}]}
            return self._answer(200, {})
        if path == "/session":
            return self._answer(200, {"closed": self.worlds.pop(name, None) is not None})
        if path == "/state":
            return self._answer(200, self.worlds[name])
        if path == "/checkpoint":
            if method == "POST":
                self.kept[name] = deepcopy(self.worlds[name])
            elif method == "PUT":
                self.worlds[name] = self.kept.pop(name)
            return self._answer(200, b"")
        world = self.worlds[name]["count"][0]
        if path == "/add":
            world["value"] += body["by"]
            if body["by"] > 100:
                return self._answer(409, {"code": "TOO_MUCH", "message": "at most 100"})
            if body["by"] == 13:
                return self._answer(503, {})
            if body["by"] == 17:
                return self._answer(200, b"<html>")
            return self._answer(200, {"value": world["value"]})
        return self._answer(404, b"nothing")

    def do_GET(self) -> None:
        self._do("GET")

    def do_POST(self) -> None:
        self._do("POST")

    def do_PUT(self) -> None:
        self._do("PUT")

    def do_DELETE(self) -> None:
        self._do("DELETE")


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counters)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@cw.tool
def add(service: HTTPService, /, by: int) -> dict[str, int]:
    """Count on."""
    found: dict[str, int] = service.request("POST", "/add", body={"by": by})
    return found


@cw.tool
def lose(service: HTTPService, /) -> None:
    """Ask for what is not there."""
    service.request("GET", "/nothing", query={"page": 2})


def environment(base: str, kind: type[HTTPService] = CheckpointedService) -> FunctionEnvironment:
    return FunctionEnvironment("counters", [add, lose], state=lambda scenario, seed: kind(base, scenario, seed))


def test_calls_change_the_session_alone_and_failures_are_taken_back(base: str) -> None:
    one, other = environment(base).open("", 5), environment(base).open("", 5)
    assert one.call("add", {"by": 2}).value == {"value": 7}
    assert other.call("add", {"by": 1}).value == {"value": 6}
    before = one.digest()
    outcome = one.call("add", {"by": 101})
    assert (outcome.kind, outcome.code, outcome.message) == ("execution_error", "TOO_MUCH", "at most 100")
    assert one.digest() == before
    assert one.call("lose", {}).code == "http_404"
    for session in (one, other):
        session.close()
        session.close()
    assert Counters.worlds == {}


def test_without_a_checkpoint_a_failed_call_leaves_what_it_did(base: str) -> None:
    session = environment(base, HTTPService).open("", 5)
    before = session.digest()
    session.call("add", {"by": 101})
    assert session.digest() != before
    session.close()


@pytest.mark.parametrize("by", [13, 17])
def test_a_service_that_fails_masks_the_sample(base: str, by: int) -> None:
    session = environment(base).open("", 5)
    with pytest.raises(cw.InfrastructureFailure):
        session.call("add", {"by": by})
    session.close()


def test_the_diff_is_by_rows(base: str) -> None:
    session: Any = environment(base).open("", 5)
    session.call("add", {"by": 2})
    assert session.diff() == {"count": {"changed": {"1": {"value": [5, 7]}}}}
    session.close()


def test_nobody_answers() -> None:
    with pytest.raises(cw.InfrastructureFailure, match=r"127\.0\.0\.1:9/session"):
        environment("http://127.0.0.1:9").open()


@pytest.mark.parametrize(("base", "limit", "said"), [("ftp://x", 1.0, "begins with http"), ("http://x", 0, "above 0")])
def test_bad_options_are_told(base: str, limit: float, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        HTTPService(base, time_limit=limit)


def test_the_kit_finds_nothing(base: str) -> None:
    made = environment(base)
    for check in checks_for("environment"):
        if "pickles" not in check.name:  # this module cannot be found by its name elsewhere
            check(made)


def test_a_session_says_that_it_cannot_travel(base: str) -> None:
    session = environment(base).open()
    with pytest.raises(UsageError, match="is a live connection"):
        pickle.dumps(session)
    session.close()
