"""Lock files: written once, compared ever after, every difference said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from callwright.errors import DataError
from callwright_plugins.mcp_servers.connecting.connection import Description
from callwright_plugins.mcp_servers.wrapping.locking import LOCK_FILE, check_lock, drift, listing_hash, write_lock

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "read", "description": "Read.", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
    {"name": "write", "description": "Write.", "inputSchema": SCHEMA},
]
SERVER = Description("files", "1.0", "2026-07-28", None, TOOLS)


def changed(**changes: Any) -> Description:
    return evolve(SERVER, tools=[TOOLS[0], {**TOOLS[1], **changes}])


def test_a_server_is_recorded_once_and_then_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mcp.lock"
    check_lock(path, "files", "files .", SERVER)
    written = path.read_bytes()
    check_lock(path, "files", "files .", SERVER)
    check_lock(path, "files", "files .", evolve(SERVER, protocol="2025-11-25", tools=TOOLS[::-1]))
    assert path.read_bytes() == written
    check_lock(path, "others", "others", evolve(SERVER, name="others"))
    assert sorted(json.loads(path.read_text())["servers"]) == ["files", "others"]
    check_lock(tmp_path, "files", "files .", SERVER)
    assert (tmp_path / LOCK_FILE).is_file()


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        (evolve(SERVER, version="1.1"), ["server_version: '1.0' -> '1.1'"]),
        (evolve(SERVER, name="filez"), ["server: 'files' -> 'filez'"]),
        (evolve(SERVER, tools=TOOLS[:1]), ["tool write: gone"]),
        (evolve(SERVER, tools=[*TOOLS, {"name": "move", "inputSchema": {}}]), ["tool move: new"]),
        (changed(description="Write!"), ['tool write, description: "Write." -> "Write!"']),
        (
            changed(inputSchema={**SCHEMA, "properties": {"path": {"type": "string", "maxLength": 9}, "mode": {}}}),
            [
                "tool write, inputSchema.properties.mode: nothing -> {}",
                "tool write, inputSchema.properties.path.maxLength: nothing -> 9",
            ],
        ),
        (changed(annotations={"readOnlyHint": True}), ['tool write, annotations: nothing -> {"readOnlyHint": true}']),
        (changed(inputSchema={**SCHEMA, "required": []}), ['tool write, inputSchema.required: ["path"] -> []']),
    ],
)
def test_every_difference_is_said(tmp_path: Path, now: Description, lines: list[str]) -> None:
    path = tmp_path / "mcp.lock"
    write_lock(path, "files", "files .", SERVER)
    assert list(drift(json.loads(path.read_text())["servers"]["files"], now)) == lines
    before = path.read_bytes()
    with pytest.raises(DataError) as caught:
        check_lock(path, "files", "files .", now)
    assert all(line in str(caught.value) for line in lines)
    assert path.read_bytes() == before
    assert (listing_hash(now) != listing_hash(SERVER)) == (now.tools != SERVER.tools)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "not a lock file"),
        ("[]", "it has no servers"),
        ('{"version": 7, "servers": {}}', "version 7"),
        ('{"version": 1, "servers": {"files": 1}}', "is not an object"),
    ],
)
def test_files_that_are_no_lock_files(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mcp.lock"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        check_lock(path, "files", "files .", SERVER)
    assert path.read_text() == text


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        check_lock(tmp_path / "no" / "mcp.lock", "files", "files .", SERVER)


def test_a_server_that_drifted_is_not_started(wrap: Callable[..., Any], tmp_path: Path) -> None:
    lock = tmp_path / "mcp.lock"
    wrap("odd_server.py", "plain", lock=lock).start()
    wrap("odd_server.py", "plain", lock=lock).open().close()
    drifted = wrap("odd_server.py", "newer", lock=lock)
    with pytest.raises(DataError, match=r"server_version: '1' -> '9'"):
        drifted.start()
    assert drifted.processes == 0
    wrap("odd_server.py", "newer", lock=lock, lock_name="another").start()
