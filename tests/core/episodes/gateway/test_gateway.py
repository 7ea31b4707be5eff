"""The gateway: what an agent was given is recorded id for id, whatever its client does with the conversation."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_engine import (
    SCRIPT,
    TASK,
    TEMPLATE,
    TOOLS,
    ByteTokenizer,
    ScriptedEngine,
    Till,
    agent,
    ask,
    block,
    codec,
    enter,
)

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.environments.functions import FunctionSession
from callwright.environments.goals import Comparison
from callwright.episodes import ChatCodec, EngineOutput, Gateway, TokenEpisode
from callwright.episodes.gateway.anthropic_protocol import read_messages_request
from callwright.episodes.gateway.chat_request import Refusal, read_request
from callwright.episodes.gateway.engines import BatchedEngine
from callwright.episodes.gateway.responses_protocol import read_responses_request
from callwright.episodes.gateway.session import GatewaySession, GatewayTrajectory
from callwright.walk.components.goal_reached import GoalReached
from callwright.walk.limits import TurnLimits

openai = pytest.importorskip("openai", reason="needs OpenAI's client: pip install 'callwright[openai]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[gateway]'")

Use = Callable[[GatewaySession, Any], Awaitable[Any]]


def client_of(url: str, **options: Any) -> Any:
    return openai.AsyncOpenAI(base_url=url, api_key="sk-secret-of-the-agent", max_retries=0, **options)


def run(engine: Any, use: Use, **options: Any) -> GatewayTrajectory:
    """What a session came to in which ``use`` was the agent."""

    async def work() -> GatewayTrajectory:
        async with Gateway(engine, **options).serve() as gateway:
            session = gateway.open(TASK, seed=3)
            async with client_of(session.url) as client:
                await use(session, client)
                return await session.finish()

    return asyncio.run(asyncio.wait_for(work(), 30))


def directly(script: list[str] = SCRIPT) -> TokenEpisode:
    """The same answers in an episode that is driven here, with the prompt that an agent's messages make."""
    form = cw.parser("hermes")
    conditions = cw.Conditions(limits=TurnLimits(assistant_turns=10))
    episode = TokenEpisode(TASK, form, codec(), [cw.Message.user(TASK.query)], conditions)
    for text in script:
        ids = (*codec().tokenizer.encode(text), 257)
        episode.accept(EngineOutput(ids, (-0.5,) * len(ids)))
    return episode


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_ids_are_those_that_were_sampled(stream: bool) -> None:
    """Completions, masks and log-probabilities equal those of the same episode driven directly."""
    made = run(ScriptedEngine(SCRIPT), lambda session, client: agent(session, client, stream=stream))
    (branch,) = made.branches
    there = directly()
    assert sum(branch.mask) == sum(there.mask) == made.sampled
    assert branch.prompt_ids == there.prompt_ids
    sampled = [one for one, mask in zip(branch.response_ids, branch.mask, strict=True) if mask]
    assert sampled == [one for one, mask in zip(there.response_ids, there.mask, strict=True) if mask]
    assert len(branch.logprobs) == len(branch.response_ids)
    assert made.without_loss == 0
    assert [turn.completion.text for turn in made.attempt.turns] == SCRIPT
    kinds = [[record.outcome.kind for record in turn.trace.records] for turn in made.attempt.turns if turn.trace]
    assert kinds == [["ok", "ok"], ["execution_error"], ["ok"], []]
    assert cw.reward("tier").score_attempt(made.attempt).total is not None


def test_the_sampled_text_of_arguments_reaches_the_client() -> None:
    seen: list[str] = []

    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, [{"role": "user", "content": "hi"}])
        seen.extend(call["function"]["arguments"] for call in said["tool_calls"])
        assert said["reasoning_content"] == "Both."

    run(ScriptedEngine(SCRIPT), use)
    assert seen == ['{"text":  "a"}', '{"text":  "b"}']


