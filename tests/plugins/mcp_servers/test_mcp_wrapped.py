"""Others' servers as environments: isolation, reset, crashes, time-outs, and what their answers come to."""

from __future__ import annotations

import asyncio
import copy
import inspect
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.capability import has
from callwright.environments.isolated.placing import place
from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.protocol import OutOfProcess, TellsGoalState, declares
from callwright.errors import ComponentError, DataError, UnknownName
from callwright.testing.environments import (
    check_attributes,
    check_isolation,
    check_outcomes,
    check_same_seed,
    check_unknown_tool,
)
from callwright.testing.outcomes import check_kinds, check_schema_errors, check_threads
from callwright.walk import execute
from callwright_plugins.mcp_servers.connecting.connection import Refused, Reply
from callwright_plugins.mcp_servers.connecting.foreign import as_wanted, read_listing, read_refusal, read_reply
from callwright_plugins.mcp_servers.connecting.portal import PORTAL
from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment
from callwright_plugins.mcp_servers.wrapping.options import MCPOptions
from callwright_plugins.mcp_servers.wrapping.session import MCPSession

Wrap = Callable[..., MCPEnvironment]


def note(session: Any, text: str) -> None:
    assert session.call("add_note", {"text": text}).kind == "ok"


def notes(session: Any) -> Any:
    return session.call("list_notes", {}).value


# The ladder -----------------------------------------------------------------------------------------------------------


