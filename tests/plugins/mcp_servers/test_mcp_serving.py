"""Serving: default sessions, hidden tools, time-outs, cancellation, who is answered over HTTP, and leaving."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import callwright as cw
from callwright_plugins.mcp_servers.serving.service import Service, make_server
from callwright_plugins.mcp_servers.serving.transports import HttpOptions
from callwright_plugins.mcp_servers.wire import OUTCOME, SCENARIO, SESSION

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


def kind(result: Any) -> tuple[str, str]:
    about = result.meta[OUTCOME]
    return about["kind"], about.get("code", "")


def in_memory(service: Service, work: Callable[[Any], Any], mode: str = "auto") -> Any:
    from mcp import Client

    async def main() -> Any:
        async with Client(make_server(service), mode=mode) as client:
            return await work(client)

    return asyncio.run(main())


@MODES
def test_each_connection_has_a_session_of_its_own(shelf_world: ModuleType, mode: str) -> None:
    from mcp import Client

    world = shelf_world.ShelfWorld()
    server = make_server(Service(world, scenario="full", seed=4))

    async def main() -> None:
        async with Client(server, mode=mode) as one, Client(server, mode=mode) as other:
            await one.call_tool("put", {"name": "cup"})
            assert (await one.call_tool("list", {})).structured_content == {"result": ["cup", "vase"]}
            assert (await other.call_tool("list", {})).structured_content == {"result": ["vase"]}
            named: Any = {SESSION: "a", SCENARIO: ""}
            assert (await one.call_tool("list", {}, meta=named)).structured_content == {"result": []}

    asyncio.run(main())
    assert [shelf.closed for shelf in world.opened] == [True, True, False]  # the named one outlives its connections
    assert world.opened[0].first == {"vase": 5}


@MODES
def test_the_listing(shelf_world: ModuleType, mode: str) -> None:
    listing = in_memory(Service(shelf_world.ShelfWorld()), lambda client: client.list_tools(), mode).tools
    by_name = {tool.name: tool for tool in listing}
    assert "secret" not in by_name
    assert "_wipe" not in by_name
    put = by_name["put"]
    assert put.input_schema["required"] == ["name"]
    assert (put.annotations.read_only_hint, put.annotations.destructive_hint) == (False, True)
    assert put.annotations.idempotent_hint is True
    assert by_name["list"].annotations.read_only_hint is True
    assert by_name["list"].output_schema["properties"]["result"]["type"] == "array"


def test_structured_content_fits_the_output_schema(shelf_world: ModuleType) -> None:
    """The client of the SDK is the judge: it raises for content that does not fit."""

    async def calls(client: Any) -> None:
        await client.list_tools()
        for tool, arguments in (("put", {"name": "a"}), ("list", {}), ("take", {"name": "a"}), ("list", {})):
            assert not (await client.call_tool(tool, arguments)).is_error

    in_memory(Service(shelf_world.ShelfWorld()), calls)


@MODES
def test_hidden_tools_and_helpers_need_the_flag(shelf_world: ModuleType, mode: str) -> None:
    async def calls(client: Any) -> list[Any]:
        return [await client.call_tool(name, {}) for name in ("secret", "_wipe")]

    refused = in_memory(Service(shelf_world.ShelfWorld()), calls, mode)
    assert [kind(result) for result in refused] == [("unknown_tool", "unknown_tool")] * 2
    allowed = in_memory(Service(shelf_world.ShelfWorld(), helpers=True), calls, mode)
    assert kind(allowed[1]) == ("ok", "")
    listed = in_memory(Service(shelf_world.ShelfWorld(), helpers=True), lambda client: client.list_tools(), mode)
    assert not {"secret", "_wipe"} & {tool.name for tool in listed.tools}


def test_wrong_keys_are_refused(shelf_world: ModuleType) -> None:
    said: list[str] = []

    async def refusal(client: Any, meta: dict[str, Any]) -> str:
        result = await client.call_tool("list", {}, meta=meta)
        assert result.is_error
        assert kind(result) == ("infrastructure_error", "refused")
        return str(json.loads(result.content[0].text))  # what a model reads

    async def calls(client: Any) -> list[str]:
        await client.call_tool("list", {}, meta={SESSION: "a"})
        metas = ({SESSION: 3}, {SESSION: ""}, {SESSION: "b", SCENARIO: "none"}, {SESSION: "a", SCENARIO: "full"})
        return [await refusal(client, meta) for meta in (*metas, {"io.callwright/seed": "x"})]

    messages = in_memory(Service(shelf_world.ShelfWorld(), notice=said.append), calls)
    for message, words in zip(
        messages, ("string of 1 to", "string of 1 to", "no scenario named", "was opened with", "integer"), strict=True
    ):
        assert words in message
    assert len(said) == 4  # each once
    assert said[0].startswith("refused a call of mcp ")


def test_a_result_that_is_not_json(shelf_world: ModuleType) -> None:
    result = in_memory(Service(shelf_world.ShelfWorld()), lambda client: client.call_tool("bad_value", {}))
    assert kind(result) == ("execution_error", "not_json")


def test_a_call_over_the_limit_ends_its_session_and_no_other(shelf_world: ModuleType) -> None:
    async def calls(client: Any) -> list[Any]:
        await client.call_tool("put", {"name": "cup"}, meta={SESSION: "other"})
        stuck = client.call_tool("stuck", {}, meta={SESSION: "bad"})
        beside = client.call_tool("list", {}, meta={SESSION: "other"})  # answered while the other one is stuck
        done = await asyncio.gather(stuck, beside)
        return [*done, await client.call_tool("list", {}, meta={SESSION: "bad"})]

    service = Service(shelf_world.ShelfWorld(pure=False), time_limit=1.0)
    stuck, beside, after = in_memory(service, calls)
    assert kind(stuck) == ("infrastructure_error", "timeout")
    assert beside.structured_content == {"result": ["cup"]}
    assert kind(after) == ("infrastructure_error", "session")


@MODES
def test_a_cancelled_call_leaves_the_connection_usable(shelf_world: ModuleType, mode: str) -> None:
    async def calls(client: Any) -> Any:
        waiting = asyncio.create_task(client.call_tool("stuck", {}, meta={SESSION: "a"}))
        while "a" not in service.sessions:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        result = await client.call_tool("list", {}, meta={SESSION: "b"})
        return result, service.in_calls

    service = Service(shelf_world.ShelfWorld(pure=False), time_limit=120.0)
    result, running = in_memory(service, calls, mode)
    assert kind(result) == ("empty", "")
    assert running == 0  # the server stopped waiting too


def test_infrastructure_failures_travel(shelf_world: ModuleType) -> None:
    result = in_memory(Service(shelf_world.ShelfWorld()), lambda client: client.call_tool("break_down", {}))
    assert kind(result) == ("infrastructure_error", "infrastructure")


def test_sessions_are_bounded(shelf_world: ModuleType) -> None:
    async def calls(client: Any) -> list[Any]:
        for name in "abc":
            await client.call_tool("put", {"name": name}, meta={SESSION: name})
        return [await client.call_tool("list", {}, meta={SESSION: name}) for name in "abc"]

    service = Service(shelf_world.ShelfWorld(), capacity=2)
    gone, *kept = in_memory(service, calls)
    assert kind(gone) == ("infrastructure_error", "session")
    assert [kind(result) for result in kept] == [("ok", "")] * 2


@MODES
def test_sessions_are_managed_by_request(shelf_world: ModuleType, mode: str) -> None:
    from callwright_plugins.mcp_servers.connecting.connection import _session_request

    async def manage(client: Any, op: str, **more: str) -> dict[str, Any]:
        request, result = _session_request(op, {SESSION: "a"}, more)
        found: dict[str, Any] = (await client.session.send_request(request, result)).model_dump()
        return found

    async def calls(client: Any) -> None:
        first = (await manage(client, "open"))["digest"]
        await client.call_tool("put", {"name": "cup"}, meta={SESSION: "a"})
        second = (await manage(client, "digest"))["digest"]
        assert first != second
        assert (await manage(client, "fork", to="b"))["digest"] == second
        assert (await manage(client, "reset"))["digest"] == first
        assert (await client.call_tool("list", {}, meta={SESSION: "b"})).structured_content == {"result": ["cup"]}
        assert (await manage(client, "diff"))["diff"] == {"before": {}, "after": {}}
        assert (await manage(client, "close"))["closed"] is True
        assert (await manage(client, "close"))["closed"] is False

    in_memory(Service(shelf_world.ShelfWorld(), helpers=True), calls, mode)


# HTTP -----------------------------------------------------------------------------------------------------------------


def post(url: str, headers: dict[str, str] | None = None, body: Any = None, version: str = "2026-07-28") -> Any:
    import httpx2

    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = body or {"name": "list", "arguments": {}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**body, "_meta": meta}}
    standard = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": "tools/call",
        "mcp-name": body["name"],
    }
    return httpx2.post(url, json=request, headers={**standard, **(headers or {})}, timeout=120)


def test_a_request_that_stands_alone_must_name_its_session(
    shelf_world: ModuleType, serve_http: Callable[..., str]
) -> None:
    url = serve_http(Service(shelf_world.ShelfWorld()))
    refused = post(url).json()["result"]
    assert refused["isError"] is True
    assert "?session=" in refused["content"][0]["text"]
    put = {"name": "put", "arguments": {"name": "cup"}}
    assert post(f"{url}?session=mine&scenario=full&seed=3", body=put).json()["result"].get("isError") is not True
    listed = post(f"{url}?session=mine").json()["result"]["structuredContent"]
    assert listed == {"result": ["cup", "vase"]}
    assert post(f"{url}?session=another").json()["result"]["structuredContent"] == {"result": []}
    for seed in ("--3", "%C2%B2", "three"):
        refused = post(f"{url}?session=new&seed={seed}").json()["result"]
        assert "seed must be an integer" in refused["content"][0]["text"]


def test_connections_of_older_protocols_have_a_session(shelf_world: ModuleType, serve_http: Callable[..., str]) -> None:
    from mcp import Client

    url = serve_http(Service(shelf_world.ShelfWorld()))

    async def main() -> None:
        async with Client(url, mode="legacy") as one, Client(url, mode="legacy") as other:
            await one.call_tool("put", {"name": "cup"})
            assert (await one.call_tool("list", {})).structured_content == {"result": ["cup"]}
            assert (await other.call_tool("list", {})).structured_content == {"result": []}

    asyncio.run(main())


def test_only_who_bears_the_token_is_answered(shelf_world: ModuleType, serve_http: Callable[..., str]) -> None:
    from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

    url = serve_http(Service(shelf_world.ShelfWorld()), token="s3cret")
    one = f"{url}?session=a"
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "s3cret"}):
        refused = post(one, headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
    assert post(one, {"authorization": "Bearer s3cret"}).status_code == 200
    environment = MCPEnvironment(url=url, headers={"Authorization": "Bearer s3cret"})
    try:
        assert environment.open().call("list", {}).kind == "empty"
    finally:
        environment.stop()
    with pytest.raises(cw.InfrastructureFailure):
        MCPEnvironment(url=url).start()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:6274"}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "https://app.example"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "my-machine:80"}, 200),
        ({"host": "localhost"}, 200),
    ],
)
def test_web_pages_from_elsewhere_are_not_answered(
    shelf_world: ModuleType, serve_http: Callable[..., str], headers: dict[str, str], status: int
) -> None:
    service = Service(shelf_world.ShelfWorld())
    url = serve_http(service, origins=["https://app.example"], hosts=["my-machine"])
    assert post(f"{url}?session=a", headers).status_code == status
    assert len(service.sessions) == (status == 200)


def ask(url: str, origin: str, headers: str = "content-type,mcp-session-id,authorization") -> Any:
    """What a browser asks before a page's request."""
    import httpx2

    asked = {"access-control-request-method": "POST", "access-control-request-headers": headers}
    return httpx2.options(url, headers={"origin": origin, **asked}, timeout=120)


