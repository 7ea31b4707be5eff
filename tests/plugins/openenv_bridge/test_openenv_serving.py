"""Our environments behind OpenEnv's protocol: messages, pages, sessions, and the way back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments.capabilities import scenarios_of
from callwright.errors import InfrastructureFailure, MissingExtra, UsageError
from callwright_plugins.openenv_bridge.service import Service

STATEFUL = (
    "banking budget calendar crm email filesystem food_delivery iot_devices issue_tracker maps marketplace payments "
    "retail_chain shopping social_media team_chat trading travel_booking vehicle video_meeting"
).split()


@pytest.mark.parametrize("name", STATEFUL)
def test_every_stateful_environment_is_read_back_as_it_is(name: str, serve: Callable[..., Any]) -> None:
    ours = cw.environment(name)
    theirs = cw.environment("openenv", url=serve(ours).url)
    assert dict(theirs.tools) == {key: spec for key, spec in ours.tools.items() if not spec.hidden}
    for scenario in scenarios_of(ours):
        here, there = ours.open(scenario, 5), theirs.open(scenario, 5)
        assert there.digest() == here.digest()
        assert theirs.briefing(there) == ours.briefing(here)
        for tool in ("nothing_of_this_name", *theirs.tools):
            assert there.call(tool, {}) == here.call(tool, {})
        assert there.digest() == here.digest()
        there.close()


@pytest.mark.parametrize("name", ["toolworld-mini-v1", "depthbench-v1"])
def test_the_gold_programs_of_a_corpus_score_a_full_reward(name: str, serve: Callable[..., Any]) -> None:
    corpus = cw.corpus(name)
    form, recipe = cw.parser("json"), cw.reward("tier")
    split = "evaluation" if "evaluation" in corpus.splits else "validation"
    tasks = [task for task in corpus[split][:60] if task.program is not None and task.user is None][:30]
    read: dict[str, Any] = {}
    for task in tasks:
        environment = task.environment
        if environment.name not in read:
            read[environment.name] = cw.environment("openenv", url=serve(environment).url)
        there = evolve(task, environment=read[environment.name])
        text = form.render(task.program)
        assert recipe.score(task, text, ir=form).total == recipe.score(there, text, ir=form).total == 1.0, task.id
    assert len(tasks) >= 20


def test_sessions_never_see_one_another(serve: Callable[..., Any]) -> None:
    service = serve(cw.environment("email"))
    theirs = cw.environment("openenv", url=service.url)
    sessions = [theirs.open("typical", seed) for seed in (1, 1, 2)]
    assert len(service) == 3
    first = [session.digest() for session in sessions]
    assert first[0] == first[1] != first[2]
    found = sessions[0].call("search_messages", {"query": "in:inbox"}).value["items"][0]["message_id"]
    assert sessions[0].call("archive_messages" if "archive_messages" in theirs.tools else "get_message", {}).failed
    assert sessions[0].call("delete_message", {"message_id": found}).kind in ("ok", "schema_error", "unknown_tool")
    assert [session.digest() for session in sessions[1:]] == first[1:]
    for session in sessions:
        session.close()


def said(service: Service, *messages: Any) -> list[dict[str, Any]]:
    """What a session answers to messages, without a network."""
    seat = service.take()
    try:
        return [seat.answer(message) for message in messages]
    finally:
        service.leave(seat)


def step(**action: Any) -> dict[str, Any]:
    """A message."""
    return {"type": "step", "data": action}


def test_messages_are_answered_as_openenv_answers() -> None:
    service = Service(cw.environment("banking"), seed=4)
    reset, listing, call, failed, state = said(
        service,
        {"type": "reset", "data": {"seed": 9, "episode_id": "mine", "scenario": "sparse", "level": 2}},
        step(type="list_tools"),
        step(type="call_tool", tool_name="find_customer", arguments={"limit": 1}),
        step(tool_name="find_customer", arguments={"limit": "x"}, metadata={}),
        {"type": "state"},
    )
    assert reset["data"]["observation"]["briefing"].startswith("You are")
    assert (reset["data"]["reward"], reset["data"]["done"]) == (None, False)
    tools = listing["data"]["observation"]["tools"]
    assert {tuple(tool) for tool in tools} == {("name", "description", "input_schema")}
    assert call["data"]["observation"]["error"] is None
    assert len(call["data"]["observation"]["result"]["items"]) == 1
    assert failed["data"]["observation"]["error"]["error_type"] == "invalid_args"
    assert state["data"]["episode_id"] == "mine"
    assert (state["data"]["step_count"], state["data"]["scenario"], state["data"]["seed"]) == (2, "sparse", 9)
    bank = cw.environment("banking").open("sparse", 9)
    assert state["data"]["digest"] == bank.digest()


def test_an_episode_begins_at_the_first_step_if_nothing_reset_it() -> None:
    service = Service(cw.environment("banking"), scenario="sparse", seed=4)
    (state,) = said(service, {"type": "state"})
    assert state["data"]["digest"] == cw.environment("banking").open("sparse", 4).digest()


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        ([], "VALIDATION_ERROR", "an object"),
        ({"type": "jump"}, "UNKNOWN_TYPE", "jump"),
        ({"type": "reset", "data": 3}, "VALIDATION_ERROR", "data must be an object"),
        ({"type": "reset", "data": {"seed": "3"}}, "VALIDATION_ERROR", "seed must be of the type int"),
        ({"type": "reset", "data": {"seed": True}}, "VALIDATION_ERROR", "seed"),
        ({"type": "reset", "data": {"scenario": "nowhere"}}, "EXECUTION_ERROR", "no scenario"),
        ({"type": "reset", "data": {"episode_id": "x" * 300}}, "VALIDATION_ERROR", "255"),
        (step(message="hello"), "VALIDATION_ERROR", "list_tools"),
        (step(type="call_tool", tool_name=3), "VALIDATION_ERROR", "tool_name must be a string"),
        (step(type="call_tool", tool_name="x", arguments=[]), "VALIDATION_ERROR", "arguments an object"),
        (step(type="list_tools", more=1), "VALIDATION_ERROR", "no field 'more'"),
    ],
)
def test_messages_that_are_none(message: Any, code: str, words: str) -> None:
    refused, state = said(Service(cw.environment("banking")), message, {"type": "state"})
    assert refused["type"] == "error"
    assert refused["data"]["code"] == code
    assert words in refused["data"]["message"]
    assert state["type"] == "state"  # the session goes on


def test_a_reset_that_is_refused_leaves_the_episode_as_it_was() -> None:
    first, refused, second = said(
        Service(cw.environment("banking")),
        {"type": "state"},
        {"type": "reset", "data": {"scenario": "nowhere"}},
        {"type": "state"},
    )
    assert refused["type"] == "error"
    assert first == second


def test_what_is_over_the_capacity_is_refused_and_takes_nobodys_place(serve: Callable[..., Any]) -> None:
    service = serve(cw.environment("banking"), capacity=1)
    theirs = cw.environment("openenv", url=service.url, wait_limit=0)
    # The listing's own session frees its place when the server hears of its end; that is waited for.
    session = cw.environment("openenv", url=service.url, wait_limit=60).open()
    with pytest.raises(InfrastructureFailure, match=r"no room for another session.*1/1"):
        theirs.open()
    assert session.call("find_customer", {"limit": 1}).executed
    session.close()


def test_sessions_that_no_connection_holds_are_given_up() -> None:
    service = Service(cw.environment("banking"), capacity=1, idle=0.0)
    left = service.take()
    left.used -= 1
    assert service.take() is not left
    assert service.seat(left.id) is None
    held = Service(cw.environment("banking"), capacity=1, idle=0.0)
    seat = held.take()
    seat.held, seat.used = True, 0.0
    with pytest.raises(Exception, match="at capacity"):
        held.take()


def test_a_session_that_is_spoken_to_by_mcp_is_in_use() -> None:
    service = Service(cw.environment("banking"), capacity=1, idle=600.0)
    seat = service.take()
    seat.used -= 1000
    seat.rpc({"id": 1, "method": "tools/call", "params": {"name": "find_customer", "arguments": {"limit": 1}}})
    with pytest.raises(Exception, match="at capacity"):
        service.take()
    assert service.seat(seat.id) is seat


def test_the_pages(serve: Callable[..., Any], ask: Callable[..., tuple[int, Any]]) -> None:
    url = serve(cw.environment("banking")).url
    assert ask(f"{url}/health") == (200, {"status": "healthy"})
    assert ask(f"{url}/metadata")[1]["name"] == "banking"
    assert ask(f"{url}/schema")[1].keys() == {"action", "observation", "state"}
    assert set(ask(f"{url}/openapi.json")[1]["paths"]) >= {"/reset", "/step", "/state", "/mcp"}
    assert ask(f"{url}/reset", {"seed": 3})[1]["done"] is False
    assert ask(f"{url}/state")[1]["step_count"] == 0
    called = {"action": {"type": "call_tool", "tool_name": "find_customer", "arguments": {"limit": 1}}}
    assert ask(f"{url}/step", called)[1]["observation"]["error"] is None
    assert ask(f"{url}/step", {"action": {"message": "x"}})[0] == 422
    assert ask(f"{url}/step", {})[0] == 422
    assert ask(f"{url}/nowhere")[0] == 404
    assert ask(f"{url}/health", {})[0] == 405
    # A page of another origin is not answered, nor is a name that leads here.
    assert ask(f"{url}/health", Origin="http://evil.example")[0] == 403
    assert ask(f"{url}/health", Host="evil.example")[0] == 421


def test_mcp_over_http_has_sessions(serve: Callable[..., Any], ask: Callable[..., tuple[int, Any]]) -> None:
    service = serve(cw.environment("banking"))

    def rpc(method: Any, **params: Any) -> Any:
        status, answer = ask(f"{service.url}/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert (status, answer["jsonrpc"]) == (200, "2.0")
        return answer.get("result", answer.get("error"))

    id = rpc("openenv/session/create")["session_id"]
    assert len(service) == 1
    assert len(rpc("tools/list")["tools"]) == len(rpc("tools/list", session_id=id)["tools"]) == 17
    found = rpc("tools/call", session_id=id, name="find_customer", arguments={"limit": 1})
    assert (found["isError"], found["data"]["total"]) == (False, found["structuredContent"]["total"])
    assert rpc("tools/call", session_id=id, name="find_customer", arguments={"limit": "x"})["isError"]
    assert "data" not in rpc("tools/call", name="nobody", arguments={})
    assert service.seat(id)._steps == 2
    assert rpc("tools/call", session_id="other", name="x")["code"] == -32602
    assert rpc("prompts/list")["code"] == -32601
    assert rpc(3)["code"] == -32600
    assert rpc("openenv/session/close", session_id=id) == {"session_id": id, "closed": True}
    assert rpc("openenv/session/close", session_id=id)["code"] == -32602
    assert len(service) == 0
    assert ask(f"{service.url}/mcp", [])[1]["error"]["code"] == -32700


def test_sockets_attach_to_a_session_and_speak_mcp(serve: Callable[..., Any]) -> None:
    from websockets.sync.client import connect

    service = serve(cw.environment("banking"))
    seat = service.take()
    url = service.url.replace("http", "ws")
    with connect(f"{url}/ws?session_id={seat.id}", proxy=None) as socket:
        socket.send(json.dumps({"type": "reset", "data": {"seed": 5}}))
        assert json.loads(socket.recv(60))["type"] == "observation"
        with connect(f"{url}/ws?session_id={seat.id}", proxy=None) as second:
            assert "already has an attached" in json.loads(second.recv(60))["data"]["message"]
        socket.send("{")
        assert json.loads(socket.recv(60))["data"]["code"] == "INVALID_JSON"
        socket.send(json.dumps({"type": "mcp", "data": {"id": 2, "method": "tools/list"}}))
        assert len(json.loads(socket.recv(60))["data"]["result"]["tools"]) == 17
        socket.send(json.dumps({"type": "close"}))
    assert service.seat(seat.id) is seat  # it was made elsewhere, and ends there
    with connect(f"{url}/ws?session_id=other", proxy=None) as socket:
        assert json.loads(socket.recv(60))["data"]["code"] == "SESSION_ERROR"
    with connect(f"{url}/mcp", proxy=None) as socket:
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nobody"}}))
        assert json.loads(socket.recv(60))["result"]["isError"]
        socket.send("{")
        assert json.loads(socket.recv(60))["error"]["code"] == -32700
        socket.send("[]")
        assert json.loads(socket.recv(60))["error"]["code"] == -32600


def test_a_token_is_asked_for(serve: Callable[..., Any], ask: Callable[..., tuple[int, Any]]) -> None:
    url = serve(cw.environment("banking"), token="s3cret").url
    assert ask(f"{url}/health")[0] == 401
    bearing = {"Authorization": "Bearer s3cret"}
    assert ask(f"{url}/health", **bearing)[0] == 200
    cw.environment("openenv", url=url, headers=bearing).open().close()
    with pytest.raises(InfrastructureFailure, match="HTTP 401"):
        _ = cw.environment("openenv", url=url).tools


def test_only_this_machine_is_listened_to_without_a_token() -> None:
    from callwright_plugins.openenv_bridge.asgi import Where

    with pytest.raises(UsageError, match="give a token"):
        Where("0.0.0.0")
    with pytest.raises(UsageError, match="empty"):
        Where(token="")


def test_time_and_hazards_are_told_as_everywhere(serve: Callable[..., Any]) -> None:
    from callwright.environments.hazards.policy import read_hazards
    from callwright.environments.living.policy import read_policy

    ours = cw.environment("banking")
    options = {"clock": read_policy("on"), "hazards": read_hazards("unavailable=1.0")}
    session = cw.environment("openenv", url=serve(ours, **options).url).open()
    outcome = session.call("find_customer", {"limit": 1})
    assert (outcome.failed, outcome.injected) == (True, "unavailable")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_command_serves_until_it_is_told_to_stop(number: signal.Signals, status: int) -> None:
    command = [sys.executable, "-m", "callwright", "openenv", "serve", "banking", "--port", "0", "--scenario", "sparse"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving banking: 17 tools for OpenEnv at http://127.0.0.1:"), line
        session = cw.environment("openenv", url=line.rsplit(" ", 1)[1].strip()).open()
        assert session.digest() == cw.environment("banking").open("sparse", 0).digest()
        session.close()
        process.send_signal(number)
        assert process.wait(120) == status
        assert process.stderr.read().split() == ["stopped"]


def test_a_wrong_scenario_is_said_when_it_starts() -> None:
    command = [
        sys.executable,
        "-m",
        "callwright",
        "openenv",
        "serve",
        "banking",
        "--port",
        "0",
        "--scenario",
        "nowhere",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


@pytest.mark.parametrize("missing", ["uvicorn", "websockets"])
def test_without_the_packages_the_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from callwright_plugins.openenv_bridge.asgi import Where, serving

    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"pip install 'callwright\[openenv\]'"):
        asyncio.run(serving(Service(cw.environment("banking")), Where()))


def test_without_websockets_the_environment_names_the_extra(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve(cw.environment("banking")).url
    monkeypatch.setitem(sys.modules, "websockets.sync.client", None)
    with pytest.raises(MissingExtra, match=r"pip install 'callwright\[openenv\]'"):
        cw.environment("openenv", url=url).open()
