"""Servers for these tests, started by them and ended with them."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SERVERS = Path(__file__).parent / "servers"


@pytest.fixture(scope="session", autouse=True)
def _needs_mcp() -> None:
    pytest.importorskip("mcp", reason="the package mcp is not installed (pip install 'callwright[mcp]')")


@pytest.fixture(scope="session")
def servers() -> Path:
    """The folder of the servers' scripts."""
    return SERVERS


@pytest.fixture(scope="session")
def shelf_world() -> ModuleType:
    """The module of the environment that is served."""
    spec = importlib.util.spec_from_file_location("shelf_world", SERVERS / "shelf_world.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wrap(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """``wrap(*words, **options)``: the environment of a script of this folder; stopped after the test."""
    from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

    made: list[MCPEnvironment] = []

    def wrap(script: str, *words: str, **options: Any) -> MCPEnvironment:
        options.setdefault("pool", 1)
        environment = MCPEnvironment([sys.executable, str(SERVERS / script), *words], **options)
        made.append(environment)
        return environment

    yield wrap
    for environment in made:
        environment.stop()


@pytest.fixture
def serve_http() -> Iterator[Callable[..., str]]:
    """``serve_http(service, **options)``: serves over HTTP on a free port and gives the URL."""
    from callwright_plugins.mcp_servers.serving.transports import HttpOptions, http_server

    running: list[tuple[threading.Thread, asyncio.AbstractEventLoop, asyncio.Event]] = []

    def serve(service: Any, **options: Any) -> str:
        told: queue.SimpleQueue[Any] = queue.SimpleQueue()

        async def main() -> None:
            stopped = asyncio.Event()
            running.append((threading.current_thread(), asyncio.get_running_loop(), stopped))
            try:
                await http_server(service, HttpOptions(**options), told.put, stopped)
            except Exception as error:
                told.put(error)

        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        found = told.get(timeout=120)
        if isinstance(found, BaseException):
            raise found
        url: str = found
        return url

    yield serve
    for thread, loop, stopped in running:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stopped.set)
        thread.join(timeout=120)


def plugin_words() -> list[str]:
    """What makes the command line know the plugin where the installation does not declare it."""
    from importlib import metadata

    declared = {point.value for point in metadata.entry_points(group="callwright")}
    return [] if "callwright_plugins.mcp_servers" in declared else ["-p", "callwright_plugins.mcp_servers"]


@pytest.fixture(scope="session")
def callwright_words() -> list[str]:
    """The command line with the plugin and the environment ``shelf``; run it in the folder of the servers."""
    return [sys.executable, "-m", "callwright", *plugin_words(), "-p", "shelf_world"]


@pytest.fixture(scope="session")
def child_environment() -> dict[str, str]:
    """Variables for child processes."""
    return {**os.environ, "PYTHONWARNINGS": "default", "OMP_NUM_THREADS": "1"}
