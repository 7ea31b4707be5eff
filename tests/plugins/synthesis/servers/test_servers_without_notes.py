"""Servers that say nothing of what their tools do: nothing is called without leave, and what to do is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright_plugins.synthesis.exploration.explored import explore
from callwright_plugins.synthesis.mcp_command import _need_tools

#: A server without annotations, as most are. The protocol then counts a tool as one that destroys. It is started for
#: dozens of sessions, so it is written without an SDK, whose import takes a second.
SERVER = """
import json
import sys

stock = {"bolt": 5, "nut": 2}
item = {"item": {"type": "string"}, "count": {"type": "integer"}}
row = {"type": "object", "properties": item, "required": ["item", "count"]}
rows = {"type": "object", "properties": {"result": {"type": "array", "items": row}}, "required": ["result"]}
TOOLS = [
    {
        "name": "list_items",
        "description": "All items of the depot with how many there are.",
        "inputSchema": {"type": "object", "properties": {}},
        "outputSchema": rows,
        {hints}
    },
    {"name": "take", "description": "Take some of an item out of the depot.", "inputSchema": row, "outputSchema": row},
]


def call(tool, arguments):
    if tool == "list_items":
        return {"result": [{"item": name, "count": count} for name, count in stock.items()]}
    name, count = arguments["item"], arguments["count"]
    if stock.get(name, 0) < count or count < 1:
        return None
    stock[name] -= count
    return {"item": name, "count": stock[name]}


def answer(method, params):
    if method == "initialize":
        server = {"name": "depot", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        return {}
    told = call(params["name"], params.get("arguments") or {})
    if told is None:
        return {"content": [{"type": "text", "text": "not enough of it"}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
#: The same tools by the SDK, for what it sends of tools whose author says nothing.
BY_SDK = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("depot")


@server.tool()
def list_items() -> list[dict]:
    \"\"\"All items of the depot with how many there are.\"\"\"
    return [{"item": "bolt", "count": 5}, {"item": "nut", "count": 2}]


@server.tool()
def take(item: str, count: int) -> dict:
    \"\"\"Take some of an item out of the depot.\"\"\"
    return {"item": item, "count": count}


server.run()
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("mcp")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def synthesize(hints: str, *words: str, server: str = SERVER) -> Result:
    Path("depot.py").write_text(server.replace("{hints}", hints), encoding="utf-8")
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


@pytest.mark.parametrize("server", [SERVER, BY_SDK], ids=["plain", "by the SDK"])
def test_nothing_is_called_without_leave_and_the_ways_out_are_named(made: Path, server: str) -> None:
    if server == BY_SDK:
        pytest.importorskip("mcp.server.mcpserver", reason="the server is written for mcp 2")
    done = synthesize("", server=server)
    assert done.exit_code == 2
    said = done.output + str(done.exception)
    assert "none of the 2 tools of 'mcp' may be called (list_items, take)" in said
    for way in ("{workspace}", "readOnlyHint", "--allow-destructive"):
        assert way in said
    assert not (made / "made" / "knowledge").exists()


def test_it_is_said_before_the_server_is_probed_which_takes_long(made: Path) -> None:
    (made / "depot.py").write_text(SERVER.replace("{hints}", ""), encoding="utf-8")
    words = ["synthesize", "mcp", "-o", "made", "--", sys.executable, "depot.py"]
    done = CliRunner().invoke(root, words, obj=App())
    assert done.exit_code == 2
    assert "none of the 2 tools of the server may be called (list_items, take)" in done.stderr
    assert "probing" not in done.stderr
    assert not (made / "made").exists()


@pytest.mark.parametrize(("word", "said"), [("depot.json", True), ("{workspace}/depot.json", False)])
def test_what_changes_more_than_a_scratch_folder_is_said_before_it_is_called(
    made: Path, capsys: pytest.CaptureFixture[str], word: str, said: bool
) -> None:
    """By the protocol a tool that writes may declare that it destroys nothing, and is called."""
    hints = '"annotations": {"readOnlyHint": False, "destructiveHint": False},'
    (made / "depot.py").write_text(SERVER.replace("{hints}", hints), encoding="utf-8")
    _need_tools(App(), {"name": "mcp", "command": [sys.executable, "depot.py", word]})
    assert ("list_items: called, since they declare that they destroy nothing" in capsys.readouterr().err) is said


def test_what_only_reads_is_called_and_what_is_left_out_is_said(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = synthesize('"annotations": {"readOnlyHint": True},')
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


def test_every_tool_is_tried_before_one_is_called_again_and_again(made: Path) -> None:
    """Nobody tells the states of such a server apart, so every call that may change something seems to be news."""
    Path("depot.py").write_text(SERVER.replace("{hints}", ""), encoding="utf-8")
    command = f"{sys.executable} depot.py"
    found = explore(cw.environment("mcp", command=command), seeds=(0,), calls=12, allow_destructive=True)
    assert found.missing == ()
    assert [call.tool for call in found.witnesses["list_items"][0].calls] == ["list_items"]
    longest = max(len(one.calls) for witnesses in found.witnesses.values() for one in witnesses)
    assert longest <= 3