def test_browsers_are_told_what_an_allowed_page_may_do(shelf_world: ModuleType, serve_http: Callable[..., str]) -> None:
    url = serve_http(Service(shelf_world.ShelfWorld()), origins=["https://app.example"], token="s3cret")
    for origin in ("https://app.example", "http://localhost:6274"):
        allowed = ask(url, origin)  # without the token: browsers do not send it here
        assert allowed.status_code == 204
        assert allowed.headers["access-control-allow-origin"] == origin
        assert "POST" in allowed.headers["access-control-allow-methods"]
        assert "mcp-session-id" in allowed.headers["access-control-allow-headers"]
        for headers, status in (({}, 401), ({"authorization": "Bearer s3cret"}, 200)):
            answer = post(f"{url}?session=a", {"origin": origin, **headers})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == origin
            assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]
            assert answer.headers["vary"] == "Origin"
    refused = ask(url, "https://evil.example")
    assert refused.status_code == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]
    bearer = {"authorization": "Bearer s3cret"}
    assert "access-control-allow-origin" not in post(f"{url}?session=a", bearer).headers


def test_a_server_may_have_a_session_for_whoever_names_none(
    shelf_world: ModuleType, serve_http: Callable[..., str]
) -> None:
    from mcp import Client

    url = serve_http(Service(shelf_world.ShelfWorld(), session="ours"))

    async def main() -> list[Any]:
        found = []
        for mode in ("auto", "legacy", "auto"):
            async with Client(url, mode=mode) as client:
                await client.call_tool("put", {"name": f"cup{len(found)}"})
                found.append((await client.call_tool("list", {})).structured_content["result"])
        async with Client(f"{url}?session=another") as client:
            found.append((await client.call_tool("list", {})).structured_content["result"])
        return found

    cups = ["cup0", "cup1", "cup2"]
    assert asyncio.run(main()) == [cups[:1], cups[:2], cups, []]
    with pytest.raises(cw.UsageError, match="1 to 200"):
        Service(shelf_world.ShelfWorld(), session="")


