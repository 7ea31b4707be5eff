"""Anthropic's messages in front of the gateway, by Anthropic's own client: the same ids, masks and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_engine import SCRIPT, TASK, TOOLS, ScriptedEngine, agent, block

import callwright as cw
from callwright.episodes import Gateway
from callwright.episodes.gateway.session import GatewaySession, GatewayTrajectory
from callwright.errors import DataError
from callwright.language.messages import ToolCall
from callwright.language.others.anthropic import messages_of_anthropic

anthropic = pytest.importorskip("anthropic", reason="needs Anthropic's client: pip install anthropic")
openai = pytest.importorskip("openai", reason="needs OpenAI's client: pip install 'callwright[openai]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[gateway]'")

THEIRS = [
    {
        "name": tool["function"]["name"],
        "description": tool["function"]["description"],
        "input_schema": tool["function"]["parameters"],
    }
    for tool in TOOLS
]
Use = Callable[[GatewaySession, Any], Awaitable[Any]]


def run(engine: Any, use: Use) -> GatewayTrajectory:
    async def work() -> GatewayTrajectory:
        async with Gateway(engine).serve() as gateway:
            session = gateway.open(TASK, seed=3)
            options: dict[str, Any] = {"api_key": "sk-secret-of-the-agent", "max_retries": 0}
            async with anthropic.AsyncAnthropic(base_url=session.anthropic_url, **options) as client:
                await use(session, client)
                return await session.finish()

    return asyncio.run(asyncio.wait_for(work(), 30))


async def ask(client: Any, messages: Any, *, stream: bool = False, **options: Any) -> Any:
    options = {"model": "m", "max_tokens": 1000, "messages": messages, "tools": THEIRS, **options}
    if not stream:
        return await client.messages.create(**options)
    async with client.messages.stream(**options) as pieces:
        return await pieces.get_final_message()


async def their_agent(session: Any, client: Any, *, stream: bool = False, thoughts: bool = True) -> str:
    """A loop as their documentation writes it; without ``thoughts`` it leaves them out of what it says again."""
    messages: list[Any] = [{"role": "user", "content": session.task.query}]
    while True:
        said = await ask(client, messages, stream=stream)
        blocks = [one.model_dump(exclude_none=True) for one in said.content]
        kept = [one for one in blocks if thoughts or one["type"] != "thinking"]
        messages.append({"role": "assistant", "content": kept})
        results = []
        for block_ in said.content:
            if block_.type == "tool_use":
                outcome = await session.log.acall(block_.name, block_.input, call_id=block_.id)
                told = {"type": "tool_result", "tool_use_id": block_.id, "content": cw.environments.tell(outcome)}
                results.append({**told, "is_error": outcome.failed})
        if not results:
            assert said.stop_reason == "end_turn"
            return "".join(one.text for one in said.content if one.type == "text")
        assert said.stop_reason == "tool_use"
        messages.append({"role": "user", "content": results})


def through_chat_completions() -> GatewayTrajectory:
    async def work() -> GatewayTrajectory:
        async with Gateway(ScriptedEngine(SCRIPT)).serve() as gateway:
            session = gateway.open(TASK, seed=3)
            async with openai.AsyncOpenAI(base_url=session.url, api_key="k", max_retries=0) as client:
                await agent(session, client)
                return await session.finish()

    return asyncio.run(asyncio.wait_for(work(), 30))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_ids_are_those_of_chat_completions(stream: bool) -> None:
    made = run(ScriptedEngine(SCRIPT), lambda session, client: their_agent(session, client, stream=stream))
    plain = through_chat_completions()
    assert made.branches == plain.branches
    assert made.without_loss == 0
    assert [turn.completion.text for turn in made.attempt.turns] == SCRIPT
    kinds = [[record.outcome.kind for record in turn.trace.records] for turn in made.attempt.turns if turn.trace]
    assert kinds == [["ok", "ok"], ["execution_error"], ["ok"], []]


def test_thoughts_that_a_client_drops_change_no_id() -> None:
    made = run(ScriptedEngine(SCRIPT), lambda session, client: their_agent(session, client, thoughts=False))
    assert made.branches == through_chat_completions().branches
    assert any("drops the model's thoughts" in one for one in made.findings)


def test_what_is_streamed_is_the_sampled_text_of_arguments() -> None:
    seen: list[str] = []

    async def use(session: GatewaySession, client: Any) -> None:
        options: dict[str, Any] = {"model": "m", "max_tokens": 9, "tools": THEIRS, "stream": True}
        said = [{"role": "user", "content": "hi"}]
        async for event in await client.messages.create(messages=said, **{**options, "max_tokens": 1000}):
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                seen.append(event.delta.partial_json)

    run(ScriptedEngine(SCRIPT), use)
    assert seen == ['{"text":  "a"}', '{"text":  "b"}']


def test_an_answer_that_was_cut_says_so() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, [{"role": "user", "content": "hi"}], max_tokens=5)
        assert said.stop_reason == "max_tokens"
        assert said.usage.output_tokens == 5
        assert said.usage.input_tokens > 5

    run(ScriptedEngine(SCRIPT), use)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "is the server's own, which this one has"),
        ({"tool_choice": {"type": "any"}}, "the option 'tool_choice' = {'type': 'any'} changes what is sampled"),
        ({"top_k": 5}, "'top_k' = 5 changes what is sampled"),
        ({"mcp_servers": []}, "the option 'mcp_servers' is not known"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}, "a prefilled answer"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "the type 'image'"),
    ],
)
def test_what_changes_the_sampling_or_is_not_there_is_refused(options: Any, said: str) -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        given = {"messages": [{"role": "user", "content": "hi"}], **options}
        extra = {name: given.pop(name) for name in ("mcp_servers", "top_k") if name in given}
        with pytest.raises(anthropic.BadRequestError) as refused:
            await ask(client, given.pop("messages"), extra_body=extra, **given)
        assert refused.value.body["error"]["type"] == "invalid_request_error"
        assert said in str(refused.value)

    run(ScriptedEngine(SCRIPT), use)


def test_a_finished_session_is_gone() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        await session.finish()
        with pytest.raises(anthropic.APIStatusError) as refused:
            await ask(client, [{"role": "user", "content": "hi"}])
        assert refused.value.status_code == 410

    run(ScriptedEngine(SCRIPT), use)


def test_blocks_as_messages() -> None:
    """System blocks, results beside words, thoughts and text around calls."""
    told = [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "enter", "input": {"text": "é"}},
                {"type": "tool_use", "id": "c2", "name": "enter", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "2"}]},
                {"type": "tool_result", "tool_use_id": "c1", "content": "1", "is_error": True},
                {"type": "text", "text": "and?"},
            ],
        },
    ]
    system = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]
    assert list(messages_of_anthropic(told, system)) == [
        cw.Message.system("s"),
        cw.Message.user("a"),
        cw.Message.assistant(
            "I look.",
            [ToolCall("c1", "enter", '{"text": "é"}'), ToolCall("c2", "enter", "{}")],
            reasoning="hm",
        ),
        cw.Message.tool("2", "c2"),
        cw.Message.tool("1", "c1"),
        cw.Message.user("and?"),
    ]
    for bad, said in (
        ([3], "message 0 is a number, expected an object"),
        ([{"role": "tool", "content": "x"}], "has the role 'tool'"),
        ([{"role": "user", "content": 3}], "no text and no list of blocks"),
        ([{"role": "assistant", "content": [{"type": "server_tool_use"}]}], "the server's own"),
    ):
        with pytest.raises(DataError, match=said):
            list(messages_of_anthropic(bad))


def test_arguments_that_are_no_object_reach_the_client_in_words() -> None:
    broken = block("a").replace('{"text":  "a"}', '["a"]')

    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, [{"role": "user", "content": "hi"}])
        assert "".join(str(one.model_dump()) for one in said.content).count('["a"]') == 1

    run(ScriptedEngine([broken]), use)
