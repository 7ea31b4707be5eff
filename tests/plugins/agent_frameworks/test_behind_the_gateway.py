"""Unchanged agents of every framework with their own clients: the gateway records the same ids and masks for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import bank_errand
import pytest
from scripted_engine import ScriptedEngine

import callwright as cw
from callwright.episodes import Gateway, GatewaySession, GatewayTrajectory

pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[gateway]'")


def script() -> list[str]:
    """What the model writes: a thought and the errand's calls, each turn."""
    written = [
        "<think>\nNext.\n</think>\n\n"
        + "\n".join(
            f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>' for call in calls
        )
        for calls in bank_errand.turns()
    ]
    return [*written, f"<think>\nDone.\n</think>\n\n{bank_errand.ANSWER}"]


async def langchain(session: GatewaySession, stream: bool) -> Any:
    pytest.importorskip("langchain_openai", reason="needs its client: pip install langchain-openai")
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=session.url, api_key="k", max_retries=0) as client:
        model = ChatOpenAI(
            base_url=session.url,
            api_key="k",
            model="m",
            streaming=stream,
            use_responses_api=False,
            http_async_client=client._client,  # one that is closed in the end: it keeps its own for ever
        )
        agent = create_agent(model, session.log.tools("langchain"))
        return await agent.ainvoke({"messages": [("user", session.task.query)]})


async def pydantic_ai(session: GatewaySession, stream: bool) -> Any:
    pytest.importorskip("pydantic_ai", reason="needs Pydantic AI: pip install 'callwright[pydantic-ai]'")
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with AsyncOpenAI(base_url=session.url, api_key="k", max_retries=0) as client:
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, tools=session.log.tools("pydantic-ai"))
        if not stream:
            return await agent.run(session.task.query)
        async with agent.run_stream(session.task.query) as run:
            await run.get_output()
            return run


async def openai_agents(session: GatewaySession, stream: bool, *, responses: bool = False) -> Any:
    pytest.importorskip("agents", reason="needs OpenAI's Agents SDK: pip install 'callwright[openai-agents]'")
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=session.url, api_key="k", max_retries=0) as client:
        agent = Agent(
            "teller",
            tools=session.log.tools("openai-agents"),
            model=(OpenAIResponsesModel if responses else OpenAIChatCompletionsModel)(model="m", openai_client=client),
        )
        if not stream:
            return await Runner.run(agent, session.task.query)
        run = Runner.run_streamed(agent, session.task.query)
        async for _ in run.stream_events():
            pass
        return run


async def openai_responses(session: GatewaySession, stream: bool) -> Any:
    """The SDK's own default: the Responses API."""
    return await openai_agents(session, stream, responses=True)


Agent = Callable[[GatewaySession, bool], Awaitable[Any]]


def run(agent: Agent, stream: bool) -> GatewayTrajectory:
    async def work() -> GatewayTrajectory:
        async with Gateway(ScriptedEngine(script())).serve() as gateway:
            session = gateway.open(bank_errand.errand(), name="same")
            await agent(session, stream)
            return await session.finish()

    return asyncio.run(asyncio.wait_for(work(), 60))


async def own_loop(session: GatewaySession, stream: bool) -> Any:
    from openai import AsyncOpenAI
    from scripted_engine import agent

    async with AsyncOpenAI(base_url=session.url, api_key="k", max_retries=0) as client:
        return await agent(session, client, stream=stream)


@cache
def expected() -> GatewayTrajectory:
    return run(own_loop, False)


def sampled(made: GatewayTrajectory) -> tuple[tuple[int, ...], tuple[int, ...]]:
    (branch,) = made.branches
    return branch.response_ids, branch.mask


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", [langchain, pydantic_ai, openai_agents, openai_responses])
def test_every_client_gives_the_same_ids_and_masks(agent: Agent, stream: bool) -> None:
    made = run(agent, stream)
    assert sampled(made) == sampled(expected())
    assert made.without_loss == 0
    bank_errand.same(made.attempt, expected().attempt)
    assert [record.outcome.kind for turn in made.attempt.turns if turn.trace for record in turn.trace.records] == [
        "ok",
        "ok",
        "ok",
        "execution_error",
        "ok",
    ]


def test_what_the_frameworks_did_to_the_conversation_is_told() -> None:
    """None of them sends back what it was given; the ids are of what was sampled all the same."""
    assert any("drops the model's thoughts" in one for one in run(openai_agents, False).findings)


def test_the_reward_is_that_of_the_same_errand_without_a_gateway() -> None:
    direct = bank_errand.expected()
    for name in ("tier", "simple"):
        reward = cw.reward(name)
        assert reward.score_attempt(expected().attempt).total == reward.score_attempt(direct).total


@pytest.mark.parametrize("client", ["agents-sdk", "mcp"])
def test_tools_over_mcp_are_those_of_the_same_session(client: str) -> None:
    """One name for the model and the tools: the agent has both by their URLs, and nothing of ours in its process."""
    pytest.importorskip("mcp", reason="needs mcp: pip install 'callwright[mcp]'")

    async def sdk(session: GatewaySession) -> None:
        from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
        from agents.mcp import MCPServerStreamableHttp
        from openai import AsyncOpenAI

        set_tracing_disabled(True)
        async with (
            AsyncOpenAI(base_url=session.url, api_key="k", max_retries=0) as model,
            MCPServerStreamableHttp({"url": session.mcp_url}) as tools,
        ):
            agent = Agent("teller", mcp_servers=[tools], model=OpenAIResponsesModel(model="m", openai_client=model))
            await Runner.run(agent, session.task.query)

    async def plain(session: GatewaySession) -> None:
        from mcp import Client

        async with Client(session.mcp_url) as tools:
            listed = await tools.list_tools()
            assert [tool.name for tool in listed.tools] == list(session.task.offered)
            made = await tools.call_tool("deposit_cash", {})
            assert made.is_error
            assert session.log.calls[0].outcome.kind == "schema_error"

    async def work() -> GatewayTrajectory:
        async with Gateway(ScriptedEngine(script())).serve() as gateway:
            session = gateway.open(bank_errand.errand(), name="same")
            await (sdk if client == "agents-sdk" else plain)(session)
            return await session.finish()

    made = asyncio.run(asyncio.wait_for(work(), 60))
    if client == "agents-sdk":
        bank_errand.same(made.attempt, expected().attempt)
        assert made.without_loss == 0
