"""Knowledge is found out once, kept by the tools and by what was asked, and the same when it is read back."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.plugins.synthesis.depot import (
    TOLD,
    Far,
    Gate,
    Parcel,
    _rows,
    close_gate,
    depot,
    fetch_parcel,
    list_parcels,
    open_gate,
    sign_in,
)

import callwright as cw
from callwright.errors import DataError, UsageError
from callwright.plugins import default_registry, load_plugins
from callwright_plugins.synthesis.blueprints import knowledge as module
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, briefly_known, cache_folder, known
from callwright_plugins.synthesis.exploration.explored import explore
from callwright_plugins.synthesis.exploration.tape import Tape
from callwright_plugins.synthesis.graph.building import build


def found_out(cache: Path | None, calls: int = 400) -> Knowledge:
    return known(depot(), registry=default_registry(), calls=calls, cache=cache)


def test_knowledge_is_the_same_from_the_cache_and_is_not_found_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = found_out(tmp_path)
    assert set(first.graph.pairs("information")) >= TOLD
    assert set(first.explored.witnesses) == set(depot().tools)

    def never(*given: object, **named: object) -> None:
        raise AssertionError("explored again")

    monkeypatch.setattr(module, "explore", never)
    assert found_out(tmp_path) == first
    with pytest.raises(AssertionError, match="explored again"):
        found_out(tmp_path, calls=401)


def test_what_is_briefly_known_is_kept_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for cache in (None, tmp_path, tmp_path):
        monkeypatch.setattr(module, "_briefly", {})  # as in a process of its own
        found.append(briefly_known(depot(), registry=default_registry(), cache=cache))
        if cache is not None:
            monkeypatch.setattr(module, "explore", None)
    assert found[0] == found[1] == found[2]
    assert found[0].explored.seeds == (0,)
    assert found[0].graph.edges == ()


def test_a_cache_that_cannot_be_read_is_made_anew(tmp_path: Path) -> None:
    first = found_out(tmp_path)
    (kept,) = tmp_path.iterdir()
    for text in ("", "{}", json.dumps({**first.to_json(), "format": "another"}), '{"format": 3'):
        kept.write_text(text, encoding="utf-8")
        assert found_out(tmp_path) == first
        assert Knowledge.from_json(json.loads(kept.read_text(encoding="utf-8"))) == first


def test_who_finds_out_the_same_at_the_same_time_writes_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = module.write_text, []

    def write_late(path: Path, text: str) -> None:
        written.append(path)
        if len(written) == 1:  # another process begins and ends meanwhile
            with monkeypatch.context() as patch:
                patch.setattr(module.os, "getpid", lambda: 4711)
                found_out(tmp_path)
        write(path, text)

    monkeypatch.setattr(module, "write_text", write_late)
    first = found_out(tmp_path)
    (kept,) = tmp_path.iterdir()
    assert len({kept, *written}) == 3
    assert Knowledge.from_json(json.loads(kept.read_text(encoding="utf-8"))) == first


def test_what_was_explored_is_not_explored_again_where_proving_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, before_proving = Far(disposable=True), []

    def found_out(cache: Path) -> Knowledge:
        server.calls.clear()
        return known(server, registry=default_registry(), calls=400, cache=cache)

    whole = found_out(tmp_path / "whole")

    def proving(*given: Any, **named: Any) -> Any:
        before_proving.append(len(server.calls))
        if len(before_proving) == 1:
            raise KeyboardInterrupt
        return build(*given, **named)

    monkeypatch.setattr(module, "build", proving)
    stopped = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        found_out(stopped)
    (tape,) = stopped.iterdir()
    assert before_proving[0] >= 2 * 400
    found_out(stopped)
    assert before_proving[1] == 0
    assert server.calls
    assert {path.name: path.read_bytes() for path in stopped.iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()
    }
    # What is not of these calls, or of none, is explored anew.
    (kept,) = stopped.iterdir()
    for other in (b"", b"nothing", gzip.compress(b"[]"), cut_tape(calls=401), cut_tape(rows=9), cut_tape(rows=0)):
        kept.unlink()
        tape.write_bytes(other)
        assert found_out(stopped) == whole
        assert [*stopped.iterdir()] == [kept]


def cut_tape(*, calls: int = 400, rows: int | None = None) -> bytes:
    """The tape of so many calls, without what comes after some rows."""
    tape = Tape()
    explore(Far(disposable=True), calls=calls, tape=tape)
    tape.worlds = [world[:rows] for world in tape.worlds]
    with TemporaryDirectory() as folder:
        assert tape.write(Path(folder, "tape"))
        return Path(folder, "tape").read_bytes()


def test_answers_that_json_does_not_tell_as_they_are_are_not_kept(tmp_path: Path) -> None:
    for odd in ((1, 2), {1: 2}, object()):
        assert not Tape([[["call", 1, ["ok", odd, "", ""], "digest"]]]).write(tmp_path / "tape")
    assert not (tmp_path / "tape").exists()


SHED = """
import callwright as cw

@cw.tool(read_only=True)
def look() -> str:
    return "a rake"

@cw.hookimpl
def callwright_environments():
    yield cw.Lazy("shed", lambda: cw.environment("shed", tools=[look]))
"""


def test_what_another_source_of_a_plugin_came_to_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module has no version: whoever edits it finds its environment out anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    told = []
    for text in (SHED, SHED, SHED.replace("rake", "spade")):
        (tmp_path / "shed_plugin.py").write_text(text)
        monkeypatch.delitem(sys.modules, "shed_plugin", raising=False)
        importlib.invalidate_caches()
        registry = load_plugins(extra={"shed_plugin": importlib.import_module("shed_plugin")})
        found = known(registry.create("environment", "shed"), registry=registry, calls=20, cache=tmp_path / "kept")
        told.append([one.examples for one in found.explored.values if one.origin == "result"])
    assert told == [[("a rake",)], [("a rake",)], [("a spade",)]]
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_what_is_no_knowledge_says_so() -> None:
    good = found_out(None).to_json()
    assert Knowledge.from_json(json.loads(json.dumps(good))).to_json() == good
    for bad in (None, {}, {**good, "explored": {}}, {**good, "graph": {}}, {**good, "explored": {"seeds": 3}}):
        with pytest.raises(DataError):
            Knowledge.from_json(bad)


def test_information_needs_two_worlds() -> None:
    with pytest.raises(UsageError, match="two seeds"):
        known(depot(), registry=default_registry(), seeds=(3, 3))


def test_the_cache_is_a_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "callwright" / "knowledge"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().parts[-3:] == (".cache", "callwright", "knowledge")


def test_other_tools_are_another_environment(tmp_path: Path) -> None:
    first = found_out(tmp_path)
    smaller = cw.StatefulEnvironment(
        "depot",
        rows=[Parcel, Gate],
        tools=[list_parcels, sign_in, fetch_parcel, open_gate, close_gate],
        scenarios={"yard": cw.Scenario(_rows, "a yard")},
    )
    again = known(smaller, registry=default_registry(), calls=400, cache=tmp_path)
    assert again.explored.schema != first.explored.schema
    assert "drive_out" in first.graph.tools
    assert "drive_out" not in again.graph.tools
