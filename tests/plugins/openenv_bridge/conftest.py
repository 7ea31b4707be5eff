"""Environments of ours behind OpenEnv's protocol, each on a port of its own, and servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

#: How long a test waits for a server before it says that there is none.
PATIENCE = 120


class Running:
    """A server in a thread."""

    def __init__(self, serving: Callable[..., Any]) -> None:
        told: queue.Queue[Any] = queue.Queue()

        async def run() -> None:
            self._stopped, self._loop = asyncio.Event(), asyncio.get_running_loop()
            await serving(told.put, self._stopped)

        def main() -> None:
            try:
                asyncio.run(run())
            except BaseException as error:
                told.put(error)

        self._thread = threading.Thread(target=main, daemon=True)
        self._thread.start()
        found = told.get(timeout=PATIENCE)
        if isinstance(found, BaseException):
            raise found
        self.url: str = found

    def stop(self) -> None:
        """End it, and wait for its thread."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture
def serve() -> Iterator[Callable[..., Any]]:
    """``serve(environment, **options)``: its service, with ``url``; stopped after the test."""
    pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[openenv]'")
    pytest.importorskip("websockets", reason="needs websockets: pip install 'callwright[openenv]'")
    from callwright_plugins.openenv_bridge.asgi import Where, serving
    from callwright_plugins.openenv_bridge.service import Service

    running = []

    def start(environment: Any, *, token: str | None = None, **options: Any) -> Any:
        service: Any = Service(environment, **options)
        where = Where(token=token)
        server = Running(lambda listening, stopped: serving(service, where, listening, stopped))
        running.append(server)
        service.url = server.url
        return service

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def speak() -> Iterator[Callable[..., str]]:
    """``speak(answers, schema)``: the URL of a server that answers each message as ``answers(message)`` says.

    A text is sent as it is, anything else as JSON; ``None`` hangs up, and ``...`` says nothing at all.
    """
    pytest.importorskip("websockets", reason="needs websockets: pip install 'callwright[openenv]'")
    from websockets.asyncio.server import serve as listen
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    running = []

    def start(answers: Callable[[Any], Any], schema: Any = None) -> str:
        def page(connection: Any, request: Any) -> Any:
            if request.path == "/ws":
                return None
            found = {"/schema": {"action": schema or {}}, "/metadata": {"name": "E", "description": "Counts."}}
            body = json.dumps(found.get(request.path, {})).encode()
            return Response(200, "OK", Headers({"Content-Length": str(len(body))}), body)

        async def talk(socket: Any) -> None:
            async for text in socket:
                message = json.loads(text)
                if message["type"] == "close":
                    return
                answer = answers(message)
                if answer is None:
                    return
                if answer is not ...:
                    await socket.send(answer if isinstance(answer, str) else json.dumps(answer))

        async def serving(listening: Callable[[str], None], stopped: asyncio.Event) -> None:
            async with listen(talk, "127.0.0.1", 0, process_request=page) as server:
                listening(f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}")
                await stopped.wait()

        server = Running(serving)
        running.append(server)
        return server.url

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def ask() -> Callable[..., tuple[int, Any]]:
    """``ask(url, body)``: status and JSON of a page; with a body it is a POST."""

    def request(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        made = urllib.request.Request(url, data, headers={"Content-Type": "application/json", **headers})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(made, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    return request
