"""The server of ``callwright view``: this machine only, a token in the address, pages that load nothing from elsewhere.

Pages of other sites can send requests to any port of the machine that shows them. So every request has to name the
token, a host that is this machine's, and, to write a note, the page's own origin.
"""

from __future__ import annotations

import gzip
import hmac
import json
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from callwright.errors import CallwrightError
from callwright_plugins.viewer.answers.notes import exported, write_note
from callwright_plugins.viewer.serving.api import Board

#: What pages may do: run the one script and the one style that come with them, and ask this server.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "app.css": ("app.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
_LARGEST: Final = 100_000
_COMPRESSED: Final = 2_000


def static(name: str) -> bytes:
    """A file of the app."""
    return resources.files("callwright_plugins.viewer").joinpath("static", name).read_bytes()


class Viewer(ThreadingHTTPServer):
    """Serves a board on a port of this machine (0: any that is free). ``url`` is where, with the token."""

    daemon_threads = True

    def __init__(self, board: Board, port: int = 0, host: str = "127.0.0.1") -> None:
        super().__init__((host, port), _Handler)
        self.board = board
        self.token = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://127.0.0.1:{self.server_address[1]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: Viewer
    protocol_version = "HTTP/1.1"
    server_version = "callwright"
    sys_version = ""

    def do_GET(self) -> None:
        """A file of the app, or the answer to a question."""
        path = self._allowed()
        if path is None:
            return
        if path in _FILES:
            name, kind = _FILES[path]
            self._send(HTTPStatus.OK, static(name), kind)
        elif path.startswith("api/"):
            self._answer(lambda: self.server.board.answer(path.removeprefix("api/"), self._asked()))
        else:
            self._send(HTTPStatus.NOT_FOUND, b"there is no such page", "text/plain; charset=utf-8")

    def do_POST(self) -> None:
        """Write a note, or make a file of the marked rows."""
        length = self.headers.get("Content-Length", "")
        given = self.rfile.read(min(int(length), _LARGEST)) if length.isdigit() else b""
        path = self._allowed()
        if path is None:
            return
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.headers.get("Host"):
            self._send(HTTPStatus.FORBIDDEN, b"notes are written from the viewer's own pages", "text/plain")
            return
        try:
            told = json.loads(given)
        except ValueError:
            told = None
        if not isinstance(told, dict) or path not in ("api/note", "api/export"):
            self._send(HTTPStatus.BAD_REQUEST, b"this is no note", "text/plain; charset=utf-8")
        elif path == "api/note":
            self._answer(lambda: self._note(told))
        else:
            self._answer(lambda: self._export(told))

    def _note(self, told: Mapping[str, Any]) -> Any:
        index = self.server.board.index({"source": str(told.get("source", ""))})
        n = told.get("n")
        return write_note(
            index, n if isinstance(n, int) else 0, str(told.get("mark", "")), str(told.get("comment", ""))
        ).to_json()

    def _export(self, told: Mapping[str, Any]) -> Any:
        index = self.server.board.index({"source": str(told.get("source", ""))})
        name, text = exported(index, str(told.get("what", "")))
        return {"name": name, "text": text}

    def _asked(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))

    def _allowed(self) -> str | None:
        """What is asked for below the token; ``None`` where it was refused."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        _, token, path = [*urlsplit(self.path).path.split("/", 2), "", ""][:3]
        if host not in ("127.0.0.1", "localhost", "[::1]"):  # a name that somebody else's DNS points here
            self._send(HTTPStatus.FORBIDDEN, b"the viewer answers to this machine alone", "text/plain")
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(
                HTTPStatus.FORBIDDEN, b"the address has no valid token: take the one that was printed", "text/plain"
            )
        else:
            return path
        return None

    def _answer(self, ask: Any) -> None:
        try:
            status, told = HTTPStatus.OK, ask()
        except CallwrightError as error:
            status, told = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        if told is None:
            status, told = HTTPStatus.NOT_FOUND, {"error": "there is no such row"}
        text = json.dumps(told, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=str)
        self._send(status, text.encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        if len(body) > _COMPRESSED and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal is for people."""