def test_clients_that_rewrite_their_echoes_change_nothing() -> None:
    """One drops thoughts, one writes arguments compactly, one puts broken text in their place: the ids are the same."""

    def compact(message: Any) -> Any:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), separators=(",", ":"))
        return message

    def replaced(message: Any) -> Any:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = '{"INVALID_JSON": true}'
        return message

    def without_thought(message: Any) -> Any:
        return {key: value for key, value in message.items() if key != "reasoning_content"}

    plain = run(ScriptedEngine(SCRIPT), agent)
    for drop, finding in (
        (compact, "rewrites the arguments"),
        (without_thought, "drops the model's thoughts"),
        (replaced, "changed the arguments of call_"),
    ):

        async def use(session: GatewaySession, client: Any, drop: Any = drop) -> None:
            await agent(session, client, drop=lambda message: drop(json.loads(json.dumps(message))))

        made = run(ScriptedEngine(SCRIPT), use)
        assert made.branches == plain.branches
        assert any(finding in one for one in made.findings), made.findings


# Traps ----------------------------------------------------------------------------------------------------------------

HI = [{"role": "user", "content": "hi"}]


def test_a_request_that_is_repeated_gets_the_same_answer_once() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        first, second = await asyncio.gather(ask(client, HI), ask(client, HI))
        third = await ask(client, HI)
        assert first == second == third

    engine = ScriptedEngine(SCRIPT, wait=0.05)
    # Nothing new is asked for, so that no limit is in the way.
    made = run(engine, use, conditions=cw.Conditions(limits=TurnLimits(assistant_turns=1)))
    assert len(engine.asked) == 1
    assert made.sampled == len(SCRIPT[0]) + 1
    assert any("repeats an earlier one" in one for one in made.findings)


def test_the_last_answer_of_a_session_may_be_asked_for_again_and_no_other_is_given() -> None:
    """As clients do whose connection broke; and what is asked at the same time is counted, too."""
    codes: list[str] = []

    async def use(session: GatewaySession, client: Any) -> None:
        async def ask(query: str) -> str | None:
            try:
                answer = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": query}], tools=TOOLS
                )
            except openai.BadRequestError as error:
                codes.append(str(error.code))
                return None
            return str(answer.id)

        first, other = await asyncio.gather(ask(TASK.query), ask("Something else?"))
        assert sum(one is not None for one in (first, other)) == 1
        assert [await ask(TASK.query), await ask("Something else?")] == [first, other]

    conditions = cw.Conditions(limits=TurnLimits(assistant_turns=1))
    made = run(ScriptedEngine(SCRIPT), use, conditions=conditions)
    assert codes == ["turn_limit"] * 2
    assert len(made.attempt.turns) == 1


def test_an_answer_that_was_read_is_sampled_anew_if_it_is_asked_for_again() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, HI)
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in said["tool_calls"]]
        await ask(client, [*HI, said, *results])
        await ask(client, HI)

    made = run(ScriptedEngine(SCRIPT), use)
    assert [branch.turns for branch in made.branches] == [(0, 1), (2,)]


def test_results_may_come_in_any_order_and_in_two_requests() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, HI)
        one, two = ({"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in said["tool_calls"])
        await ask(client, [*HI, said, two])
        await ask(client, [*HI, said, two, one])

    made = run(ScriptedEngine(SCRIPT), use)
    assert made.without_loss == 0
    assert [branch.parent for branch in made.branches] == [None, 0]


def test_compaction_is_a_branch_of_its_own() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, HI)
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in said["tool_calls"]]
        await ask(client, [*HI, said, *results])
        await ask(client, [{"role": "user", "content": "Earlier: a and b were entered. Go on."}])

    made = run(ScriptedEngine(SCRIPT), use)
    assert [branch.turns for branch in made.branches] == [(0, 1), (2,)]
    assert any("the history was rewritten" in one for one in made.findings)
    assert made.without_loss == 0


def test_a_clock_in_the_system_prompt_is_found() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        messages: list[Any] = [{"role": "system", "content": "It is 10:00:01 now."}, *HI]
        said = await ask(client, messages)
        messages[0] = {"role": "system", "content": "It is 10:00:07 now."}
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in said["tool_calls"]]
        await ask(client, [*messages, said, *results])

    made = run(ScriptedEngine(SCRIPT), use)
    assert len(made.branches) == 2
    (finding,) = [one for one in made.findings if "the system prompt changes" in one]
    assert "10:00:01" in finding
    assert "10:00:07" in finding


