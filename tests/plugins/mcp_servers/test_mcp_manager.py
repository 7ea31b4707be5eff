"""Several servers together: sync, asyncio, sent to other processes; health and sessions by id."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, NameClash, UnknownName
from callwright_plugins.mcp_servers.manager import MCPManager
from callwright_plugins.mcp_servers.sessions import SessionGone


@pytest.fixture
def command(servers: Path) -> Callable[..., dict[str, Any]]:
    return lambda *words, **options: {
        "command": [sys.executable, str(servers / "odd_server.py"), *words],
        "pool": 2,
        "warm": 0,
        **options,
    }


@pytest.fixture
def manager(command: Callable[..., dict[str, Any]], shelf_world: ModuleType) -> Iterator[MCPManager]:
    servers = {"notes": command("plain"), "readers": command("readers"), "shelf": shelf_world.ShelfWorld()}
    with MCPManager(servers) as manager:
        yield manager


def test_nothing_is_started_before_it_is_used(manager: MCPManager) -> None:
    assert manager.names == ["notes", "readers", "shelf"]
    assert [health.running for health in manager.health().values()] == [False, False, True]
    manager.start("readers")
    assert manager.health("readers")["readers"].answers is True
    assert manager.health("notes")["notes"].processes == 0


def test_sessions_by_id(manager: MCPManager) -> None:
    one, other, shelf = manager.open("notes"), manager.open("notes"), manager.open("shelf", "full", 3)
    assert len({one, other, shelf}) == 3
    assert manager.call(one, "add_note", {"text": "a"}).kind == "ok"
    assert manager.call(other, "list_notes", {}).kind == "empty"
    assert manager.call(shelf, "list", {}).value == ["vase"]
    first = manager.digest(shelf)
    manager.call(shelf, "put", {"name": "cup"})
    assert manager.digest(shelf) != first
    manager.reset(shelf)
    assert manager.digest(shelf) == first
    manager.reset(one)
    assert manager.call(one, "list_notes", {}).kind == "empty"
    assert manager.health("notes")["notes"].sessions == 2
    assert manager.close(one)
    assert not manager.close(one)
    with pytest.raises(UnknownName, match="session"):
        manager.call(one, "list_notes", {})


def test_what_a_tool_raises_is_an_outcome(manager: MCPManager) -> None:
    shelf = manager.open("shelf")
    assert manager.call(shelf, "raise_error", {}).code == "RuntimeError"
    assert manager.call(shelf, "break_down", {}).kind == "infrastructure_error"


def test_asyncio(manager: MCPManager) -> None:
    async def rollout(number: int) -> tuple[Any, Any]:
        ids = [await manager.aopen("notes"), await manager.aopen("shelf", "full", number)]
        await manager.acall(ids[0], "add_note", {"text": str(number)})
        found = (await manager.acall(ids[0], "list_notes", {})).value, (await manager.adigest(ids[1]))
        await manager.areset(ids[0])
        assert (await manager.acall(ids[0], "list_notes", {})).kind == "empty"
        assert all([await manager.aclose(id) for id in ids])
        return found

    async def main() -> Any:
        await manager.astart()
        assert "list_notes" in await manager.atools("notes")
        found = await asyncio.gather(*(rollout(number) for number in range(5)))  # more than there are processes
        health = await manager.ahealth()
        await manager.astop()
        return found, health

    found, health = asyncio.run(main())
    assert [notes for notes, _ in found] == [[str(number)] for number in range(5)]
    assert len({digest for _, digest in found}) == 5
    assert (health["notes"].answers, health["notes"].sessions, health["notes"].isolation) == (True, 0, "process")
    assert health["readers"].isolation == "shared"
    assert manager.health("notes")["notes"].running is False


def test_stopping_closes_sessions_and_starting_again_works(manager: MCPManager) -> None:
    id, shelf = manager.open("notes"), manager.open("shelf")
    manager.stop("notes")
    with pytest.raises(UnknownName):
        manager.call(id, "list_notes", {})
    assert manager.call(shelf, "list", {}).kind == "empty"
    assert manager.call(manager.open("notes"), "list_notes", {}).kind == "empty"


def test_health_tells_of_crashes(manager: MCPManager) -> None:
    id = manager.open("notes")
    assert manager.call(id, "crash", {}).kind == "infrastructure_error"
    health = manager.health("notes")["notes"]
    assert (health.crashed, health.retried, health.masked) == (2, 1, 1)
    assert "went away during crash" in health.last_error


def test_sessions_are_bounded(shelf_world: ModuleType) -> None:
    manager = MCPManager({"shelf": shelf_world.ShelfWorld()}, capacity=2)
    ids = [manager.open("shelf") for _ in range(3)]
    with pytest.raises(SessionGone, match="to make room"):
        manager.call(ids[0], "list", {})
    assert manager.call(ids[2], "list", {}).kind == "empty"


def test_registered_environments() -> None:
    manager = MCPManager({"world": "toolworld-mini-v1"})
    manager.add("again", "toolworld-mini-v1")
    id = manager.open("again", "Paris|18|EUR|Oslo")
    assert manager.call(id, "GetLocation", {}).executed
    with pytest.raises(NameClash):
        manager.add("again", "toolworld-mini-v1")
    with pytest.raises(UnknownName):
        MCPManager({"x": "no-such-environment"}).open("x")
    with pytest.raises(cw.UsageError, match="options belong"):
        manager.add("x", {"url": "http://127.0.0.1:9"}, scale=1)
    with pytest.raises(cw.UsageError, match="unexpected keyword"):
        MCPManager({"x": {"comand": ["a"]}}).open("x")
    with pytest.raises(UnknownName, match="server"):
        manager.open("worlds")


def elsewhere(manager: MCPManager) -> tuple[str, Any]:
    id = manager.open("notes")
    manager.call(id, "add_note", {"text": "there"})
    value = manager.call(id, "list_notes", {}).value
    manager.stop()
    return id, value


def test_a_manager_can_be_sent_to_a_worker(command: Callable[..., dict[str, Any]]) -> None:
    """As Ray does: pickled by value, used in a fresh process."""
    with MCPManager({"notes": command("plain")}) as manager:
        here = manager.open("notes")
        manager.call(here, "add_note", {"text": "here"})
        with multiprocessing.get_context("spawn").Pool(1) as workers:
            _, there = workers.apply(elsewhere, (manager,))
        assert there == ["there"]
        assert manager.call(here, "list_notes", {}).value == ["here"]
        copy = pickle.loads(pickle.dumps(manager))
        assert copy.health()["notes"].running is False


def test_servers_of_a_client_configuration(tmp_path: Path, servers: Path) -> None:
    path = tmp_path / "claude_desktop_config.json"
    words = [str(servers / "odd_server.py"), "plain", "{workspace}"]
    entry = {"command": sys.executable, "args": words, "env": {"NOTES": "x"}}
    path.write_text(json.dumps({"mcpServers": {"notes": entry, "web": {"url": "http://127.0.0.1:9/mcp"}}}))
    with MCPManager.from_config(path, pool=1) as manager:
        assert manager.names == ["notes", "web"]
        assert manager.call(manager.open("notes"), "where", {}).value == "/workspace/inside and x"
    for text, words_ in (("{", "Expecting"), ("{}", "mcpServers"), ('{"mcpServers": {"a": {}}}', "neither a command")):
        path.write_text(text)
        with pytest.raises(DataError, match=words_):
            MCPManager.from_config(path)


@pytest.mark.slow
def test_ray_workers(command: Callable[..., dict[str, Any]]) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed (pip install 'callwright[ray]')")
    manager = MCPManager({"notes": command("plain")})

    def work(manager: Any, text: str) -> Any:
        id = manager.open("notes")
        manager.call(id, "add_note", {"text": text})
        value = manager.call(id, "list_notes", {}).value
        manager.stop()
        return value

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    try:
        remote = ray.remote(work)
        assert ray.get([remote.remote(manager, text) for text in ("a", "b")]) == [["a"], ["b"]]
    finally:
        ray.shutdown()
