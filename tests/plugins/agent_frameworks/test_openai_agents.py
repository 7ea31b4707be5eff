"""An agent of OpenAI's SDK over a log, and its tools as ours."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import bank_errand
import pytest

import callwright as cw
from callwright.episodes.logs.kinds import framework_of

pytest.importorskip("agents", reason="needs OpenAI's Agents SDK: pip install 'callwright[openai-agents]'")

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


@pytest.fixture(autouse=True)
def no_traces() -> None:
    set_tracing_disabled(True)


class Scripted(Model):
    """Says what it was given, one turn after the other."""

    def __init__(self, turns: Any) -> None:
        self.turns = list(turns)

    def _next(self) -> list[Any]:
        calls = self.turns.pop(0)
        if isinstance(calls, str):
            said = ResponseOutputText(annotations=[], text=calls, type="output_text")
            return [ResponseOutputMessage(id="m", content=[said], role="assistant", status="completed", type="message")]
        return [
            ResponseFunctionToolCall(name=call.name, arguments=call.arguments, call_id=call.id, type="function_call")
            for call in calls
        ]

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(self._next(), Usage(), None)

    async def stream_response(self, *_: Any, **__: Any) -> Any:
        response = Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=self._next(),
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


async def streamed(agent: Agent[Any], query: str) -> Any:
    run = Runner.run_streamed(agent, query)
    async for _ in run.stream_events():
        pass
    return run


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_agent_does_the_errand_as_an_own_loop_does(streams: bool) -> None:
    with cw.Log(bank_errand.errand()) as log:
        model = Scripted([*bank_errand.turns(), bank_errand.ANSWER])
        agent = Agent("teller", tools=log.tools("openai-agents"), model=model)
        run = streamed(agent, log.task.query) if streams else Runner.run(agent, log.task.query)
        result = asyncio.run(run)
    bank_errand.same(log.episode(result), bank_errand.expected())
    assert log.findings(result) == ()
    told = [message.text for message in framework_of("openai-agents").messages(result) if message.role == "tool"]
    assert json.loads(told[3])["error"]["code"] == "NOT_FOUND"


def test_parallel_calls_run_in_the_order_in_which_they_were_written() -> None:
    calls = [cw.language.ToolCall(f"c{n}", "find_customer", json.dumps({"query": str(n)})) for n in range(8)]
    for _ in range(8):
        with cw.Log(cw.environment("banking"), scenario="typical") as log:
            agent = Agent("teller", tools=log.tools("openai-agents"), model=Scripted([calls, "done"]))
            asyncio.run(Runner.run(agent, "find"))
        assert [one.arguments["query"] for one in log.calls] == [str(n) for n in range(8)]


def test_arguments_that_are_no_json_never_reach_the_world() -> None:
    broken = [cw.language.ToolCall("c", "find_customer", '{"query": "a"')]
    with cw.Log(bank_errand.errand()) as log:
        agent = Agent("teller", tools=log.tools("openai-agents"), model=Scripted([broken, "sorry"]))
        result = asyncio.run(Runner.run(agent, "find"))
    attempt = log.episode(result)
    assert log.calls == ()
    assert attempt.failure is not None
    assert attempt.failure.code == "invalid_json"


def test_its_tools_are_ours() -> None:
    @function_tool
    def add(a: int, b: int) -> int:
        """The sum."""
        return a + b

    @function_tool(failure_error_function=None)
    def fail(why: str) -> str:
        """Fail."""
        raise ValueError(why)

    session = cw.environment("theirs", tools=framework_of("openai-agents").function_tools([add, fail])).open()
    assert session.call("add", {"a": 2, "b": 3}).value == 5
    assert session.call("add", {"a": "two", "b": 3}).kind == "schema_error"
    assert session.call("fail", {"why": "because"}).message.startswith("because")
