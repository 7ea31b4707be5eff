"""Servers that say nothing of what their tools do: nothing is called without leave, and what to do is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from callwright.cli.root import root
from callwright.commands.app import App

#: A server as most are written: without annotations. The protocol then counts a tool as one that destroys.
SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("depot")
stock = {"bolt": 5, "nut": 2}


@server.tool({hints})
def list_items() -> list[dict]:
    \"\"\"All items of the depot with how many there are.\"\"\"
    return [{"item": name, "count": count} for name, count in stock.items()]


@server.tool()
def take(item: str, count: int) -> dict:
    \"\"\"Take some of an item out of the depot.\"\"\"
    if stock.get(item, 0) < count or count < 1:
        raise ValueError("not enough of it")
    stock[item] -= count
    return {"item": item, "count": stock[item]}


server.run()
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("mcp.server.mcpserver", reason="the server is written for mcp 2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def synthesize(hints: str, *words: str) -> Result:
    Path("depot.py").write_text(SERVER.replace("{hints}", hints), encoding="utf-8")
    # Nothing of other environments is wanted, which would have to be explored, too.
    chosen = ("calls=8", "gates=false", "distractors=0", "abstentions=0", "irrelevance=0", "several_servers=0")
    given = [word for one in chosen for word in ("--synthesizer-option", one)]
    given += ["--count", "2", "--no-probe", *words, "-o", "made"]
    return CliRunner().invoke(root, ["synthesize", "mcp", *given, "--", sys.executable, "depot.py"], obj=App())


def called(folder: Path) -> set[str]:
    """The tools that references call, of all units."""
    rows = [json.loads(line) for line in (folder / "plan.jsonl").read_text(encoding="utf-8").splitlines()[1:]]
    stages = [stage for row in rows for stage in row["payload"]["stages"]]
    return {call["tool"] for stage in stages for call in stage["asked"]["calls"]}


def test_nothing_is_called_without_leave_and_the_ways_out_are_named(made: Path) -> None:
    done = synthesize("")
    assert done.exit_code == 2
    said = done.output + str(done.exception)
    assert "none of the 2 tools of 'mcp' may be called (list_items, take)" in said
    for way in ("{workspace}", "readOnlyHint", "--allow-destructive"):
        assert way in said
    assert not (made / "made" / "knowledge").exists()


def test_what_only_reads_is_called_and_what_is_left_out_is_said(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = synthesize('annotations={"readOnlyHint": True}')
    assert "tools that may destroy something are not called" in done.output + capsys.readouterr().err
    assert called(made / "made" / "tasks") == {"list_items"}


def test_the_same_folder_will_do_once_leave_is_given(made: Path) -> None:
    assert synthesize("").exit_code == 2
    assert synthesize("", "--allow-destructive").exit_code == 0


@pytest.mark.parametrize("command", [["synthesize", "mcp", "-o", "made"], ["env", "probe"]])
def test_a_misspelt_option_is_no_program(made: Path, command: list[str]) -> None:
    wrong = "--allow-destructiv" if "mcp" in command else "--legac"
    done = CliRunner().invoke(root, [*command, wrong, "python", "depot.py"], obj=App())
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == 2
    assert "No such option" in done.output
    assert f"{wrong}{'e' if 'mcp' in command else 'y'}" in done.output
    assert not (made / "made").exists()


def test_leave_is_given_by_an_option_and_long_work_is_seen(made: Path) -> None:
    done = synthesize("", "--allow-destructive")
    (kept,) = (made / "made" / "knowledge").glob("mcp-*.json")
    assert json.loads(kept.read_text(encoding="utf-8"))["explored"]["forbidden"] == []
    for stage in ("exploring mcp, calls: 16 to do", "proving what needs what in mcp", "planning mcp: 2/2"):
        assert stage in done.output
