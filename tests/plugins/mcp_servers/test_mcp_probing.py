"""The probe finds what is wrong with servers that were written to be wrong, and nothing wrong with the others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.tools.validation import check_arguments
from callwright_plugins.mcp_servers.connecting.connection import Target
from callwright_plugins.mcp_servers.probing.inventing import Inventor
from callwright_plugins.mcp_servers.probing.probe import probe
from callwright_plugins.mcp_servers.probing.report import Report

SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("add_note", {"text": "canary"}),
    ("remove", {"text": "canary"}),
    ("forget", {"text": "ghost"}),
    ("list_notes", {}),
    ("count_notes", {}),
]


def probed(servers: Path, *words: str, **options: Any) -> Report:
    options.setdefault("script", SCRIPT)
    target = Target((sys.executable, str(servers / "odd_server.py"), *words))
    return probe(target, time_limit=0.5, **options)


class Heard:
    """What a reporter was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def start(self, stage: str, total: int, done: int = 0) -> None:
        self.told.append(f"start {total - done}")

    def advance(self, units: int = 1, **figures: float) -> None:
        self.told.append("step")

    def say(self, text: str) -> None:
        """Nothing is to be said."""

    def finish(self) -> None:
        self.told.append("finish")


def verdicts(report: Report) -> dict[str, str]:
    return {rung.isolation: rung.verdict for rung in report.rungs}


def tools(findings: Any) -> set[str]:
    return {finding.tool for finding in findings}


@pytest.fixture(scope="module")
def honest(servers: Path) -> Report:
    return probed(servers, "plain", "{workspace}")


def test_sessions_that_see_one_another(honest: Report, servers: Path) -> None:
    assert verdicts(honest) == {"meta": "leaks", "process": "isolated"}
    assert honest.recommended.startswith('isolation = "process"')


def test_a_server_that_leaks_even_between_processes(servers: Path, tmp_path: Path) -> None:
    report = probed(servers, "plain", str(tmp_path))  # its notes are not in the workspace
    assert verdicts(report)["process"] == "leaks"
    assert report.recommended.startswith("none is safe")


def test_a_server_without_memory(servers: Path) -> None:
    heard = Heard()
    report = probed(servers, "readers", script=[], reporter=heard)
    assert heard.told == ["start 5", *["step"] * 5, "finish"]
    assert verdicts(report) == {"meta": "unknown", "process": "unknown"}
    assert report.recommended.startswith('isolation = "shared"')


def test_a_served_environment(servers: Path) -> None:
    report = probe(
        Target((sys.executable, str(servers / "shelf_world.py"), "impatient")),
        script=[("put", {"name": "canary"}), ("list", {})],
        time_limit=10.0,
    )
    assert report.declares_sessions
    assert verdicts(report) == {"meta": "isolated", "process": "isolated"}
    assert report.recommended.startswith('isolation = "meta"')
    assert report.not_read_only == []
    assert report.nondeterministic == []


def test_tools_that_do_not_repeat_themselves(honest: Report) -> None:
    assert tools(honest.nondeterministic) == {"clock"}


def test_honest_annotations_are_believed(honest: Report) -> None:
    assert honest.not_read_only == []


def test_a_tool_that_changes_what_it_lists(servers: Path) -> None:
    report = probed(servers, "liar", "{workspace}")
    assert tools(report.not_read_only) == {"list_notes"}
    assert "workspace" in report.not_read_only[0].what


def test_a_tool_that_counts_its_calls_in_memory(servers: Path) -> None:
    report = probed(servers, "counting", script=[("count_notes", {})])
    assert tools(report.not_read_only) == {"count_notes"}
    assert tools(report.nondeterministic) == {"clock"}  # it counts the same in every process


def test_calls_that_succeed_and_change_nothing(honest: Report) -> None:
    assert "forget" in tools(honest.no_ops)
    assert "add_note" not in tools(honest.no_ops)


def test_what_is_not_there_is_deleted_with_success(honest: Report) -> None:
    found = {finding.tool: finding for finding in honest.no_ops}["remove"]
    assert "ghost-" in found.call
    assert found.what.endswith("changed nothing that could be seen")  # other calls of it did change something
    assert "ghost-" not in str(honest.never_succeeded)