def test_another_list_of_tools_is_a_branch_and_a_finding() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, HI)
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in said["tool_calls"]]
        other = [{"type": "function", "function": {**TOOLS[0]["function"], "name": "enter_more"}}]
        await ask(client, [*HI, said, *results], tools=[*TOOLS, *other])

    made = run(ScriptedEngine(SCRIPT), use)
    assert [branch.parent for branch in made.branches] == [None, None]
    assert any("the list of tools is another one" in one for one in made.findings)


def test_agents_have_roles_by_their_url() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        async with client_of(session.url_for("researcher")) as other:
            await asyncio.gather(ask(client, HI), ask(other, HI))

    made = run(ScriptedEngine(SCRIPT), use)
    assert sorted(branch.role for branch in made.branches) == ["", "researcher"]


def test_a_client_that_goes_away_in_the_middle_has_not_read_the_answer() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        host, port = session.url.removeprefix("http://").split("/")[0].split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps({"model": "m", "messages": HI, "tools": TOOLS, "stream": True}).encode()
        path = f"/s/{session.name}/v1/chat/completions"
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        await asyncio.sleep(0.3)

    made = run(ScriptedEngine(SCRIPT, wait=0.2), use)
    assert made.sampled == made.without_loss > 0
    assert set(made.branches[0].mask) == {0}
    assert any("never read to its end" in one for one in made.findings)
    assert any("carry no loss" in one for one in made.findings)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("n", 2),
        ("top_p", 0.9),
        ("logit_bias", {"5": 3}),
        ("response_format", {"type": "json_object"}),
        ("tool_choice", "required"),
        ("frequency_penalty", 1.0),
    ],
)
def test_options_that_would_make_log_probabilities_untrue_are_refused(option: str, value: Any) -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        with pytest.raises(openai.BadRequestError, match=f"{option}.*changes what is sampled"):
            await ask(client, HI, **{option: value})

    run(ScriptedEngine(SCRIPT), use)


def test_a_prefilled_answer_is_refused_and_a_temperature_is_the_gateways() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        with pytest.raises(openai.BadRequestError, match="the last message is the assistant's"):
            await ask(client, [*HI, {"role": "assistant", "content": "Sure,"}])
        await ask(client, HI, temperature=0.2)

    made = run(ScriptedEngine(SCRIPT), use)
    assert any("temperature 0.2, and gets 1.0" in one for one in made.findings)


def test_a_stop_string_ends_the_ids_and_the_text_the_client_sees_ends_before_it() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, HI, stop=["STOP"])
        assert said["content"] == "Thought: x"

    made = run(ScriptedEngine(["Thought: x STOP and much more"]), use)
    (branch,) = made.branches
    assert codec().text(branch.response_ids) == "Thought: x STOP"
    assert set(branch.mask) == {1}


def test_a_limit_of_tokens_is_the_clients_too() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        made = await client.chat.completions.create(model="m", messages=HI, tools=TOOLS, max_tokens=5)
        assert made.choices[0].finish_reason == "length"
        assert made.usage.completion_tokens == 5

    made = run(ScriptedEngine(SCRIPT), use)
    assert made.attempt.turns[0].completion.truncated


def test_a_call_that_cannot_be_read_reaches_the_client_as_it_was_written() -> None:
    broken = '<tool_call>\n{"name": "enter", "arguments": {"text": "a"}\n</tool_call>'

    async def use(session: GatewaySession, client: Any) -> None:
        said = await ask(client, HI)
        assert said["content"] == broken
        assert "tool_calls" not in said

    made = run(ScriptedEngine([broken]), use)
    assert made.attempt.failure is not None


