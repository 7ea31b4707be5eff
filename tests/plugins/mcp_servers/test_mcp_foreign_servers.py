"""Servers and clients that others wrote, driven over stdio as they are installed from npm and PyPI.

They are installed on request only: ``CALLWRIGHT_FOREIGN_SERVERS=1`` installs them into a temporary folder,
``CALLWRIGHT_FOREIGN_SERVERS=DIR`` into this one, where they stay for the next time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callwright_plugins.mcp_servers.connecting.connection import Target
from callwright_plugins.mcp_servers.probing.probe import probe
from callwright_plugins.mcp_servers.probing.report import Report
from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

WANTED = os.environ.get("CALLWRIGHT_FOREIGN_SERVERS", "")
NPM = ("server-filesystem", "server-memory", "server-everything", "inspector")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        WANTED in ("", "0"), reason="others' servers are installed on request only: CALLWRIGHT_FOREIGN_SERVERS=1 or DIR"
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("foreign") if WANTED == "1" else Path(WANTED)
    found.mkdir(parents=True, exist_ok=True)
    return found


def installed(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"{' '.join(command[:3])} could not install it here: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def npm(folder: Path) -> Callable[[str], list[str]]:
    """The command of a server from npm, by its name."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    modules = folder / "node_modules" / "@modelcontextprotocol"
    if not all((modules / name).is_dir() for name in NPM):
        packages = [f"@modelcontextprotocol/{name}" for name in NPM]
        installed("npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), *packages, cwd=folder)
    return lambda name: ["node", str(modules / name / "dist" / "index.js")]


def python_package(folder: Path, where: str, *packages: str) -> Path:
    """The folder with the commands of these packages, in an environment of their own."""
    home = folder / where
    if not (home / "done").exists():
        venv.create(home, with_pip=True)
        installed(str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages, cwd=folder)
        (home / "done").touch()
    return home / "bin"


@pytest.fixture(scope="module")
def python_servers(folder: Path) -> Path:
    return python_package(folder, "py", "mcp-server-git", "mcp-server-time")


@pytest.fixture(scope="module")
def old_python_servers(folder: Path) -> Path:
    """``mcp-server-sqlite`` breaks with version 2 of the SDK."""
    return python_package(folder, "old", "mcp-server-sqlite", "mcp<2")


@pytest.fixture
def environment() -> Iterator[Callable[..., MCPEnvironment]]:
    made: list[MCPEnvironment] = []

    def make(command: list[str], **options: Any) -> MCPEnvironment:
        made.append(MCPEnvironment(command, pool=2, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def kinds(session: Any, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    return [session.call(tool, arguments).kind for tool, arguments in calls]


def isolated(environment: MCPEnvironment, *writes: tuple[str, dict[str, Any]]) -> None:
    """What is written in one session is not in another, nor in the next one of the same process."""
    writer, reader = environment.open(), environment.open()
    before = reader.digest()
    assert writer.digest() == before
    for tool, arguments in writes:
        assert writer.call(tool, arguments).executed
    assert writer.digest() != before
    assert reader.digest() == before
    writer.close()
    reader.close()
    for _ in range(3):
        session = environment.open()
        assert session.digest() == before
        session.close()


def test_filesystem(npm: Any, environment: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    files = environment([*npm("server-filesystem"), "{workspace}"], workspace_template=tmp_path)
    session = files.open()
    assert len(files.tools) >= 14
    assert files.isolation == "process"
    assert session.call("read_text_file", {"path": "/workspace/a.txt"}).value == {"content": "hello\n"}
    assert session.call("list_allowed_directories", {}).value == {"content": "Allowed directories:\n/workspace"}
    assert kinds(
        session,
        ("write_file", {"path": "/workspace/b.txt", "content": "x"}),
        ("read_text_file", {"path": "/workspace/none"}),
        ("read_text_file", {"path": "/etc/passwd"}),
        ("write_file", {"path": 1, "content": "x"}),
        ("format_disk", {}),
    ) == ["ok", "execution_error", "execution_error", "schema_error", "unknown_tool"]
    session.close()
    isolated(files, ("write_file", {"path": "/workspace/b.txt", "content": "x"}))


def test_memory(npm: Any, environment: Any) -> None:
    memory = environment(npm("server-memory"), env={"MEMORY_FILE_PATH": "{workspace}/memory.json"})
    entity = {"name": "Bo", "entityType": "person", "observations": ["likes tea"]}
    session = memory.open()
    assert kinds(
        session,
        ("read_graph", {}),
        ("create_entities", {"entities": [entity]}),
        ("search_nodes", {"query": "tea"}),
        ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
        ("delete_entities", {"entityNames": ["ghost"]}),
    ) == ["ok", "ok", "ok", "execution_error", "ok"]  # a graph without entities is a graph
    session.close()
    isolated(memory, ("create_entities", {"entities": [entity]}))


def test_everything(npm: Any, environment: Any) -> None:
    session = environment(npm("server-everything")).open()
    assert session.call("echo", {"message": "hi"}).value == "Echo: hi"
    image = session.call("get-tiny-image", {}).value
    (picture,) = [block for block in image if block["type"] == "image"]
    assert (picture["mimeType"], picture["bytes"] > 1000, "data" in picture) == ("image/png", True, False)
    assert session.call("get-structured-content", {"location": "Chicago"}).value["humidity"] >= 0
    assert kinds(session, ("get-structured-content", {"location": "Oslo"}), ("get-sum", {"a": "1", "b": 2})) == [
        "schema_error",
        "schema_error",
    ]


def test_git(python_servers: Path, environment: Any, tmp_path: Path) -> None:
    script = "git init -q -b main . && git config user.email a@b && git config user.name n && echo 1 > f && git add f"
    subprocess.run(f"{script} && git commit -qm first", shell=True, cwd=tmp_path, check=True)
    git = environment(
        [str(python_servers / "mcp-server-git"), "--repository", "{workspace}"],
        workspace_template=tmp_path,
        digest_ignore=[".git/index", ".git/logs/*"],
    )
    session = git.open()
    assert "first" in session.call("git_log", {"repo_path": "/workspace"}).value
    assert kinds(
        session,
        ("git_create_branch", {"repo_path": "/workspace", "branch_name": "b"}),
        ("git_checkout", {"repo_path": "/workspace", "branch_name": "none"}),
        ("git_status", {"repo_path": "/elsewhere"}),
        ("git_status", {}),
    ) == ["ok", "execution_error", "execution_error", "schema_error"]
    session.close()
    isolated(git, ("git_create_branch", {"repo_path": "/workspace", "branch_name": "b"}))


def test_time(python_servers: Path, environment: Any) -> None:
    clock = environment([str(python_servers / "mcp-server-time"), "--local-timezone", "UTC"])
    session = clock.open()
    assert clock.isolation == "shared"
    arguments = {"source_timezone": "UTC", "time": "10:00", "target_timezone": "Asia/Tokyo"}
    assert session.call("convert_time", arguments).value["target"]["datetime"].endswith("19:00:00+09:00")
    assert session.call("convert_time", {**arguments, "target_timezone": "Mars"}).kind == "execution_error"


def test_sqlite_with_the_old_sdk(old_python_servers: Path, environment: Any) -> None:
    database = environment(
        [str(old_python_servers / "mcp-server-sqlite"), "--db-path", "{workspace}/a.db"], errors=["^Database error"]
    )
    session = database.open()
    assert not any(spec.read_only for spec in database.tools.values())  # it annotates nothing
    assert kinds(
        session,
        ("list_tables", {}),
        ("create_table", {"query": "CREATE TABLE t (a INTEGER)"}),
        ("write_query", {"query": "INSERT INTO t VALUES (1)"}),
        ("read_query", {"query": "SELECT * FROM none"}),
    ) == ["ok", "ok", "ok", "execution_error"]  # nothing says that list_tables only reads
    assert session.call("read_query", {"query": "SELECT a FROM t"}).value in ([{"a": 1}], "[{'a': 1}]")
    session.close()
    isolated(database, ("create_table", {"query": "CREATE TABLE t (a INTEGER)"}))


def verdicts(report: Report) -> dict[str, str]:
    return {rung.isolation: rung.verdict for rung in report.rungs}


def test_probes(npm: Any, python_servers: Path) -> None:
    memory = probe(Target(tuple(npm("server-memory")), env={"MEMORY_FILE_PATH": "{workspace}/memory.json"}))
    assert verdicts(memory) == {"meta": "leaks", "process": "isolated"}
    assert memory.nondeterministic == memory.not_read_only == []
    assert {f"delete_{what}" for what in ("entities", "observations", "relations")} <= {
        finding.tool for finding in memory.no_ops
    }
    files = probe(Target((*npm("server-filesystem"), "{workspace}")))
    assert verdicts(files) == {"meta": "leaks", "process": "isolated"}
    assert [finding.tool for finding in files.nondeterministic] == ["get_file_info"]
    assert files.not_read_only == []
    clock = probe(Target((str(python_servers / "mcp-server-time"),)))
    assert {finding.tool for finding in clock.nondeterministic} <= {"get_current_time"}  # it tells whole seconds
    assert clock.recommended.startswith('isolation = "shared"')


# The other way round --------------------------------------------------------------------------------------------------


@pytest.fixture
def inspect(npm: Any, folder: Path, servers: Path) -> Callable[..., Any]:
    command = folder / "node_modules" / ".bin" / "mcp-inspector"

    def inspect(target: list[str], *words: str) -> Any:
        done = subprocess.run(
            [str(command), "--cli", *target, *words], cwd=servers, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return inspect


def test_the_inspector_over_stdio(inspect: Callable[..., Any], callwright_words: list[str]) -> None:
    target = [*callwright_words, "env", "serve", "shelf", "--stdio", "--scenario", "full"]
    tools = {tool["name"]: tool for tool in inspect(target, "--method", "tools/list")["tools"]}
    assert "secret" not in tools
    assert tools["list"]["annotations"]["readOnlyHint"] is True
    assert tools["put"]["outputSchema"]["required"] == ["name"]
    call = ("--method", "tools/call", "--tool-name")
    put = inspect(target, *call, "put", "--tool-arg", "name=cup", "--tool-arg", "count=2")
    assert put["structuredContent"] == {"name": "cup", "count": 2}
    assert put["_meta"]["io.callwright/outcome"] == {"kind": "ok"}
    missing = inspect(target, *call, "take", "--tool-arg", "name=ghost")
    assert missing["isError"] is True
    assert missing["_meta"]["io.callwright/outcome"]["code"] == "NOT_THERE"


def test_the_inspector_over_http(inspect: Callable[..., Any], serve_http: Callable[..., str], shelf_world: Any) -> None:
    from callwright_plugins.mcp_servers.serving.service import Service

    url = serve_http(Service(shelf_world.ShelfWorld(), scenario="full"))
    target = [url, "--transport", "http"]
    assert len(inspect(target, "--method", "tools/list")["tools"]) == 10
    listed = inspect(target, "--method", "tools/call", "--tool-name", "list")
    assert listed["structuredContent"] == {"result": ["vase"]}