def test_a_seed_draws_the_same_calls_in_every_process(servers: Path) -> None:
    program = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from callwright_plugins.mcp_servers.connecting.connection import Target\n"
        "from callwright_plugins.mcp_servers.probing.probe import probe\n"
        "report = probe(Target((sys.executable, sys.argv[1], 'plain', '{workspace}')), time_limit=0.5)\n"
        "print([(found.tool, found.what, found.call) for found in report.no_ops + report.never_succeeded])\n"
    )

    def told(hash_seed: str) -> str:
        run = subprocess.run(
            [sys.executable, "-c", program, str(servers / "odd_server.py")],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        return re.sub(r"\d{12,}", "a time", run.stdout)  # what the tool clock answered is used in later calls

    assert told("1") == told("2") == told("3")


def test_crashes_are_noted(honest: Report) -> None:
    assert "called once and not compared: crash({}): crashed" in honest.notes
    assert "called once and not compared: hang({}): timeout" in honest.notes


def test_nothing_that_may_change_is_called_without_leave(servers: Path, tmp_path: Path) -> None:
    report = probed(servers, "plain", str(tmp_path), script=[])
    assert {"add_note", "forget", "wipe", "crash", "fail"} <= set(report.not_called)
    assert list(tmp_path.iterdir()) == []
    assert "add_note" not in probed(servers, "plain", str(tmp_path), script=[], anything=True).not_called


def test_scratch_folders_are_deleted(
    honest: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    probed(servers, "readers", "{workspace}", script=[])
    assert [path for path in tmp_path.iterdir() if path.name.startswith("callwright-")] == []


def test_scripts_are_checked(servers: Path) -> None:
    with pytest.raises(cw.UsageError, match="no tool of this server"):
        probed(servers, "plain", script=[("nothing", {})])
    with pytest.raises(cw.UsageError, match="add_note"):
        probed(servers, "plain", script=[("add_note", {"text": 1})])


def test_a_server_that_does_not_start(servers: Path) -> None:
    with pytest.raises(cw.InfrastructureFailure, match="never starts"):
        probed(servers, "dead")


# Inventing ------------------------------------------------------------------------------------------------------------

ROW: dict[str, Any] = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
SCHEMAS: list[dict[str, Any]] = [
    {"properties": {"path": {"type": "string"}, "head": {"type": "number"}}, "required": ["path"]},
    {"properties": {"a": {"enum": ["x", "y"]}, "b": {"const": 3}}, "required": ["a", "b"]},
    {"properties": {"n": {"type": "integer", "minimum": 5, "maximum": 6}}, "required": ["n"]},
    {"properties": {"when": {"type": "string", "format": "date-time"}}, "required": ["when"]},
    {"properties": {"rows": {"type": "array", "minItems": 2, "items": ROW}}, "required": ["rows"]},
    {"properties": {"x": {"anyOf": [{"type": "null"}, {"type": "boolean"}]}}, "required": ["x"]},
    {"properties": {"timezone": {"type": "string"}}, "required": ["timezone"]},
    {},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("plain", [True, False])
def test_invented_arguments_fit(schema: dict[str, Any], plain: bool) -> None:
    spec = cw.ToolSpec("tool", "", {"type": "object", **schema})
    inventor = Inventor(Random(1), "/workspace", ["/workspace/a.txt"])
    for _ in range(20):
        arguments = inventor.arguments(spec, plain=plain, reads=True)
        assert arguments is not None
        assert check_arguments(spec, arguments) == ()
        if "path" in arguments:
            assert arguments["path"].startswith("/workspace")


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (SCHEMAS[0], ["/workspace/ghost-"]),
        (SCHEMAS[4], ["ghost-"]),
        ({"properties": {"id": {"type": "integer"}}, "required": ["id"]}, ["987654321"]),
        (SCHEMAS[1], None),
        ({"properties": {"id": {"type": "integer", "maximum": 5}}, "required": ["id"]}, None),
        ({}, None),
    ],
)
def test_ghosts_are_named_where_something_can_be(schema: dict[str, Any], found: list[str] | None) -> None:
    inventor = Inventor(Random(1), "/workspace", heard={"known": None})
    drawn = inventor.ghostly(cw.ToolSpec("tool", "", {"type": "object", **schema}))
    assert (drawn is None) is (found is None)
    assert all(words in str(drawn) for words in found or ())
    assert "ghost-" not in str(inventor.arguments(cw.ToolSpec("t", "", SCHEMAS[4]), plain=True, reads=True))


def test_the_same_seed_invents_the_same() -> None:
    spec = cw.ToolSpec("tool", "", {"type": "object", **SCHEMAS[4]})
    drawn = [[Inventor(Random(3), "/w").arguments(spec, plain=False, reads=False) for _ in range(3)] for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_what_cannot_be_invented_is_none() -> None:
    spec = cw.ToolSpec("tool", "", {"properties": {"a": {"type": "string", "pattern": "^Q{40}$"}}, "required": ["a"]})
    assert Inventor(Random(1), "/w").arguments(spec, plain=True, reads=True) is None


def test_places_of_the_workspace_are_left_as_they_were(servers: Path, tmp_path: Path) -> None:
    template = tmp_path / "template"
    template.mkdir()
    (template / "notes.json").write_text('["kept"]')
    copy = tmp_path / "copy"
    shutil.copytree(template, copy)
    probed(servers, "plain", "{workspace}", template=template, script=SCRIPT)
    assert (template / "notes.json").read_text() == (copy / "notes.json").read_text()
