"""The server: this machine alone, the token, the page's own origin; and what a stranger gets."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.plugins.viewer.conftest import board_of

from callwright_plugins.viewer.serving.server import POLICY, Viewer

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>'


@pytest.fixture
def viewer(own: Path) -> Iterator[Viewer]:
    board = board_of(own)
    with Viewer(board) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
    board.close()


def ask(server: Viewer, path: str, *, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=60)
    try:
        text = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, text, {"Host": address.netloc, **headers})
        answer = connection.getresponse()
        held = answer.read()
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(held) if is_json else held, answer.headers
    finally:
        connection.close()


def test_pages_come_with_the_token_and_a_policy(viewer: Viewer) -> None:
    status, page, headers = ask(viewer, f"/{viewer.token}/")
    assert status == 200
    assert b'src="app.js"' in page
    assert b"<script>" not in page
    assert headers["Content-Security-Policy"] == POLICY
    assert "'unsafe" not in POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    for name in ("app.js", "app.css", "icon.svg"):
        assert ask(viewer, f"/{viewer.token}/{name}")[0] == 200
    assert ask(viewer, f"/{viewer.token}/../../etc/passwd")[0] == 404
    assert ask(viewer, f"/{viewer.token}/nothing")[0] == 404


@pytest.mark.parametrize("path", ["/", "/x/", "/x/api/state", "//api/state", "/api/state"])
def test_without_the_token_there_is_nothing(viewer: Viewer, path: str) -> None:
    status, said, headers = ask(viewer, path)
    assert status == 403
    assert b"token" in said
    assert viewer.token.encode() not in said
    assert headers["Content-Security-Policy"] == POLICY


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example:80", ""])
def test_another_name_for_this_machine_is_refused(viewer: Viewer, host: str) -> None:
    assert ask(viewer, f"/{viewer.token}/api/state", Host=host)[0] == 403


def test_answers_are_those_of_the_board(viewer: Viewer) -> None:
    status, told, _ = ask(viewer, f"/{viewer.token}/api/rows?source=own&q=step%3A1&sort=-total")
    assert status == 200
    assert told == viewer.board.answer("rows", {"source": "own", "q": "step:1", "sort": "-total"})
    status, told, _ = ask(viewer, f"/{viewer.token}/api/rows?source=own&q=steps%3A1")
    assert status == 400
    assert "step" in told["error"]
    assert ask(viewer, f"/{viewer.token}/api/rollout?source=own&n=999")[0] == 404
    assert ask(viewer, f"/{viewer.token}/api/rollout?source=own&n=x")[0] == 400


def test_a_note_is_written_from_the_pages_own_origin_alone(viewer: Viewer, own: Path) -> None:
    note = {"source": "own", "n": 2, "mark": "bad", "comment": HOSTILE}
    path, origin = f"/{viewer.token}/api/note", f"http://127.0.0.1:{viewer.server_address[1]}"
    assert ask(viewer, path, method="POST", body=note, Origin="https://evil.example")[0] == 403
    assert ask(viewer, path, method="POST", body=note, Origin="null")[0] == 403
    assert ask(viewer, "/x/api/note", method="POST", body=note, Origin=origin)[0] == 403
    assert not (own / "notes.jsonl").exists()
    status, told, _ = ask(viewer, path, method="POST", body=note, Origin=origin)
    assert (status, told["comment"]) == (200, HOSTILE)
    assert len((own / "notes.jsonl").read_text("utf-8").splitlines()) == 1
    for odd in (b"{", b"[]", b"\xff", {"source": "own", "n": "2"}, {"source": 3, "n": 1, "mark": "good"}):
        assert ask(viewer, path, method="POST", body=odd, Origin=origin)[0] == 400
    status, told, _ = ask(
        viewer, f"/{viewer.token}/api/export", method="POST", body={"source": "own", "what": "lab"}, Origin=origin
    )
    assert (status, told["name"]) == (200, "own-lab.jsonl")


def test_what_models_wrote_is_never_markup(own: Path) -> None:
    row = json.loads((own / "rollouts.jsonl").read_text("utf-8").splitlines()[0])
    row |= {"completion": HOSTILE, "query": HOSTILE, "task": HOSTILE}
    with (own / "rollouts.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    board = board_of(own)
    with Viewer(board) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        status, told, headers = ask(server, f"/{server.token}/api/rollout?source=own&n=25")
        assert status == 200
        assert headers["Content-Type"] == "application/json"
        assert told["query"] == HOSTILE
        server.shutdown()
        thread.join()
    board.close()
