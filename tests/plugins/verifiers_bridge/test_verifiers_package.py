"""The verifiers bridge against verifiers itself: its loaders, its scoring and its tool servers."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import UnknownName
from callwright.language.wording import native_instructions
from callwright.walk.prompt import build_messages
from callwright_plugins import verifiers_bridge

with warnings.catch_warnings():  # they warn of what is theirs while they are imported
    warnings.simplefilter("ignore")
    pytest.importorskip("verifiers", reason="needs verifiers, or CALLWRIGHT_VERIFIERS_PYTHON")
    import verifiers.v1 as vf
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.mcp.launch import serve
    from verifiers.v1.utils import loaders
    from verifiers.v1.utils.generic import concrete_type

    from callwright_plugins.verifiers_bridge.calling import RolloutSession
    from callwright_plugins.verifiers_bridge.tasks import CallwrightToolTask
    from callwright_plugins.verifiers_bridge.tool_server import CallwrightState, EnvironmentToolset

NAME = "toolworld-mini-v1"
CORPUS = cw.corpus(NAME)
ONE_CALL = next(task for task in CORPUS["train"][:40] if task.depth == 1 and task.returns == "one")


@pytest.fixture(autouse=True)
def _their_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def made(**options: Any) -> Any:
    """A taskset as verifiers makes it, of its class."""
    kind = verifiers_bridge.taskset(NAME, **options)
    return kind()


def trace_of(task: Any, *messages: Any, masked: str | None = None) -> Any:
    """A finished rollout in which a model wrote these messages."""
    return vf.Trace(
        task=vf.TraceTask(type=type(task).__name__, data=task.data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        nodes=[
            MessageNode(
                message=message, sampled=isinstance(message, vf.AssistantMessage), parent=at - 1 if at else None
            )
            for at, message in enumerate(messages)
        ],
        state=CallwrightState(masked=masked),
    )


def test_the_three_lines_are_a_taskset_of_verifiers() -> None:
    module = types.ModuleType("callwright_test_tasks")
    exec(
        "from callwright_plugins import verifiers_bridge\n"
        "from verifiers.v1.harnesses.null import NullHarness\n"
        f"Tasks = verifiers_bridge.taskset({NAME!r}, 'tier', limit=4)\n"
        "__all__ = ['Tasks', 'NullHarness']",
        module.__dict__,
    )
    sys.modules[module.__name__] = module
    try:
        kind = loaders.taskset_class("callwright-test-tasks")
        assert issubclass(kind, vf.Taskset)
        assert loaders.default_harness_id("callwright-test-tasks") == "callwright-test-tasks"
        config = concrete_type(kind, vf.TasksetConfig)(id="callwright-test-tasks", limit=2, recipe="simple")
        environment = loaders.load_environment(vf.SingleAgentEnvConfig(taskset=config))
        tasks = list(environment.taskset)
        assert [(task.data.idx, task.data.task_id, task.data.recipe) for task in tasks] == [
            (0, "train-0", "simple"),
            (1, "train-1", "simple"),
        ]
    finally:
        del sys.modules[module.__name__]


def test_tasks_have_the_prompts_of_the_walk_and_survive_the_wire() -> None:
    for task, own in zip(made(limit=5), CORPUS["train"][:5], strict=True):
        system, user = build_messages(own, cw.parser("json"))
        assert (task.data.system_prompt, task.data.prompt) == (system.text, user.text)
        again = type(task.data).model_validate_json(task.data.model_dump_json())
        assert again == task.data
        assert again.task == own
        assert task.key == f"{NAME}/{own.id}"
    keys = [task.key for task in made(split="evaluation", limit=30)]
    assert len(set(keys)) == 30
    assert [task.data.prompt for task in made(limit=9).shuffle(seed=1).take(3)]
    assert len(list(made(corpus_options={"train_size": 7}))) == 7
    bare = next(iter(made(ir=None)))
    assert (bare.data.system_prompt, bare.data.prompt) == (native_instructions(), CORPUS["train"][0].query)


def test_the_example_of_the_page_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "verifiers.md").read_text(encoding="utf-8")
    code, printed = re.findall(r"```python\n(import asyncio.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)[0]
    exec(compile(code, "verifiers.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == printed


def test_names_that_nobody_registered_are_said_at_once() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'tier'"):
        verifiers_bridge.taskset(NAME, "tire")
    with pytest.raises(UnknownName, match="corpus named 'depthbench'"):
        verifiers_bridge.taskset("depthbench")
    with pytest.raises(UnknownName, match="split of"):
        list(made(split="test"))


@pytest.mark.parametrize("name", ["tier", "toolrl", "prove"])
def test_verifiers_scores_with_the_recipe(name: str) -> None:
    for task, own in zip(made(recipe=name, limit=6), CORPUS["train"][:6], strict=True):
        assert own.program is not None
        for text in (cw.parser("json").render(own.program), "no idea"):
            trace = trace_of(task, vf.UserMessage(content=own.query), vf.AssistantMessage(content=text))
            asyncio.run(task.score(trace))
            expected = cw.reward(name).score(own, text)
            assert trace.reward == expected.total
            assert dict(trace.metrics) == {f"{name}/{term}": one.score.value for term, one in expected.scores.items()}
            assert trace.info["callwright"] == expected.explain()
        assert asyncio.run(task.validate(None)) is True


def test_a_conversation_with_tools_is_scored_as_an_episode() -> None:
    (task,) = [task for task in made(ir=None, limit=40) if task.data.task_id == ONE_CALL.id]
    assert isinstance(task, CallwrightToolTask)
    assert ONE_CALL.program is not None
    call = ONE_CALL.program.calls[0]
    asked = vf.ToolCall(id="1", name=call.tool, arguments=json.dumps(dict(call.arguments)))
    trace = trace_of(
        task,
        vf.AssistantMessage(tool_calls=[asked]),
        vf.ToolMessage(tool_call_id="1", content="{}"),
        vf.AssistantMessage(content="There."),
    )
    asyncio.run(task.score(trace))
    assert trace.reward == 1.0


def test_a_lost_rollout_is_an_error_and_never_a_number() -> None:
    task = next(iter(made(ir=None)))
    trace = trace_of(task, vf.AssistantMessage(content="x"), masked="the server is down")
    with pytest.raises(vf.TaskError, match="the server is down"):
        asyncio.run(task.score(trace))
    assert trace.rewards == {"callwright": None}


class Channel:
    """What verifiers offers a tool server beside the rollout: its task and its state."""

    def __init__(self, task: Any) -> None:
        data, self.state = task.data, "{}"
        described = {"cls": f"{type(data).__module__}:{type(data).__qualname__}", "task": data.model_dump_json()}
        channel = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self, body: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def do_GET(self) -> None:
                self._answer(json.dumps(described) if self.path.startswith("/task") else channel.state)

            def do_PUT(self) -> None:
                channel.state = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._answer("{}")

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def test_verifiers_starts_the_tool_server_and_a_client_calls_it() -> None:
    """The server is a process of its own, as in a rollout; the client speaks MCP over HTTP."""
    from mcp import Client

    (task,) = [task for task in made(ir=None, limit=40) if task.data.task_id == ONE_CALL.id]
    channel = Channel(task)
    assert ONE_CALL.program is not None
    call = ONE_CALL.program.calls[0]

    async def inner() -> Any:
        (toolset,) = type(task).toolsets(task.config)
        assert isinstance(toolset, EnvironmentToolset)
        async with serve(toolset, state_secret="s", state_base=channel.url) as url, Client(url) as client:
            listed = (await client.list_tools()).tools
            answers = [
                await client.call_tool(call.tool, dict(call.arguments)),
                await client.call_tool(call.tool, {"nonsense": 1}),
            ]
        return listed, [answer.content[0].text for answer in answers]

    try:
        listed, answers = asyncio.run(inner())
    finally:
        channel.server.shutdown()
        channel.server.server_close()
    shown = {tool.name: (tool.description, tool.input_schema) for tool in listed}
    specs = {name: spec for name, spec in ONE_CALL.tools.items() if not spec.hidden}
    assert shown.keys() == specs.keys(), "a task is offered its own tools, under their own names"
    for name, spec in specs.items():
        assert shown[name] == (spec.description, spec.to_openai()["function"]["parameters"])
    outcome = ONE_CALL.environment.open(ONE_CALL.scenario, 0).call(call.tool, dict(call.arguments))
    assert json.loads(answers[0]) == {"id": 0, "name": call.tool, "result": outcome.value}
    assert json.loads(answers[1])["error"]["code"]
    assert json.loads(answers[1])["id"] == 1


def test_the_tool_server_opens_the_world_of_the_task(vault: Any) -> None:
    for task in [*vault["train"], *vault["evaluation"]]:
        toolset = EnvironmentToolset(vf.ToolsetConfig())
        asyncio.run(toolset.setup_task(types.SimpleNamespace(task=task)))
        assert json.loads(toolset.call("turn", {"by": 3}))["result"] == task.answer.values[0]
        assert vault.opened.pop() == task.seed


def test_a_session_that_fails_is_told_to_the_scorer() -> None:
    class Down:
        def call(self, tool: str, arguments: dict[str, Any]) -> Any:
            raise cw.InfrastructureFailure("the server is down")

        def digest(self) -> str:
            return ""

    toolset = EnvironmentToolset(vf.ToolsetConfig())
    toolset._task, toolset._session = ONE_CALL, RolloutSession(ONE_CALL, Down())  # type: ignore[arg-type]
    text = toolset.call(next(iter(ONE_CALL.tools)), {})
    assert "the server is down" in json.loads(text)["error"]["message"]
    assert "the server is down" in toolset.state.masked
    with pytest.raises(cw.UsageError, match="start this server for each rollout"):
        EnvironmentToolset(vf.ToolsetConfig()).register(None)
