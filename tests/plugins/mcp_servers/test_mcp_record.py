"""Records of served calls: what is written, and that what is read back scores and replays as it went."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import DataError, UsageError
from callwright.walk.tasks import Answer
from callwright_plugins.mcp_servers.connecting.connection import _session_request
from callwright_plugins.mcp_servers.serving.record import Record, read_record
from callwright_plugins.mcp_servers.serving.service import Service, make_server
from callwright_plugins.mcp_servers.wire import DIGEST, OUTCOME, SCENARIO, SEED, SESSION
from callwright_plugins.mcp_servers.wire import Answer as Answer_


def serve(world: Any, path: Path, work: Any, **options: Any) -> Any:
    from mcp import Client

    service = Service(world, record=Record.at(path), **options)

    async def main() -> Any:
        async with Client(make_server(service)) as client:
            return await work(client)

    try:
        return asyncio.run(main())
    finally:
        service.close()


async def manage(client: Any, id: str, op: str, **more: str) -> None:
    request, result = _session_request(op, {SESSION: id}, more)
    await client.session.send_request(request, result)


def test_what_was_recorded_replays(shelf_world: ModuleType, tmp_path: Path) -> None:
    async def calls(client: Any) -> Any:
        mine = {SESSION: "a", SCENARIO: "full", SEED: 3}
        first = await client.call_tool("put", {"name": "cup"}, meta=mine)
        await client.call_tool("put", {}, meta=mine)
        await client.call_tool("list", {}, meta={SESSION: "b"})
        await manage(client, "a", "fork", to="c")
        await client.call_tool("take", {"name": "cup"}, meta=mine)
        await client.call_tool("list", {}, meta={SESSION: "c"})
        await manage(client, "a", "reset")
        asked = await client.call_tool("list", {}, meta={**mine, DIGEST: True})
        return first, asked

    path = tmp_path / "record.jsonl"
    world = shelf_world.ShelfWorld()
    first, asked = serve(world, path, calls)
    assert "digest" not in first.meta[OUTCOME]  # the client did not ask
    assert asked.meta[OUTCOME]["digest"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = read_record(path)
    assert [(one.session, [call.tool for call in one.calls]) for one in found] == [
        ("a", ["put", "put", "take"]),
        ("b", ["list"]),
        ("c", ["put", "put", "list"]),
        ("a", ["list"]),
    ]
    assert [call.outcome.kind for call in found[0].calls] == ["ok", "schema_error", "ok"]
    assert (found[0].scenario, found[0].seed) == ("full", 3)
    for session in found:
        task = cw.Task("t", "?", world.tools, Answer(), world, scenario=session.scenario, seed=session.seed)
        attempt = cw.Attempt.told(task, cw.parser("hermes"), session.turns())
        again = cw.replay(attempt)
        assert again.same, str(again)
    forged = evolve(found[0], calls=[evolve(found[0].calls[0], digest="of another state")])
    task = cw.Task("t", "?", world.tools, Answer(), world, scenario="full", seed=3)
    assert not cw.replay(cw.Attempt.told(task, cw.parser("hermes"), forged.turns())).same
    task = cw.Task("t", "?", world.tools, Answer(), world)  # in another world it goes otherwise
    assert not cw.replay(cw.Attempt.told(task, cw.parser("hermes"), found[0].turns())).same


def test_what_is_not_cheap_is_recorded_without_digests(shelf_world: ModuleType, tmp_path: Path) -> None:
    async def calls(client: Any) -> None:
        await client.call_tool("put", {"name": "cup"}, meta={SESSION: "a"})
        await client.call_tool("stuck", {}, meta={SESSION: "a"})
        await client.call_tool("list", {}, meta={SESSION: ""})  # refused: it came to no session

    path = tmp_path / "record.jsonl"
    serve(shelf_world.ShelfWorld(pure=False), path, calls, time_limit=1.0)
    put, stuck = (json.loads(line) for line in path.read_text().splitlines())
    assert "digest" not in put
    assert (stuck["kind"], stuck["code"], stuck["seconds"] > 0.2) == ("infrastructure_error", "timeout", True)
    (session,) = read_record(path)
    put_turn, stuck_turn = session.turns()
    assert put_turn.trace is not None
    assert stuck_turn.trace is not None
    assert [turn.trace.records[0].outcome.kind for turn in (put_turn, stuck_turn)] == ["ok", "unknown"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "2: not a row of JSON"),
        ("[]", "names no session"),
        ('{"session": "a", "scenario": "", "seed": true, "tool": "t", "arguments": {}, "kind": "ok"}', "whole number"),
        ('{"session": "a", "scenario": "", "seed": 1, "tool": "t", "arguments": [], "kind": "ok"}', "an object"),
        ('{"session": "a", "scenario": "", "seed": 1, "tool": "t", "arguments": {}, "kind": "fine"}', "no kind"),
    ],
)
def test_what_is_no_record_is_said_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text('{"session": "a", "op": "close"}\n' + line + "\n")
    with pytest.raises(DataError, match=words) as caught:
        read_record(path)
    assert f"{path}:2" in str(caught.value)


def test_anything_that_clients_send_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record = Record.at(path)
    odd = {"text": "\ud800 \u00e9\n", "number": float("inf")}
    record.call("a", ("", 0), "put", odd, Answer_(cw.Outcome("ok", odd)), 0.1)
    record.close()
    (session,) = read_record(path)
    assert (session.calls[0].arguments, session.calls[0].outcome.value) == (odd, odd)


def test_a_full_disk_ends_the_record_and_nothing_else() -> None:
    said: list[str] = []
    record = Record.at("/dev/full", said.append)
    for _ in range(3):
        record.managed("a", "reset")
    assert len(said) == 1
    assert "/dev/full: it could not be written and ends here: No space left" in said[0]


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        Record.at(tmp_path / "no" / "folder")
    with pytest.raises(DataError, match="cannot be read"):
        read_record(tmp_path / "nothing")
