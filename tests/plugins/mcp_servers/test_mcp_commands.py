"""The commands ``env serve`` and ``env probe``, as people and clients run them."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.errors import MissingExtra, UsageError
from callwright.training.reporter import Reporter
from callwright_plugins.mcp_servers import wire
from callwright_plugins.mcp_servers.probing.probe import probe
from callwright_plugins.mcp_servers.probing.report import Report
from callwright_plugins.mcp_servers.serving.record import read_record
from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment


@pytest.fixture
def run(callwright_words: list[str], servers: Path, child_environment: dict[str, str]) -> Any:
    def run(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*callwright_words, *words],
            cwd=servers,
            env={**child_environment, **more.pop("env", {})},
            capture_output=True,
            text=True,
            timeout=300,
            **more,
        )

    return run


@pytest.fixture
def here(callwright_words: list[str], servers: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same in this process, which has imported everything."""
    monkeypatch.chdir(servers)
    monkeypatch.syspath_prepend(servers)

    def run(*words: str) -> Result:
        given = [*callwright_words[callwright_words.index("callwright") + 1 :], *words]
        return CliRunner().invoke(root_command, given, obj=App(), catch_exceptions=False)

    return run


def test_a_client_starts_the_server(callwright_words: list[str], servers: Path) -> None:
    words = [*callwright_words, "env", "serve", "shelf", "--stdio", "--scenario", "full", "--seed", "6"]
    environment = MCPEnvironment(words, cwd=str(servers))
    try:
        session = environment.open("full", 6)
        assert session.call("list", {}).value == ["vase"]
        assert session.digest() == environment.open("full", 6).digest()
    finally:
        environment.stop()


def test_http_until_a_signal(callwright_words: list[str], servers: Path, child_environment: dict[str, str]) -> None:
    words = [*callwright_words, "env", "serve", "shelf", "--http", "0"]
    environment = {**child_environment, "CALLWRIGHT_TOKEN": "s3cret"}
    with subprocess.Popen(
        words, cwd=servers, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stderr is not None
        said = child.stderr.readline()
        assert said.startswith("serving shelf: 10 tools at http://127.0.0.1:")
        wrapped = MCPEnvironment(url=said.split()[-1], headers={"Authorization": "Bearer s3cret"})
        try:
            assert wrapped.open().call("list", {}).kind == "empty"
        finally:
            wrapped.stop()
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=300) == 143
        assert child.stderr.read().split() == ["stopped"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stdio_until_a_signal(
    callwright_words: list[str], servers: Path, child_environment: dict[str, str], number: signal.Signals, status: int
) -> None:
    pipe = subprocess.PIPE
    words = [*callwright_words, "env", "serve", "shelf", "--stdio"]
    with subprocess.Popen(
        words, cwd=servers, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=child_environment
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["id"] == 1
        child.send_signal(number)
        assert child.wait(timeout=300) == status  # though stdin is still open
        assert child.stderr.read().splitlines()[-1] == "stopped"


def test_the_configuration_for_clients(run: Any, servers: Path) -> None:
    done = run("env", "serve", "shelf", "--stdio", "--scenario", "full", "--helpers", "--print-config")
    entry = json.loads(done.stdout)["mcpServers"]["shelf"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-6:] == ["serve", "shelf", "--stdio", "--scenario", "full", "--helpers"]
    environment = MCPEnvironment([entry["command"], *entry["args"]], cwd=str(servers))
    try:
        assert environment.open("full").helper("_wipe").kind == "ok"
    finally:
        environment.stop()
    done = run("env", "serve", "shelf", "--http", "8123", "--token", "x", "--print-config")
    assert json.loads(done.stdout)["mcpServers"]["shelf"] == {
        "type": "streamable-http",
        "url": "http://127.0.0.1:8123/mcp?session=default",
        "headers": {"Authorization": "Bearer x"},
    }


def test_the_url_of_the_configuration_works_with_the_current_client(
    run: Any, callwright_words: list[str], servers: Path, child_environment: dict[str, str], tmp_path: Path
) -> None:
    from mcp import Client

    record = tmp_path / "calls.jsonl"
    words = ["env", "serve", "shelf", "--http", "0", "--session", "my shelf", "--record", str(record)]
    printed = json.loads(run(*words, "--print-config").stdout)["mcpServers"]["shelf"]["url"]
    assert printed == "http://127.0.0.1:0/mcp?session=my%20shelf"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*callwright_words, *words], cwd=servers, stdout=pipe, stderr=pipe, text=True, env=child_environment
    ) as child:
        assert child.stderr is not None
        port = re.search(r":(\d+)/mcp", child.stderr.readline())
        assert port is not None

        async def main() -> list[bool]:
            async with Client(printed.replace(":0/", f":{port[1]}/")) as client:
                assert client.protocol_version == "2026-07-28"
                return [(await client.call_tool(tool, {"name": "cup"})).is_error for tool in ("put", "take")]

        try:
            assert asyncio.run(main()) == [False, False]
        finally:
            child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=300) == 143
    (session,) = read_record(record)
    assert (session.session, len(session.calls)) == ("my shelf", 2)