def test_a_client_that_connects_for_each_call_is_named(shelf_world: ModuleType, serve_http: Callable[..., str]) -> None:
    from mcp import Client
    from mcp_types import Implementation

    said: list[str] = []
    url = serve_http(Service(shelf_world.ShelfWorld(), notice=said.append))

    async def main() -> None:
        for name, made in (("patient", 2), ("hasty\x1b[31m", 1)):
            for _ in range(4):
                about = Implementation(name=name, version="1")
                async with Client(url, mode="legacy", client_info=about) as client:
                    for _ in range(made):
                        await client.call_tool("list", {})

    asyncio.run(main())
    assert len(said) == 1
    assert said[0].startswith("the client hasty?[31m 1 opens a connection for each call")
    assert "?session=NAME" in said[0]


def test_health_and_unknown_paths(shelf_world: ModuleType, serve_http: Callable[..., str]) -> None:
    import httpx2

    url = serve_http(Service(shelf_world.ShelfWorld()))
    assert httpx2.get(url.replace("/mcp", "/health")).json() == {"environment": "shelf", "sessions": 0}
    assert httpx2.get(url.replace("/mcp", "/etc/passwd")).status_code == 404
    assert httpx2.post(url, content=b"{" * 5_000_000).status_code in (400, 413)


def test_other_machines_need_a_token() -> None:
    with pytest.raises(cw.UsageError, match="--token"):
        HttpOptions("0.0.0.0")
    HttpOptions("0.0.0.0", token="x")
    with pytest.raises(cw.UsageError, match="empty"):
        HttpOptions(token="")