def test_a_finished_session_is_gone_and_an_unknown_one_was_never_there() -> None:
    async def work() -> None:
        async with Gateway(ScriptedEngine(SCRIPT)).serve() as gateway:
            session = gateway.open(TASK, name="mine")
            with pytest.raises(cw.UsageError, match="a session 'mine' already"):
                gateway.open(TASK, name="mine")
            with pytest.raises(cw.UsageError, match="cannot stand in a URL"):
                gateway.open(TASK, name="a/b")
            async with client_of(session.url) as client:
                await ask(client, HI)
                assert await session.finish() is await session.finish()
                with pytest.raises(openai.APIStatusError, match="is finished") as gone:
                    await ask(client, HI)
            assert gone.value.status_code == 410
            async with client_of(f"{gateway.url}/s/nobody/v1") as client:
                with pytest.raises(openai.NotFoundError, match="no session named 'nobody'"):
                    await ask(client, HI)

    asyncio.run(work())


def test_a_session_that_nobody_uses_ends_by_itself_and_is_masked() -> None:
    async def work() -> GatewayTrajectory:
        async with Gateway(ScriptedEngine(SCRIPT), idle=0.1).serve() as gateway:
            session = gateway.open(TASK)
            deadline = time.monotonic() + 10
            while session.finished is None and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            assert session.finished is not None
            return session.finished

    assert asyncio.run(work()).attempt.masked == "nobody used the session for 0.1 seconds"


def test_tools_are_called_by_http_and_recorded() -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        found = await client.get(f"{session.tools_url}", cast_to=object)
        assert [one["function"]["name"] for one in found["tools"]] == ["enter"]
        told = await client.post(f"{session.tools_url}/enter", cast_to=object, body={"text": "bad"})
        assert told["is_error"] is True
        assert session.log.calls[0].outcome.code == "BAD"
        for written in (b'{"text": "a"', b"[1]"):
            told = await client.post(f"{session.tools_url}/enter", cast_to=object, content=written)
            assert told["is_error"] is True
            assert "not an object" in told["content"]
        assert len(session.log.calls) == 1

    run(ScriptedEngine(SCRIPT), use)


def test_no_header_is_kept(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    made = run(ScriptedEngine(SCRIPT), agent)
    out, err = capfd.readouterr()
    assert "sk-secret" not in repr(made) + out + err + caplog.text


def test_an_engine_that_fails_is_the_machinerys_fault_and_may_be_asked_again() -> None:
    class Failing(ScriptedEngine):
        async def continue_one(self, episode: Any, *, temperature: float = 1.0) -> EngineOutput:
            if not self.asked:
                self.asked.append("")
                raise cw.InfrastructureFailure("out of memory")
            return await super().continue_one(episode, temperature=temperature)

    async def use(session: GatewaySession, client: Any) -> None:
        with pytest.raises(openai.InternalServerError, match="out of memory"):
            await ask(client, HI)
        assert (await ask(client, HI))["tool_calls"]

    conditions = cw.Conditions(limits=TurnLimits(assistant_turns=1))  # of which what failed is none
    assert run(Failing([*SCRIPT[:1]] * 2), use, conditions=conditions).without_loss == 0


def test_many_sessions_at_once_mix_nothing() -> None:
    """Each answers with its own name, and has its own world."""

    def answer(context: str, number: int) -> str:
        name = context.split("I am ")[1].split(".")[0]
        return block(name) if number == 0 else f"done {name}"

    async def one(gateway: Gateway, number: int) -> tuple[int, GatewayTrajectory]:
        session = gateway.open(TASK, seed=number)
        async with client_of(session.url) as client:
            messages: list[Any] = [{"role": "user", "content": f"I am {number}."}]
            said = await ask(client, messages)
            (call,) = said["tool_calls"]
            outcome = await session.log.acall("enter", json.loads(call["function"]["arguments"]), call_id=call["id"])
            result = {"role": "tool", "tool_call_id": call["id"], "content": cw.environments.tell(outcome)}
            assert (await ask(client, [*messages, said, result]))["content"] == f"done {number}"
        return number, await session.finish()

    async def work() -> list[tuple[int, GatewayTrajectory]]:
        async with Gateway(ScriptedEngine(answer)).serve() as gateway:
            return await asyncio.gather(*(one(gateway, number) for number in range(40)))

    for number, made in asyncio.run(asyncio.wait_for(work(), 60)):
        assert made.findings == ()
        (record,) = [record for turn in made.attempt.turns if turn.trace for record in turn.trace.records]
        assert (record.arguments, record.outcome.value) == ({"text": str(number)}, 1)


def test_tools_are_shown_by_codecs_that_leave_them_to_the_system_message() -> None:
    """A local model's codec renders no tools by itself; a template that shows none gets them listed."""

    async def use(session: GatewaySession, client: Any) -> None:
        await ask(client, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}])

    with_tools = ScriptedEngine(SCRIPT)
    run(with_tools, use)
    plain = ScriptedEngine(SCRIPT)
    plain.codec = ChatCodec(ByteTokenizer())
    listed = "they are listed in the system message"
    assert not any(listed in one for one in run(plain, use).findings)
    assert plain.asked == with_tools.asked
    assert '"name": "enter"' in plain.asked[0]
    tokenizer = ByteTokenizer(TEMPLATE.partition("{% endif %}")[2])
    plain = ScriptedEngine(SCRIPT)
    plain.codec = ChatCodec(tokenizer)
    made = run(plain, use)
    assert f"the model has no template that shows tools: {listed}" in made.findings
    context = plain.asked[0]
    assert context.startswith("<|im_start|>system\n")
    assert '"name": "enter"' in context
    assert context.index('"name": "enter"') < context.index("Be brief.") < context.index("hi<|im_end|>")