def test_unknown_servers_get_a_process_a_session(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", pool=2)
    one, other = environment.open(), environment.open()
    assert environment.isolation == "process"
    note(one, "mine")
    assert (notes(one), notes(other)) == (["mine"], [])
    assert environment.processes == 2


def test_servers_that_only_read_are_shared(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "readers")
    sessions = [environment.open() for _ in range(5)]
    assert environment.isolation == "shared"
    assert environment.processes == 1
    assert {session.call("count_notes", {}).kind for session in sessions} == {"ok"}


def test_served_environments_are_told_apart_by_id(wrap: Wrap) -> None:
    environment = wrap("shelf_world.py")
    one, other = environment.open(), environment.open()
    one.call("put", {"name": "cup"})
    assert other.call("list", {}).kind == "empty"
    assert (environment.isolation, environment.processes) == ("meta", 1)


def test_what_is_not_isolated_is_not_pretended(wrap: Wrap) -> None:
    with pytest.raises(cw.UsageError, match="would let sessions see one another"):
        wrap("odd_server.py", "plain", isolation="meta").start()
    shared = wrap("odd_server.py", "plain", isolation="shared")
    one, other = shared.open(), shared.open()
    note(one, "seen by all")
    assert notes(other) == ["seen by all"]  # it was asked for


def test_a_url_whose_tools_change_something_must_be_decided(
    servers: Path, serve_http: Callable[..., str], shelf_world: Any
) -> None:
    from callwright_plugins.mcp_servers.serving.service import Service

    url = serve_http(Service(shelf_world.ShelfWorld()))
    environment = MCPEnvironment(url=url, isolation="connection", legacy=True)
    try:
        one, other = environment.open(), environment.open()
        assert environment.isolation == "connection"
        one.call("put", {"name": "cup"})
        assert other.call("list", {}).kind == "empty"
    finally:
        environment.stop()
    with pytest.raises(cw.UsageError, match="somebody else's process"):
        MCPEnvironment(url=url, isolation="process")


# Pool and workspaces --------------------------------------------------------------------------------------------------


def test_sessions_wait_for_a_process_and_never_share_one(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", pool=1)
    first = environment.open()
    note(first, "old")
    opened: list[Any] = []
    waiting = threading.Thread(target=lambda: opened.append(environment.open()))
    waiting.start()
    while not environment.counts.waiting:
        time.sleep(0.005)
    assert opened == []
    first.close()
    waiting.join(timeout=120)
    assert notes(opened[0]) == []
    assert environment.processes == 1


def test_waiting_has_an_end(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", pool=1, wait_limit=0.2)
    session = environment.open()
    with pytest.raises(cw.InfrastructureFailure, match="raise the option 'pool'"):
        environment.open()
    note(session, "still there")


def test_stopping_ends_the_wait(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", pool=1)
    environment.open()
    failures: list[Exception] = []

    def wait() -> None:
        try:
            environment.open()
        except cw.InfrastructureFailure as error:
            failures.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not environment.counts.waiting:
        time.sleep(0.005)
    environment.stop()
    waiting.join(timeout=120)
    assert "stopped" in str(failures[0])
    assert environment.open().call("list_notes", {}).kind == "empty"  # and it starts again


@pytest.fixture
def template(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    folder.mkdir()
    (folder / "notes.json").write_text('["from the template"]')
    (folder / "sub").mkdir()
    (folder / "sub" / "file.txt").write_text("x")
    return folder


@pytest.mark.parametrize("reset", ["restart", "workspace"])
def test_workspaces_are_filled_digested_and_restored(wrap: Wrap, template: Path, reset: str) -> None:
    environment = wrap("odd_server.py", "plain", "{workspace}", workspace_template=template, reset=reset)
    session = environment.open()
    assert session.digest_source == "workspace"
    assert notes(session) == ["from the template"]
    fresh = session.digest()
    note(session, "more")
    assert session.digest() != fresh
    session.close()
    again = environment.open()
    assert (notes(again), again.digest()) == (["from the template"], fresh)
    again.call("add_note", {"text": "x"})
    again.reset()
    assert again.digest() == fresh
    assert (template / "notes.json").read_text() == '["from the template"]'


def test_scenarios_are_templates(wrap: Wrap, template: Path, tmp_path: Path) -> None:
    empty = tmp_path / "nothing"
    empty.mkdir()
    folders = {"some": template, "none": empty}
    environment = wrap("odd_server.py", "plain", "{workspace}", workspace_template=folders, pool=2)
    session = environment.open("some")
    assert notes(session) == ["from the template"]
    assert notes(environment.open("none")) == []
    with pytest.raises(UnknownName, match="Did you mean 'some'"):
        environment.open("nome")
    note(session, "kept")
    with pytest.raises(UnknownName, match="Did you mean 'some'"):
        session.reset("nome")
    assert notes(session) == ["from the template", "kept"]


def test_the_workspace_has_one_name_everywhere(wrap: Wrap) -> None:
    environment = wrap(
        "odd_server.py", "plain", "{workspace}", env={"NOTES": "{workspace}/n"}, workspace_alias="/home/box"
    )
    session = environment.open()
    assert session.call("where", {}).value == "/home/box/inside and /home/box/n"
    real = environment.backend.workspaces  # type: ignore[union-attr]
    path = str(next(iter(real)).path)
    note(session, "/home/box/file")  # a text that begins with the alias means the folder
    note(session, "see /home/box/file")  # a content that mentions it does not
    stored = (Path(path) / "notes.json").read_text()
    assert f"{path}/file" in stored
    assert "see /home/box/file" in stored
    assert notes(session) == ["/home/box/file", "see /home/box/file"]
    environment.stop()
    assert not Path(path).exists()


def test_a_reset_tool_is_called_and_not_offered(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", reset={"tool": "wipe"})
    session = environment.open()
    note(session, "old")
    assert session.call("wipe", {}).kind == "unknown_tool"
    started = environment.counts.started
    session.close()
    again = environment.open()
    assert notes(again) == []
    assert environment.counts.started == started


def test_a_reset_tool_that_fails_costs_the_process(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", reset={"tool": "fail", "arguments": {"text": "no"}})
    session = environment.open()
    note(session, "old")
    session.close()
    assert notes(environment.open()) == []
    assert "its reset tool 'fail' failed: no" in environment.counts.last_error


# Digests --------------------------------------------------------------------------------------------------------------


def test_digests_of_discovery_calls(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", digest=[{"tool": "list_notes"}], pool=2)
    one, other = environment.open(), environment.open()
    assert one.digest_source == "discovery"
    assert one.digest() == other.digest()
    note(one, "a")
    assert one.digest() != other.digest()
    note(other, "a")
    assert one.digest() == other.digest()


def test_digests_of_the_history(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", pool=2)
    one, other = environment.open(), environment.open()
    assert one.digest_source == "history"
    start = one.digest()
    notes(one)
    one.call("add_note", {})
    one.call("fail", {"text": "no"})
    assert one.digest() == start  # nothing happened that may have changed something
    note(one, "a")
    assert one.digest() != start
    note(other, "a")
    assert one.digest() == other.digest()


def test_digests_may_ignore_files(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", "{workspace}", digest_ignore=["notes.*"])
    session = environment.open()
    before = session.digest()
    note(session, "a")
    assert session.digest() == before


def test_the_end_state_is_what_is_otherwise_in_the_workspace(wrap: Wrap, template: Path) -> None:
    environment = wrap("odd_server.py", "plain", "{workspace}", workspace_template=template)
    session = environment.open()
    assert has(session, TellsGoalState)
    assert session.goal_state() == {"files": {}}
    note(session, "more")
    reached = {"files": {"notes.json": '["from the template", "more"]'}}
    assert session.goal_state() == reached
    assert session.check_goal({"state": reached}).equal
    assert not session.check_goal({"state": {"files": {}}}).equal
    session.reset()
    assert session.goal_state() == {"files": {}}


def test_the_end_state_is_what_named_calls_answer(wrap: Wrap) -> None:
    session = wrap("odd_server.py", "plain", digest=[{"tool": "list_notes"}]).open()
    note(session, "a")
    assert session.goal_state() == {"answers": [["list_notes", "ok", "", ["a"]]]}
    history = wrap("odd_server.py", "plain").open()
    assert not has(history, TellsGoalState)


def test_tools_that_do_not_say_that_they_only_read(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "unannotated", read_only=["list_notes"])
    assert [name for name, spec in environment.tools.items() if spec.read_only] == ["list_notes"]
    assert environment.open().call("list_notes", {}).kind == "empty"
    with pytest.raises(UnknownName, match="Did you mean 'list_notes'"):
        wrap("odd_server.py", "unannotated", read_only=["list_note"]).start()


# Failures of the machinery --------------------------------------------------------------------------------------------


def test_a_session_survives_a_crash(wrap: Wrap, tmp_path: Path) -> None:
    mark = f"callwright-mark-{os.getpid()}-{tmp_path.name}"
    environment = wrap("odd_server.py", "plain", "{workspace}", env={"MARK": mark})
    session = environment.open()
    note(session, "before")
    try:
        assert session.call("crash_once", {}) == cw.Outcome("ok", "survived")
        assert notes(session) == ["before"]  # what it had done was done again in the new process
        assert (environment.counts.crashed, environment.counts.retried, environment.counts.masked) == (1, 1, 0)
    finally:
        path = next(iter(environment.backend.workspaces)).path  # type: ignore[union-attr]
        (path.parent / mark).unlink(missing_ok=True)


def test_a_call_that_always_crashes_is_masked(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain")
    session = environment.open()
    outcome = session.call("crash", {})
    assert (outcome.kind, outcome.code) == ("infrastructure_error", "crashed")
    assert session.call("list_notes", {}).kind == "infrastructure_error"  # its state is lost
    with pytest.raises(cw.InfrastructureFailure):
        session.digest()
    session.close()
    assert environment.open().call("list_notes", {}).kind == "empty"
    assert (environment.counts.crashed, environment.counts.masked) == (2, 1)


def test_a_replay_that_goes_otherwise_ends_the_session(wrap: Wrap) -> None:
    session = wrap("odd_server.py", "plain").open()
    session.call("clock", {})
    assert session.call("crash", {}).code == "diverged"


def test_a_crash_masks_the_sample(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", retries=0)
    program = cw.Program((cw.Call(0, "add_note", {"text": "a"}), cw.Call(1, "crash"), cw.Call(2, "list_notes")))
    trace = execute(program, environment, environment.tools)
    assert [record.outcome.kind for record in trace.records] == ["ok", "infrastructure_error"]
    assert trace.masked is not None
    assert execute(cw.Program((cw.Call(0, "list_notes"),)), environment, environment.tools).executed


def test_a_call_that_hangs_is_timed_out(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", time_limit=1.0, retries=0)
    session = environment.open()
    assert session.call("hang", {}).code == "timeout"
    session.close()
    assert environment.open().call("list_notes", {}).kind == "empty"
    assert environment.counts.timed_out == 1


def test_one_crash_does_not_end_the_sessions_beside_it(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "readers", isolation="shared")
    sessions = [environment.open() for _ in range(3)]
    backend: Any = environment.backend
    PORTAL.run(backend._current.stop())
    assert [session.call("count_notes", {}).kind for session in sessions] == ["ok"] * 3
    assert environment.processes == 1


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("dead",), {}, "this server never starts"),
        (("silent",), {"start_limit": 0.5}, "not ready after 0.5 s"),
    ],
)
def test_servers_that_do_not_start(wrap: Wrap, words: Any, options: Any, message: str) -> None:
    with pytest.raises(cw.InfrastructureFailure, match=message):
        wrap("odd_server.py", *words, **options).start()


def test_commands_that_are_not_there() -> None:
    with pytest.raises(cw.InfrastructureFailure, match="there is no '/no/such/server'"):
        MCPEnvironment(["/no/such/server"]).start()
    with pytest.raises(cw.InfrastructureFailure, match="could not be connected to"):
        MCPEnvironment(url="http://127.0.0.1:9/mcp").start()


def test_processes_must_stay_the_same(wrap: Wrap, tmp_path: Path) -> None:
    environment = wrap("odd_server.py", "drifting", str(tmp_path), pool=2, warm=0)
    environment.open()
    with pytest.raises(cw.InfrastructureFailure, match="other tools than the first"):
        environment.open()


# What models see ------------------------------------------------------------------------------------------------------


def test_names_and_schemas_are_made_usable(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "names")
    assert list(environment.tools) == ["notes_add_", "notes_add__2", "x" * 64, "strange", "wide"]
    note_schema = environment.tools["notes_add_"].parameters["properties"]["note"]
    assert note_schema["properties"] == {"text": {"type": "string"}}
    assert environment.tools["strange"].result is None
    session = environment.open()
    assert session.call("notes_add_", {"note": {"text": "a"}}).value == "noted a"
    assert session.call("notes_add_", {"note": {"text": 1}}).kind == "schema_error"
    assert session.call("x" * 64, {}).value == "done"
    assert session.call("wide", {}).kind == "ok"  # a result that its own schema refuses is the server's affair


def test_hidden_tools_are_not_offered(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", hide=["wipe"])
    session = environment.open()
    assert environment.tools["wipe"].hidden
    assert session.call("wipe", {}).kind == "unknown_tool"
    assert session.helper("wipe").kind == "ok"
    with pytest.raises(cw.UsageError, match="no hidden tool"):
        session.helper("add_note", {"text": "a"})
    with pytest.raises(UnknownName, match="tool to hide"):
        wrap("odd_server.py", "plain", hide=["wip"]).start()


def test_helpers_of_served_environments(wrap: Wrap) -> None:
    session = wrap("shelf_world.py", "helpers").open("full")
    assert session.helper("_wipe").value == {"wiped": True}
    assert session.call("list", {}).kind == "empty"
    with pytest.raises(cw.UsageError, match="--helpers"):
        wrap("shelf_world.py").open().helper("_wipe")


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "code"),
    [
        ("nothing", {}, "unknown_tool", "unknown_tool"),
        ("add_note", {}, "schema_error", "missing"),
        ("add_note", {"text": "a", "more": 1}, "schema_error", "unexpected"),
        ("add_note", {"text": 1}, "schema_error", "type"),
        ("fail", {"text": "No such book"}, "execution_error", "tool_error"),
        ("fail", {"text": "Unknown tool: fail"}, "unknown_tool", "unknown_tool"),
        ("fail", {"text": "MCP error -32602: Tool fail not found"}, "unknown_tool", "unknown_tool"),
        ("fail", {"text": "1 validation error for add_note"}, "schema_error", "invalid_params"),
        ("fail", {"text": "MCP error -32602: Input validation error: …"}, "schema_error", "invalid_params"),
        ("refuse", {"text": "-32602 Unknown tool: x"}, "unknown_tool", "unknown_tool"),
        ("refuse", {"text": "-32602 text is wrong"}, "schema_error", "invalid_params"),
        ("refuse", {"text": "-32603 it broke"}, "execution_error", "rpc_32603"),
        ("list_notes", {}, "empty", ""),
        ("count_notes", {}, "ok", ""),
    ],
)
def test_classes_of_outcomes(classified: Any, tool: str, arguments: dict[str, Any], kind: str, code: str) -> None:
    outcome = classified.call(tool, arguments)
    assert (outcome.kind, outcome.code) == (kind, code)
    assert outcome.message or outcome.executed


@pytest.fixture(scope="module")
def classified(servers: Path) -> Any:
    import sys

    environment = MCPEnvironment([sys.executable, str(servers / "odd_server.py"), "plain"], pool=1)
    yield environment.open()
    environment.stop()


def test_results_that_are_failures_by_their_text(wrap: Wrap) -> None:
    session = wrap("odd_server.py", "plain", errors=["^noted (bad|worse)"]).open()
    assert session.call("add_note", {"text": "bad"}) == cw.Outcome("execution_error", None, "tool_error", "noted bad")
    assert session.call("add_note", {"text": "good"}).kind == "ok"
    with pytest.raises(cw.UsageError, match="regular expression"):
        wrap("odd_server.py", "plain", errors=["("])


NOBODY = cw.Outcome("execution_error", None, "input_required", "the server asks its user something; nobody is there")


def reply(*texts: str, structured: Any = None, **more: Any) -> Reply:
    content = [{"type": "text", "text": text} for text in texts]
    return Reply(content, structured, structured is not None, more.pop("is_error", False), {}, **more)


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (reply("hello"), cw.Outcome("ok", "hello")),
        (reply(" \n"), cw.Outcome("ok", " \n")),
        (reply(""), cw.Outcome("ok", "")),
        (reply("[]"), cw.Outcome("empty", [])),
        (reply(structured={"result": []}), cw.Outcome("empty", {"result": []})),
        (reply(structured={"a": None}), cw.Outcome("ok", {"a": None})),
        (reply(), cw.Outcome("empty", None)),
        (reply('{"a": [1, 2.0]}'), cw.Outcome("ok", {"a": [1, 2.0]})),
        (reply("[NaN]"), cw.Outcome("ok", "[NaN]")),
        (reply("[" * 100_000), cw.Outcome("ok", "[" * 100_000)),
        (reply("5"), cw.Outcome("ok", "5")),
        (reply("a", '{"b": 1}'), cw.Outcome("ok", ["a", {"b": 1}])),
        (reply("text", structured={"items": []}), cw.Outcome("empty", {"items": []})),
        (reply("text", structured={"items": [], "total": 0}), cw.Outcome("empty", {"items": [], "total": 0})),
        (reply("text", structured={"total": 0}), cw.Outcome("ok", {"total": 0})),
        (reply("text", structured={"ok": False, "items": []}), cw.Outcome("ok", {"ok": False, "items": []})),
        (reply(asks=True), NOBODY),
    ],
)  # fmt: skip
def test_replies(given: Reply, outcome: cw.Outcome) -> None:
    assert read_reply(given, read_only=True) == outcome
    kind = "ok" if outcome.kind == "empty" else outcome.kind  # a tool without the hint writes
    assert read_reply(given, read_only=False) == evolve(outcome, kind=kind)


def test_refusals() -> None:
    assert read_refusal(Refused(-32601, "Method not found")).kind == "unknown_tool"
    broken = read_refusal(Refused(-32603, "Internal error"), "pay")
    assert (broken.kind, broken.code) == ("execution_error", "rpc_32603")
    assert "pay" in broken.undeclared
    assert as_wanted(broken, "execution_error") == broken
    assert as_wanted(broken, "mask").kind == "infrastructure_error"
    with pytest.raises(ComponentError, match="pay made the server fail"):
        as_wanted(broken, "raise")


def test_listings_of_older_drafts() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#/definitions/N"}},
        "definitions": {"N": {"type": "integer"}},
    }
    spec = read_listing([{"name": "a", "inputSchema": schema}])["a"].spec
    assert spec.parameters["properties"] == {"n": {"type": "integer"}}


def test_a_schema_that_nobody_can_check_is_said() -> None:
    with pytest.raises(DataError, match="the tool 'a': the parameters of tool 'a': not a valid schema"):
        read_listing([{"name": "a", "inputSchema": {"type": "object", "properties": {"x": {"type": "thing"}}}}])


# As an environment ----------------------------------------------------------------------------------------------------


def test_it_conforms(wrap: Wrap) -> None:
    environment = wrap("shelf_world.py")
    calls = [("put", {"name": "cup"}), ("list", {}), ("take", {"name": "cup"})]
    harmless = ("put", "list", "take", "put_all", "odd")
    environment.tools  # noqa: B018 (starts it)
    for name in list(environment._specs):
        if name not in harmless:
            del environment._specs[name]
    check_attributes(environment)
    for check in (check_same_seed, check_isolation, check_outcomes):
        check(environment, ("full",), calls)
    check_unknown_tool(environment)
    check_kinds(environment, ("full",), calls)
    check_schema_errors(environment, ("full",), calls)
    check_threads(environment, ("full",), calls)


@pytest.mark.parametrize("annotated", [True, False])
def test_kinds_mean_the_same_with_and_without_annotations(wrap: Wrap, annotated: bool) -> None:
    environment = wrap("odd_server.py", "plain" if annotated else "unannotated", pool=4)
    environment.start()
    reads = environment.tools["list_notes"].read_only
    assert reads is annotated
    session = environment.open()
    assert session.call("list_notes", {}).kind == ("empty" if annotated else "ok")
    missing = session.call("add_note", {})
    assert (missing.kind, missing.code) == ("schema_error", "missing")
    assert missing.message == "add_note.text: expected a value (the parameter is required), found nothing"
    calls = [("add_note", {"text": "a"}), ("list_notes", {})]
    environment._specs = {name: environment.tools[name] for name in ("add_note", "list_notes", "count_notes")}
    check_kinds(environment, calls=calls)
    check_schema_errors(environment, calls=calls)
    check_threads(environment, calls=calls)


def test_forks_go_their_own_way(wrap: Wrap) -> None:
    for environment in (wrap("shelf_world.py"), wrap("odd_server.py", "plain", "{workspace}", pool=2)):
        session = environment.open()
        tool, arguments = ("put", {"name": "a"}) if "put" in environment.tools else ("add_note", {"text": "a"})
        session.call(tool, arguments)
        fork = session.fork()
        assert fork.digest() == session.digest()
        fork.call(tool, arguments)
        assert fork.digest() != session.digest()


def test_a_wrapped_server_can_be_served_on(wrap: Wrap) -> None:
    from mcp import Client

    from callwright_plugins.mcp_servers.serving.service import Service, make_server

    environment = wrap("odd_server.py", "plain", pool=2, time_limit=120.0)

    async def main() -> Any:
        async with Client(make_server(Service(environment))) as one, Client(make_server(Service(environment))) as other:
            hanging = asyncio.create_task(one.call_tool("hang", {}))
            await other.call_tool("add_note", {"text": "beside"})  # not held up by the call that hangs
            found = await other.call_tool("list_notes", {})
            hanging.cancel()
            return found.structured_content

    assert asyncio.run(main()) == {"result": ["beside"]}


def test_closing_twice_is_allowed_and_calling_then_is_not(wrap: Wrap) -> None:
    session = wrap("shelf_world.py").open()
    session.close()
    session.close()
    with pytest.raises(cw.UsageError, match="closed"):
        session.call("list", {})


def test_a_description_can_be_sent_to_another_process(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", pool=1)
    session = environment.open()
    note(session, "here")
    copy = pickle.loads(pickle.dumps(environment))
    try:
        assert notes(copy.open()) == []
    finally:
        copy.stop()


def test_a_forked_process_starts_servers_of_its_own(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "readers")
    environment.open()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # in the child: nothing of the parent's loop may be waited for
        copy = pickle.loads(pickle.dumps(environment))
        kind = copy.open().call("count_notes", {}).kind
        copy.stop()
        os.write(writing, kind.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"ok"
    os.close(reading)
    os.close(writing)


def test_the_synchronous_form_is_refused_in_the_portals_loop(wrap: Wrap) -> None:
    environment = wrap("shelf_world.py")

    async def wrong() -> None:
        environment.open()

    with pytest.raises(cw.UsageError, match="wait for itself"):
        PORTAL.run(wrong())


def test_asyncio_is_not_held_up(wrap: Wrap) -> None:
    environment = wrap("odd_server.py", "plain", time_limit=1.0, retries=0)

    async def main() -> int:
        session = await PORTAL.arun(environment.aopen())
        hanging = asyncio.create_task(PORTAL.arun(session.acall("hang", {})))
        turns = 0
        while not hanging.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(main()) > 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs either command"),
        ({"command": ["a"], "url": "http://x"}, "needs either command"),
        ({"command": ["a"], "isolation": "metta"}, "Did you mean 'meta'"),
        ({"command": ["a"], "reset": "restrat"}, "Did you mean 'restart'"),
        ({"command": ["a"], "reset": {"name": "x"}}, "reset is either"),
        ({"command": ["a"], "pool": 0}, "pool must be"),
        ({"command": ["a"], "time_limit": 0}, "time_limit must be"),
        ({"command": ["a"], "workspace_template": "."}, "mentions {workspace}"),
        ({"command": ["a", "{workspace}"], "workspace_template": "/no/such"}, "not a folder"),
        ({"command": ["a"], "digest": "workspace"}, "needs {workspace}"),
        ({"command": ["a"], "digest": "histroy"}, "Did you mean 'history'"),
        ({"command": ["a"], "workspace_alias": "work"}, "absolute path"),
        ({"command": ["a"], "pol": 2}, "Did you mean 'pool'"),
        ({"command": ["a"], "pool": "many"}, "the environment 'mcp': 'pool': "),
        ({"command": ["a"], "env": {"PORT": 80}}, "the environment 'mcp': 'env'.PORT: "),
        ({"command": ["a"], "errors": ["("]}, "not a regular expression"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(cw.UsageError) as caught:
        MCPEnvironment(**options)
    assert words in str(caught.value)


def test_options_are_listed_with_their_defaults() -> None:
    listed = inspect.signature(MCPEnvironment).parameters
    assert list(listed) == list(MCPOptions.model_fields)
    assert (listed["pool"].default, listed["isolation"].default) == (4, "auto")
    with pytest.raises(UnknownName, match="Did you mean 'isolation'"):
        cw.default_registry().create("environment", "mcp", command=["a"], isolaton="meta")


def test_a_session_says_why_it_cannot_be_pickled() -> None:
    environment: Any = SimpleNamespace(name="shelf")
    session = MCPSession(environment, "", 0, "history")
    for send in (pickle.dumps, copy.deepcopy):
        with pytest.raises(cw.UsageError, match="a session of 'shelf' is a conversation with a server that runs here"):
            send(session)


def test_isolation_leaves_its_sessions_in_the_server() -> None:
    environment = MCPEnvironment("no-such-command")
    assert declares(environment, OutOfProcess)
    for isolation in ("process", "auto", "none"):
        assert place(environment, isolation, None) is None


# What users know ------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "all.json").write_text('{"me": {"pin": "4711"}, "Bela": {"pin": "1"}}', encoding="utf-8")
    (tmp_path / "night.json").write_text('{"me": {"pin": "0000"}}', encoding="utf-8")
    return tmp_path


def test_a_file_says_what_users_of_a_foreign_server_know(wrap: Wrap, files: Path) -> None:
    environment = wrap("odd_server.py", "plain", knowledge=str(files / "all.json"))
    session = environment.open()
    before = session.digest()
    assert session.knowledge() == knowledge_of(session) == {"pin": "4711"}
    session.knowledge()["pin"] = "spoilt"
    assert (session.knowledge(), session.knowledge("Bela"), session.knowledge("Cem")) == (
        {"pin": "4711"},
        {"pin": "1"},
        {},
    )
    assert session.digest() == before
    assert pickle.loads(pickle.dumps(environment)).known == environment.known


def test_each_scenario_may_have_a_file_of_its_own(wrap: Wrap, files: Path) -> None:
    both = {"": str(files / "all.json"), "night": str(files / "night.json")}
    environment = wrap("odd_server.py", "plain", knowledge=both)
    assert environment.known["night"] == {"me": {"pin": "0000"}}
    assert environment.open().knowledge() == {"pin": "4711"}


def test_servers_without_a_file_know_nothing(wrap: Wrap) -> None:
    assert wrap("odd_server.py", "plain").open().knowledge() == {}


def test_a_file_that_cannot_be_read_is_named_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json"):
        MCPEnvironment(["true"], knowledge=str(tmp_path / "absent.json"))


def test_the_option_is_listed() -> None:
    assert "knowledge" in inspect.signature(MCPEnvironment).parameters


def served(*flags: str) -> MCPEnvironment:
    return MCPEnvironment([sys.executable, "-m", "callwright", "env", "serve", "banking", "--stdio", *flags], pool=1)


def test_our_environments_say_it_to_whoever_runs_them() -> None:
    environment = served("--helpers")
    try:
        session = environment.open("typical", 3)
        here = cw.environment("banking").open("typical", 3)
        before = session.digest()
        assert session.knowledge() == here.knowledge()
        assert session.knowledge("C00007") == here.knowledge("C00007") != {}
        assert session.digest() == before == here.digest()
    finally:
        environment.stop()


def test_without_helpers_they_say_it_to_nobody() -> None:
    environment = served()
    try:
        session: Any = environment.open("typical", 3)
        with pytest.raises(cw.UsageError, match="helpers"):
            session.knowledge()
    finally:
        environment.stop()