@pytest.mark.parametrize("version", ["1.30.0", "2.1.4", "3.0.0"])
def test_versions_that_clash_are_said_at_once(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(wire, "_mcp_version", lambda: version)
    with pytest.raises(UsageError, match=rf"env serve needs .* from 2\.2 on and before 3, and {version} is installed"):
        wire.need_mcp("env serve")
    for fine in ("2.2.0", "2.10.1rc1", ""):
        monkeypatch.setattr(wire, "_mcp_version", lambda fine=fine: fine)
        wire.need_mcp("env serve")


def test_who_asks_for_a_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str, *requires: str) -> Any:
        return SimpleNamespace(metadata={"Name": name}, requires=list(requires))

    installed = [
        distribution("old-adapters", "mcp<2", "mcp-extras>=1"),
        distribution("engine", 'mcp (>=2.2,<3) ; python_version > "3.8"', "mcp==1.0 ; extra == 'x'"),
        distribution("other"),
    ]
    monkeypatch.setattr(wire.metadata, "distributions", lambda: installed)
    assert wire._who_asks_for_mcp() == " (engine wants mcp (>=2.2,<3); old-adapters wants mcp<2)"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["shelf"], 2, "either --stdio or --http PORT"),
        (["shelf", "--stdio", "--http", "1"], 2, "either --stdio or --http PORT"),
        (["shelff", "--stdio"], 2, "Did you mean 'shelf'"),
        (["shelf", "--stdio", "--scenario", "ful"], 2, "Did you mean 'full'"),
        (["shelf", "--stdio", "--scale", "2"], 2, "no option"),
        (["shelf", "--http", "0", "--host", "0.0.0.0"], 2, "--token"),
        (["shelf", "--stdio", "--idle", "-5"], 2, "'--idle'"),
    ],
)
def test_mistakes_are_said_in_a_line(here: Any, words: list[str], status: int, message: str) -> None:
    done = here("env", "serve", *words)
    assert done.exit_code == status
    assert message in done.stderr or "option" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_probe(here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text and as JSON, of one probe."""
    made: list[tuple[Any, Report]] = []

    def once(*target: Any, reporter: Reporter, **options: Any) -> Report:
        if not made:
            made.append(((target, options), probe(*target, reporter=reporter, **options)))
        assert made[0][0] == (target, options)
        return made[0][1]

    monkeypatch.setattr("callwright_plugins.mcp_servers.probing.probe.probe", once)
    calls = tmp_path / "calls.jsonl"
    calls.write_text('{"tool": "add_note", "arguments": {"text": "canary"}}\n{"tool": "list_notes"}\n')
    words = ["--calls", str(calls), "--time-limit", "0.5", sys.executable, "odd_server.py", "liar", "{workspace}"]
    done = here("env", "probe", *words)
    assert done.exit_code == 0, done.stderr
    for text in ("meta       leaks", "process    isolated", 'isolation = "process"', "list_notes: changed", "clock: "):
        assert text in done.stdout
    done = here("env", "probe", "--json", *words)
    report = json.loads(done.stdout)
    assert {rung["isolation"]: rung["verdict"] for rung in report["rungs"]} == {"meta": "leaks", "process": "isolated"}
    assert [finding["tool"] for finding in report["not_read_only"]] == ["list_notes"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["-e", "x", "server"], 2, "NAME=VALUE"),
        (["http://127.0.0.1:9/mcp", "word"], 2, "stands alone"),
        (["/no/such/server"], 1, "there is no '/no/such/server'"),
        ([sys.executable, "odd_server.py", "dead"], 1, "never starts"),
    ],
)
def test_probes_that_cannot_be(here: Any, words: list[str], status: int, message: str) -> None:
    done = here("env", "probe", *words)
    assert done.exit_code == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


# What it costs to have the plugin -------------------------------------------------------------------------------------

HEAVY = ("mcp", "mcp_types", "starlette", "uvicorn", "httpx2", "anyio")


@pytest.mark.parametrize(
    "code",
    [
        "import callwright_plugins.mcp_servers as p; list(p.callwright_environments()); list(p.callwright_commands())",
        "from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment; MCPEnvironment(['x'])",
        "from callwright_plugins.mcp_servers.manager import MCPManager; MCPManager({'x': {'command': ['y']}}).health()",
        "import callwright_plugins.mcp_servers.serving.command, callwright_plugins.mcp_servers.probing.command",
        "import callwright_plugins.mcp_servers.serving.service, callwright_plugins.mcp_servers.serving.transports",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(code: str) -> None:
    check = f"{code}\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_package_the_command_to_install_it_is_said(monkeypatch: pytest.MonkeyPatch, servers: Path) -> None:
    import importlib.util

    from callwright.environments.functions import FunctionEnvironment
    from callwright_plugins.mcp_servers.connecting.connection import Target
    from callwright_plugins.mcp_servers.probing.probe import probe
    from callwright_plugins.mcp_servers.serving.service import Service, make_server

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "mcp" else found(name, *more))
    for attempt in (
        lambda: MCPEnvironment(["server"]),
        lambda: make_server(Service(FunctionEnvironment("none", []))),
        lambda: probe(Target(("server",))),
    ):
        with pytest.raises(MissingExtra, match=r"pip install 'callwright\[mcp\]'"):
            attempt()


def test_a_program_that_is_no_server_is_named_in_a_line(run: Any) -> None:
    done = run("env", "probe", "--", sys.executable, "-c", "print(1)")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")


def test_the_configuration_keeps_limits(run: Any) -> None:
    words = ["--sessions", "9", "--idle", "0.0"]
    done = run("env", "serve", "shelf", "--stdio", *words, "--print-config")
    assert json.loads(done.stdout)["mcpServers"]["shelf"]["args"][-4:] == words


@pytest.mark.parametrize("words", [("call", "mcp", "echo", "--arg", "text=hello"), ("shell", "mcp")])
def test_a_tool_of_a_server_is_called_once_and_in_the_shell(words: tuple[str, ...], run: Any, servers: Path) -> None:
    """Sessions of servers fork and do not say what changed."""
    option = f"command={json.dumps([sys.executable, str(servers / 'misbehaving_server.py'), 'plain'])}"
    done = run("env", *words, "--option", option, input='echo text=hello\necho text="and again"\n')
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    assert "error" not in done.stderr