# The Responses API ----------------------------------------------------------------------------------------------------


def test_a_conversation_goes_on_from_an_answer_that_is_named() -> None:
    """The client sends results alone; the ids are those of one line."""

    async def use(session: GatewaySession, client: Any) -> None:
        flat = [{"type": "function", **TOOLS[0]["function"]}]
        said = await client.responses.create(model="m", input="hi", tools=flat)
        calls = [item for item in said.output if item.type == "function_call"]
        assert [call.arguments for call in calls] == ['{"text":  "a"}', '{"text":  "b"}']
        assert said.output[0].summary[0].text == "Both."
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": "1"} for call in calls]
        again = await client.responses.create(model="m", input=results, tools=flat, previous_response_id=said.id)
        assert again.output[-1].name == "enter"
        assert again.usage.input_tokens > said.usage.input_tokens

    made = run(ScriptedEngine(SCRIPT), use)
    (branch,) = made.branches
    assert branch.turns == (0, 1)
    assert made.without_loss == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": [{"type": "web_search"}]}, "a tool of the type 'web_search' is the server's own"),
        ({"text": {"format": {"type": "json_object"}}}, "changes what is sampled"),
        ({"previous_response_id": "resp_1"}, "no answer of this session has the id"),
        ({"background": True}, "'background' = True is not served"),
        ({"top_p": 0.5}, "'top_p' = 0.5 changes what is sampled"),
    ],
)
def test_what_the_responses_api_has_and_the_gateway_has_not_is_refused(options: Any, said: str) -> None:
    async def use(session: GatewaySession, client: Any) -> None:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(model="m", input="hi", **options)
        assert said in str(refused.value)

    run(ScriptedEngine(SCRIPT), use)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("tools", "x"),
        ("tools", [1]),
        ("tools", {"a": 1}),
        ("tools", [{}]),
        ("stop", 5),
        ("stop", ["a", 5]),
        ("stream", "yes"),
        ("stream", 1),
        ("logprobs", 5),
        ("stream_options", "all"),
        ("stream_options", {"include_usage": "yes"}),
        ("temperature", "hot"),
        ("temperature", True),
        ("temperature", -1),
        ("temperature", 1e9),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", [0.5]),
    ],
)
def test_a_request_that_is_none_is_refused_in_words(option: str, value: Any) -> None:
    with pytest.raises(Refusal) as refused:
        read_request({"model": "m", "messages": [{"role": "user", "content": "hi"}], option: value})
    assert refused.value.status == 400
    assert refused.value.code == "invalid_request"


@pytest.mark.parametrize(
    ("option", "value"), [("temperature", 0), ("temperature", 2.0), ("temperature", None), ("stream", None)]
)
def test_what_servers_take_is_taken(option: str, value: Any) -> None:
    made = read_request({"model": "m", "messages": [{"role": "user", "content": "hi"}], option: value})
    assert getattr(made, option) == (bool(value) if option == "stream" else value)


