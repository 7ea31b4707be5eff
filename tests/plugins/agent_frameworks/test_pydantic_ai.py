"""Pydantic AI's agent over a log, and its tools as ours."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import bank_errand
import pytest

import callwright as cw
from callwright.episodes.logs.kinds import framework_of

pytest.importorskip("pydantic_ai", reason="needs Pydantic AI: pip install 'callwright[pydantic-ai]'")

from pydantic_ai import Agent, ModelResponse, RunContext, TextPart, Tool, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel


def said(messages: list[Any]) -> int:
    return sum(isinstance(message, ModelResponse) for message in messages)


def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
    turns = bank_errand.turns()
    turn = said(messages)
    if turn == len(turns):
        return ModelResponse([TextPart(bank_errand.ANSWER)])
    return ModelResponse([ToolCallPart(call.name, call.arguments, call.id) for call in turns[turn]])


async def stream(messages: list[Any], info: AgentInfo) -> Any:
    turns = bank_errand.turns()
    turn = said(messages)
    if turn == len(turns):
        yield bank_errand.ANSWER
        return
    for place, call in enumerate(turns[turn]):
        half = len(call.arguments) // 2
        yield {place: DeltaToolCall(call.name, call.arguments[:half], tool_call_id=call.id)}
        yield {place: DeltaToolCall(json_args=call.arguments[half:])}


async def streamed(agent: Agent[Any, Any], query: str) -> Any:
    async with agent.run_stream(query) as run:
        await run.get_output()
        return run


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_agent_does_the_errand_as_an_own_loop_does(streams: bool) -> None:
    with cw.Log(bank_errand.errand()) as log:
        agent = Agent(FunctionModel(answer, stream_function=stream), tools=log.tools("pydantic-ai"))
        result = asyncio.run(streamed(agent, log.task.query) if streams else agent.run(log.task.query))
    bank_errand.same(log.episode(result), bank_errand.expected())
    assert log.findings(result) == ()
    told = [message.text for message in framework_of("pydantic-ai").messages(result) if message.role == "tool"]
    assert json.loads(told[3])["error"]["code"] == "NOT_FOUND"  # in the same words as a rollout is told it


def test_parallel_calls_run_in_the_order_in_which_they_were_written() -> None:
    def many(messages: list[Any], info: AgentInfo) -> ModelResponse:
        if said(messages):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("find_customer", {"query": str(n)}, f"c{n}") for n in range(8)])

    for _ in range(8):
        with cw.Log(cw.environment("banking"), scenario="typical") as log:
            asyncio.run(Agent(FunctionModel(many), tools=log.tools("pydantic-ai")).run("find"))
        assert [one.arguments["query"] for one in log.calls] == [str(n) for n in range(8)]


def test_its_tools_are_ours() -> None:
    def add(a: int, b: int = 1) -> int:
        """The sum."""
        return a + b

    async def shout(text: str) -> str:
        return text.upper()

    def secret(context: RunContext[None]) -> str:
        return "no"

    session = cw.environment("theirs", tools=framework_of("pydantic-ai").function_tools([add, Tool(shout)])).open()
    assert session.call("add", {"a": 2}).value == 3
    assert session.call("add", {"a": "two"}).kind == "schema_error"
    assert session.call("shout", {"text": "hey"}).value == "HEY"
    with pytest.raises(cw.UsageError, match="takes a run's context"):
        framework_of("pydantic-ai").function_tools([secret])