def test_a_port_that_is_taken(shelf_world: ModuleType, serve_http: Callable[..., str]) -> None:
    port = int(serve_http(Service(shelf_world.ShelfWorld())).split(":")[2].split("/")[0])
    with pytest.raises(OSError, match="in use"):
        serve_http(Service(shelf_world.ShelfWorld()), port=port)


# stdio ----------------------------------------------------------------------------------------------------------------

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_nothing_but_the_protocol_is_on_stdout(servers: Path, child_environment: dict[str, str]) -> None:
    command = [sys.executable, str(servers / "shelf_world.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=child_environment) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(lines(HELLO, READY, call(2, "noisy"), {"not": "a message"}, call(3, "list")))
        server.stdin.flush()
        rows = []
        while not {row.get("id") for row in rows} >= {1, 2, 3}:  # the end of input would end calls that are under way
            rows.append(json.loads(server.stdout.readline()))
        rest, errors = server.communicate(timeout=120)
    rows += [json.loads(line) for line in rest.splitlines()]
    assert [row["jsonrpc"] for row in rows] == ["2.0"] * len(rows)
    assert {row.get("id") for row in rows} >= {1, 2, 3}
    assert b"this must not reach the client" in errors
    assert server.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_server_while_it_waits(
    servers: Path, child_environment: dict[str, str], number: signal.Signals
) -> None:
    words = [sys.executable, str(servers / "shelf_world.py")]
    child = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=child_environment
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(lines(HELLO))
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["id"] == 1
        child.send_signal(number)
        assert child.wait(timeout=120) == 0  # though stdin is still open


@MODES
def test_a_client_is_told_the_rules_the_time_and_the_person(mode: str) -> None:
    async def told(client: Any) -> str:
        return str(client.instructions)

    mail: Any = cw.environment("email")
    said = in_memory(Service(mail, scenario="sparse", seed=2), told, mode)
    assert said.startswith("The Callwright environment 'email': 17 tools.\n\nYou look after the mailbox")
    assert said.endswith(mail.briefing(mail.open("sparse", 2)))
    assert "Now: Monday, 2026-03-02T09:00:00Z." in said


def test_a_client_of_an_environment_without_rules_is_told_what_it_is(shelf_world: ModuleType) -> None:
    async def told(client: Any) -> str:
        return str(client.instructions)

    assert "\n" not in in_memory(Service(shelf_world.ShelfWorld()), told)


def test_an_environment_whose_next_finds_nothing_is_an_error_of_the_session(shelf_world: ModuleType) -> None:
    class Nowhere(shelf_world.ShelfWorld):  # type: ignore[misc]
        def open(self, scenario: str, seed: int) -> Any:
            return next(one for one in () if one == scenario)

    async def asked() -> Any:
        service = Service(Nowhere(), threads=True)
        return await asyncio.wait_for(service.manage("a", {}, {"op": "open"}), 60)

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(asked())