@pytest.mark.parametrize(
    ("option", "value"),
    [("temperature", "hot"), ("stream", "yes"), ("tools", 5), ("tools", [1]), ("text", {"format": "json"})],
)
def test_the_other_protocols_refuse_the_same(option: str, value: Any) -> None:
    said = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
    with pytest.raises(Refusal) as refused:
        read_responses_request({"model": "m", "input": "hi", option: value}, lambda name: None)
    assert refused.value.status == 400
    with pytest.raises(Refusal) as refused:
        read_messages_request({"model": "m", **said, option: value})
    assert refused.value.status == 400


def test_a_session_that_is_being_closed_is_closed_once_and_answers_nothing_more() -> None:
    """The gateway gives up sessions that nobody uses, while whoever opened one may close it, too."""
    engine = ScriptedEngine(["First.", "Second."])
    let_go = asyncio.Event()
    codes: list[str] = []

    async def use(session: GatewaySession, client: Any) -> None:
        sample = engine.continue_one

        async def held(asked: Any, **options: Any) -> EngineOutput:
            await let_go.wait()
            output: EngineOutput = await sample(asked, **options)
            return output

        vars(engine)["continue_one"] = held
        asked = asyncio.ensure_future(ask(client, HI))
        while not session._under_way:
            await asyncio.sleep(0)
        closing = [asyncio.ensure_future(session.finish()) for _ in range(2)]
        await asyncio.sleep(0)
        late = asyncio.ensure_future(ask(client, [{"role": "user", "content": "Anything else?"}]))
        while not (late.done() or len(session._under_way) > 1):
            await asyncio.sleep(0)
        let_go.set()
        await asked
        try:
            await late
        except openai.APIStatusError as error:
            codes.append(str(error.code))
        first, second = [await one for one in closing]
        assert first is second
        assert len(first.attempt.turns) == 1

    run(engine, use)
    assert codes == ["session_finished"]


class HearingTill(FunctionEnvironment):
    """A till whose goal hears how many entries the agent says that there are."""

    def open(self, scenario: str = "", seed: int = 0) -> HearingSession:
        return HearingSession(self, Till(scenario, seed))


class HearingSession(FunctionSession):
    """Its session."""

    def check_answer(self, goal: Any, answer: str) -> Comparison:
        said = f"There are {len(self.state.entries)}."
        return Comparison(int(answer == said), int(answer != said))


@pytest.mark.parametrize(("words", "reached"), [("There are 2.", 1.0), ("There are 3.", 0.0)])
def test_a_goal_that_hears_the_agent_hears_it(words: str, reached: float) -> None:
    till = HearingTill("till", [enter], state=Till)
    task = cw.Task(
        "t", "enter a and b, how many are there?", till.tools, cw.Answer(), till, facts={"goal": {"say": "it"}}
    )

    async def work() -> GatewayTrajectory:
        script = [f"<think>\nBoth.\n</think>\n\n{block('a', 'b')}", f"<think>\nDone.\n</think>\n\n{words}"]
        async with Gateway(ScriptedEngine(script)).serve() as gateway:
            session = gateway.open(task)
            async with client_of(session.url) as client:
                await agent(session, client)
                return await session.finish()

    made = asyncio.run(asyncio.wait_for(work(), 30))
    recipe = cw.RewardRecipe("reached", (cw.Term(GoalReached()),))
    assert recipe.score_attempt(made.attempt).total == reached


@pytest.mark.parametrize("engine", [lambda batch: [EngineOutput((1,))], lambda batch: next(iter(()))])
def test_whoever_asks_an_engine_of_batches_that_has_a_bug_is_told(engine: Any) -> None:
    async def asked() -> list[Any]:
        batched = BatchedEngine(codec(), engine)
        asking = asyncio.gather(*map(batched.continue_one, range(2)), return_exceptions=True)
        return await asyncio.wait_for(asking, 60)

    for error in asyncio.run(asked()):
        assert isinstance(error, cw.InfrastructureFailure)
        assert "its bug" in str(error) or "StopIteration" in str(error)
