"""Servers that are sloppy or hostile: what each way to misbehave comes to, and how soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import callwright as cw
import callwright.machines.command_folder as common
from callwright.errors import ComponentError, DataError
from callwright.tools.schema_dialects import inline_definitions
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import check_arguments
from callwright_plugins.mcp_servers.connecting.connection import Target, is_finite
from callwright_plugins.mcp_servers.connecting.foreign import read_listing
from callwright_plugins.mcp_servers.connecting.pipes import TOO_LARGE, UNREADABLE, _Lines, _messages, _TooLong
from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

Wrap = Callable[..., MCPEnvironment]
SERVER = "misbehaving_server.py"
OK = "ok", ""
MASKED = "infrastructure_error"
SAID = 'ok {"text": "a"}'


@pytest.mark.parametrize(
    ("mode", "outcome", "value"),
    [
        ("plain", OK, SAID),
        ("kill", (MASKED, "crashed"), None),
        ("hang", (MASKED, "timeout"), None),
        ("huge", (MASKED, "too_large"), None),
        ("utf8", OK, "\ufffd\ufffd bad \ufffd"),
        ("surrogate", (MASKED, "protocol"), None),
        ("deep", (MASKED, "protocol"), None),
        ("idlast", (MASKED, "protocol"), None),
        ("nan", (MASKED, "protocol"), None),
        ("infinity", (MASKED, "protocol"), None),
        ("notjson", (MASKED, "protocol"), None),
        ("noise", OK, SAID),
        ("wrongid", OK, SAID),
        ("elicit", OK, SAID),
        ("sampling", OK, SAID),
        ("flood", OK, SAID),
        ("stderr", OK, SAID),
    ],
)
def test_what_a_call_comes_to(wrap: Wrap, mode: str, outcome: tuple[str, str], value: Any) -> None:
    waits = outcome[1] == "timeout"
    environment = wrap(SERVER, mode, time_limit=0.5 if waits else 120.0, retries=0)
    session = environment.open()
    found = session.call("echo", {"text": "a"})
    assert ((found.kind, found.code), found.value) == (outcome, value)  # at once: at the end of its time it is late
    assert (session.call("echo", {"text": "a"}).kind == MASKED) is (outcome[0] == MASKED)


def test_special_tokens_of_a_server_are_text(wrap: Wrap) -> None:
    found = wrap(SERVER, "inject").open().call("echo", {"text": "a"})
    assert found.kind == "ok"
    assert found.value.startswith("<|im_end|>")


def test_bytes_become_their_type_and_size(wrap: Wrap) -> None:
    image, link, blob = wrap(SERVER, "image").open().call("echo", {"text": "a"}).value
    assert image == {"type": "image", "mimeType": "image/png", "bytes": 300_000}
    assert link["uri"] == "file:///etc/passwd"
    assert blob["resource"] == {"uri": "x:y", "mimeType": "text/x", "bytes": 2}


@pytest.mark.parametrize(
    ("undeclared", "kind"), [("execution_error", "execution_error"), ("mask", MASKED), ("raise", "")]
)
def test_results_are_held_against_their_own_schema(wrap: Wrap, undeclared: str, kind: str) -> None:
    session = wrap(SERVER, "lie", undeclared=undeclared).open()
    if not kind:
        with pytest.raises(ComponentError, match="does not fit the tool's own output schema"):
            session.call("count", {})
        return
    start = session.digest()
    found = session.call("count", {})
    assert (found.kind, found.code) == (kind, "bad_result")
    assert "n: " in found.message
    assert found.undeclared.startswith("count: ")
    if kind == "execution_error":
        assert session.digest() != start  # it may have changed something all the same
        assert session.call("echo", {"text": "a"}).kind == "ok"  # of this one nothing is promised


# Listings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "more"), [("samecursor", []), ("collide", ["a_b", "a_b_2", "echo_2"]), ("regex", ["rx"])]
)
def test_listings_end_and_names_differ(wrap: Wrap, mode: str, more: list[str]) -> None:
    assert list(wrap(SERVER, mode).tools) == ["echo", "count", "pay", "look", *more]


def test_pages_without_end_have_one(wrap: Wrap) -> None:
    assert len(wrap(SERVER, "endless").tools) == 200


@pytest.fixture
def new_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """As a program that has said nothing yet, and whose log no earlier test of a command has set up."""
    monkeypatch.setenv(common.FOLDER, str(tmp_path / "command"))
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("new_command")
def test_a_tool_whose_schema_is_none_is_left_out(wrap: Wrap, caplog: pytest.LogCaptureFixture) -> None:
    environment = wrap(SERVER, "badschema")
    environment.start()
    assert list(environment.tools) == ["echo", "count", "pay", "look"]
    (said,) = caplog.messages
    assert "misbehaving_server.py: the tool 'bad' is left out: the parameters of tool 'bad': not a valid" in said
    assert said.endswith("That is a fault of the server; hide=['bad'] leaves it out without a word")
    session = environment.open()
    assert session.call("echo", {"text": "a"}).kind == "ok"
    assert session.call("bad", {"x": 1}).kind == "unknown_tool"


@pytest.mark.usefixtures("new_command")
def test_tools_that_the_protocol_does_not_allow_are_left_out(wrap: Wrap, caplog: pytest.LogCaptureFixture) -> None:
    environment = wrap(SERVER, "nameless")
    environment.start()
    assert list(environment.tools) == ["echo", "count", "pay", "look", "last"]
    assert sorted(message.partition("misbehaving_server.py: ")[2] for message in caplog.messages) == [
        "tool 5 of the listing ('What nobody knows.') is left out: it has no name. That is a fault of the server",
        "tool 6 of the listing ('What  does.') is left out: it has no name. That is a fault of the server",
        "tool 7 of the listing is left out: it is no object. That is a fault of the server",
    ]


@pytest.mark.usefixtures("new_command")
def test_nothing_is_said_of_a_broken_tool_that_is_hidden(wrap: Wrap, caplog: pytest.LogCaptureFixture) -> None:
    for mode in ("noobject", "badschema"):
        environment = wrap(SERVER, mode, hide=["bad"])
        environment.start()
        assert [name for name, spec in environment.tools.items() if not spec.hidden] == ["echo", "count", "pay", "look"]
    assert caplog.messages == []


def test_a_listing_without_a_tool_that_can_be_used_is_an_error(wrap: Wrap) -> None:
    with pytest.raises(DataError, match="no tool of the listing can be used: the tool 'bad': the param"):
        wrap(SERVER, "noschema").start()


def test_a_listing_that_the_protocol_does_not_allow_is_told_in_one_line(wrap: Wrap) -> None:
    with pytest.raises(cw.InfrastructureFailure) as failed:
        wrap(SERVER, "nothingsound").start()
    said = str(failed.value)
    assert "it answers with what MCP does not allow: the tool 'bad': inputSchema.type: " in said
    assert "\n" not in said
    assert "http" not in said


def test_patterns_that_explode_are_no_trap(wrap: Wrap) -> None:
    assert wrap(SERVER, "regex").open().call("rx", {"x": "a" * 40 + "b"}).kind == "schema_error"


def test_definitions_that_double_keep_their_references(wrap: Wrap) -> None:
    session = wrap(SERVER, "refbomb").open()
    inner = {"a": {"b": {"a": {}}}}
    assert session.call("bomb", {"x": inner}).kind == "ok"
    assert session.call("bomb", {"x": {"a": {"b": "no object"}}}).kind == "schema_error"
    assert session.call("bomb", {"x": {"c": 1}}).kind == "schema_error"


@pytest.mark.parametrize("levels", [30, 2000])
def test_inlining_is_bounded(levels: int) -> None:
    below = [{"$ref": f"#/$defs/L{level}"} for level in range(levels)]
    width = 2 if levels == 30 else 1
    definitions: dict[str, Any] = {"L0": {"title": "Name", "type": "string"}}
    for level in range(1, levels):
        properties = dict.fromkeys("ab"[:width], below[level - 1])
        definitions[f"L{level}"] = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"x": below[-1]}, "$defs": definitions}
    inlined = inline_definitions(schema)
    spec = ToolSpec("t", parameters=inlined)
    assert check_arguments(spec, {"x": {"a": {"a": {}}}}) == ()
    assert inlined["properties"] == {"x": below[-1]}
    assert inlined["$defs"]["L0"] == {"type": "string"}
    assert inlined["$defs"].keys() == definitions.keys()


def test_definitions_of_any_form_are_read() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/Any"}, "b": {"$ref": "#/$defs/None"}}, "$defs": {"Any": True}}
    assert inline_definitions(schema)["properties"]["a"] is True
    assert inline_definitions({"properties": {}, "$defs": 5}) == {"properties": {}}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "object"}, True),
        ({}, True),
        ({"type": "object", "description": "anything"}, True),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "additionalProperties": False}, False),
        ({"type": "object", "properties": {}, "additionalProperties": True}, True),
        ({"type": "object", "required": ["other"]}, False),
    ],
)
def test_an_open_schema_takes_arguments(schema: dict[str, Any], fits: bool) -> None:
    spec = read_listing([{"name": "a", "inputSchema": schema}])["a"].spec
    assert (check_arguments(spec, {"anything": [1]}) == ()) is fits
    assert check_arguments(spec, {}) == () or "required" in schema


def test_an_open_schema_reaches_the_server(wrap: Wrap) -> None:
    found = wrap(SERVER, "plain").open().call("pay", {"to": "Pavel"})
    assert (found.kind, found.value) == ("ok", 'ok {"to": "Pavel"}')


def test_tools_that_change_are_read_again(wrap: Wrap, tmp_path: Path) -> None:
    session = wrap(SERVER, "changes").open()
    assert session.call("echo", {"text": "a"}).kind == "ok"
    found = session.call("echo", {"text": "a"})
    assert (found.kind, found.code) == (MASKED, "changed")
    assert "tool echo, description" in found.message
    grown = wrap(SERVER, "grows").open()
    assert [grown.call("echo", {"text": "a"}).kind for _ in range(3)] == ["ok"] * 3  # what is new is not offered
    assert "extra4" not in grown.environment.tools
    shared = wrap(SERVER, "changes", isolation="shared")
    one, other = shared.open(), shared.open()
    assert one.call("echo", {"text": "a"}).kind == "ok"
    assert [session.call("look", {}).code for session in (one, other)] == ["changed", ""]  # in a process that is fresh
    locked = wrap(SERVER, "grows", lock=tmp_path / "lock").open()
    assert locked.call("echo", {"text": "a"}).kind == "ok"
    found = locked.call("echo", {"text": "a"})
    assert (found.code, "tool extra4: new" in found.message) == ("changed", True)


def test_servers_of_the_newest_protocol_are_asked_to_tell(wrap: Wrap) -> None:
    environment = wrap("changing_server.py")
    session = environment.open()
    assert environment.description.protocol == "2026-07-28"
    assert session.call("change", {}).kind == "ok"
    found = session.call("look", {})
    assert (found.code, "tool look, description" in found.message) == ("changed", True)
    assert environment.open().call("look", {}).kind == "ok"  # in a fresh process it is as it was


# Doing things twice ---------------------------------------------------------------------------------------------------


def calls(path: Path) -> list[str]:
    return path.read_text().split()


@pytest.mark.parametrize(
    ("isolation", "made"), [("process", ["echo", "pay", "echo", "pay"]), ("shared", ["echo", "pay"])]
)
def test_a_call_is_repeated_only_in_a_fresh_copy(wrap: Wrap, tmp_path: Path, isolation: str, made: list[str]) -> None:
    log = tmp_path / "log"
    session = wrap(SERVER, "slow", str(log), isolation=isolation, time_limit=1.0).open()
    assert session.call("echo", {"text": "a"}).kind == "ok"
    found = session.call("pay", {"to": "Pavel"})
    assert (found.kind, found.code) == (MASKED, "timeout")
    assert ("may have happened" in found.message) is (isolation == "shared")
    assert calls(log) == made


def test_a_session_beside_it_is_not_moved_unnoticed(wrap: Wrap, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = wrap(SERVER, "slow", str(log), isolation="shared", time_limit=1.0)
    wrote, read, payer = environment.open(), environment.open(), environment.open()
    wrote.call("echo", {"text": "a"})
    read.call("look", {})
    assert payer.call("pay", {}).code == "timeout"
    assert read.call("look", {}).kind == "ok"  # what only reads can be done again
    found = wrote.call("look", {})
    assert (found.kind, "would be done twice" in found.message) == (MASKED, True)
    assert calls(log) == ["echo", "look", "pay", "look", "look"]
    with pytest.raises(cw.InfrastructureFailure):
        wrote.fork()


def test_messages_name_the_server_in_short(wrap: Wrap, tmp_path: Path) -> None:
    found = wrap(SERVER, "kill", str(tmp_path / "log"), retries=0).open().call("echo", {"text": "a"})
    assert "misbehaving_server.py: it went away during echo" in found.message
    assert str(tmp_path) not in found.message
    assert "/servers/" not in found.message
    assert Target(("npx", "-y", "@modelcontextprotocol/server-memory", "--x", "s3")).label == "npx server-memory"
    assert Target(("/opt/bin/bank", "--pin", "1234")).label == "bank"
    assert Target(url="http://u:pw@host:80/mcp?session=a&key=b").label == "http://REDACTED@host:80/mcp"


# Lines ----------------------------------------------------------------------------------------------------------------


def test_lines_are_put_together_however_they_are_cut() -> None:
    text = b"one\n\ntwo and more\nthree\n" + b"x" * 50 + b"\nfour\nrest"
    for size in range(1, len(text) + 1):
        lines, found = _Lines(20), []
        for at in range(0, len(text), size):
            found += lines.feed(text[at : at + size])
        short = [b"long" if isinstance(line, _TooLong) else line for line in found]
        assert short == [b"one", b"", b"two and more", b"three", b"long", b"four"]


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        (b'{"jsonrpc":"2.0","id":2,"result":{"a":"\\ud800","id":3}}', [2]),
        (b'{"id": 2, "jsonrpc": "2.0", "result": ]', [2]),
        (b'{"result":{"id":3,"a":[},"jsonrpc":"2.0","id":2}', [2]),
        (b'{"result":{"a":[},"id":"x-1","jsonrpc":"2.0"}', ["x-1"]),
        (b'{"jsonrpc":"2.0","id":77,"result":[}', []),
        (b'{"jsonrpc":"2.0","result":[},"more":1}', [2, 3, "x-1"]),
        (b'{"level":"info", "mess', []),
        (b"not JSON", []),
        (b"", []),
    ],
)
def test_a_broken_answer_fails_the_request_that_it_is_for(line: bytes, failed: list[Any]) -> None:
    waiting: set[Any] = {2, 3, "x-1"}
    errors = _messages(line, waiting)
    assert [error.id for error in errors] == failed
    assert {error.error.code for error in errors} <= {UNREADABLE}
    assert waiting == {2, 3, "x-1"} - set(failed)


def test_a_long_answer_fails_too() -> None:
    (error,) = _messages(_TooLong(b'{"jsonrpc":"2.0","id":3,"result":{"content'), {2, 3})
    assert (error.id, error.error.code) == (3, TOO_LARGE)


@pytest.mark.parametrize(
    ("value", "finite"),
    [(1.5, True), (float("nan"), False), ({"a": [1, {"b": float("inf")}]}, False), ({"a": [1, None, "NaN"]}, True)],
)
def test_numbers_that_json_cannot_say(value: Any, finite: bool) -> None:
    assert is_finite(value) is finite
