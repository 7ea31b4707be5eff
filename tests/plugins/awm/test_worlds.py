"""Worlds of Agent World Model, on small files that we wrote in their format: no world of theirs is in this repository.

The format is what Snowflake-Labs/agent-world-model reads: a row a scenario in ``gen_envs.jsonl`` (``full_code``),
``gen_db.jsonl`` (``db_schema``) and ``gen_sample.jsonl`` (``sample_data``).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.awm.lamps import write_world

import callwright as cw
from callwright.environments.isolated.placing import place
from callwright.errors import DataError, UnknownName
from callwright.testing import check_component

for _package in ("fastapi", "sqlalchemy", "httpx"):
    pytest.importorskip(_package, reason="pip install 'callwright[awm]'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_world(tmp_path)
    return tmp_path


@pytest.fixture
def world(folder: Path) -> Any:
    return cw.environment("awm", data=folder, world="smart_lamps")


@pytest.fixture
def session(world: Any) -> Iterator[Any]:
    opened = world.open()
    yield opened
    opened.close()


def test_tools_are_the_operations(world: Any) -> None:
    assert world.name == "awm/smart_lamps"
    assert list(world.tools) == ["list_lamps", "set_level"]
    spec = world.tools["set_level"]
    assert "Set how bright a lamp is." in spec.description
    assert {name: one["type"] for name, one in spec.parameters["properties"].items()} == {
        "lamp_id": "integer",
        "level": "integer",
    }
    assert sorted(spec.parameters["required"]) == ["lamp_id", "level"]


def test_calls_read_and_write_the_database(session: Any) -> None:
    assert session.call("list_lamps", {"room": "hall"}).value == [{"id": 1, "room": "hall", "level": 0}]
    assert session.call("set_level", {"lamp_id": 2, "level": 7}).value == {"id": 2, "level": 7}
    assert [one["level"] for one in session.call("list_lamps", {}).value] == [0, 7]


@pytest.mark.parametrize(
    ("tool", "given", "kind", "said"),
    [
        ("set_level", {"lamp_id": 9, "level": 7}, "execution_error", "Lamp not found"),
        ("set_level", {"lamp_id": 1, "level": 101}, "execution_error", "Too bright"),
        ("set_level", {"lamp_id": 1}, "schema_error", "level"),
        ("dim", {}, "unknown_tool", "dim"),
    ],
)
def test_failures_are_told_and_undone(session: Any, tool: str, given: Any, kind: str, said: str) -> None:
    before = session.digest()
    outcome = session.call(tool, given)
    assert (outcome.kind, said in outcome.message) == (kind, True)
    assert session.digest() == before
    assert session.call("set_level", {"lamp_id": 1, "level": 3}).executed


def test_sessions_and_forks_are_worlds_of_their_own(world: Any, session: Any) -> None:
    fresh = session.digest()
    session.call("set_level", {"lamp_id": 1, "level": 3})
    fork, other = session.fork(), world.open()
    assert (other.digest(), fork.digest()) == (fresh, session.digest())
    fork.call("set_level", {"lamp_id": 1, "level": 4})
    assert session.call("list_lamps", {"room": "hall"}).value[0]["level"] == 3
    for one in (fork, other):
        one.close()
        one.close()


def test_it_travels_to_another_process(world: Any) -> None:
    assert list(pickle.loads(pickle.dumps(world)).tools) == ["list_lamps", "set_level"]


def test_it_passes_the_kit(world: Any) -> None:
    check_component("environment", world)


def test_its_code_runs_in_processes(world: Any) -> None:
    assert place(world, "auto", None) is not None


def test_what_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(UnknownName, match="smart_lamps"):
        cw.environment("awm", data=folder, world="lamps")
    (folder / "gen_envs.jsonl").write_text(json.dumps({"scenario": "smart_lamps", "full_code": "1/0"}), "utf-8")
    with pytest.raises(DataError, match="ZeroDivisionError"):
        cw.environment("awm", data=folder, world="smart_lamps")
    (folder / "gen_db.jsonl").unlink()
    with pytest.raises(DataError, match="gen_db"):
        cw.environment("awm", data=folder, world="smart_lamps")
