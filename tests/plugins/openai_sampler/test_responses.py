"""The Responses API: the same exchange as chat completions, in items, as OpenAI's own types have them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.episodes import converse
from callwright.machines.model_server.responses import as_chat, request_of
from callwright.walk.sampling import offers_tools

types = pytest.importorskip("openai.types.responses", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")
from openai.types.responses.response_input_param import ResponseInputParam  # noqa: E402
from pydantic import TypeAdapter  # noqa: E402

sys.path.append(str(Path(__file__).parents[2] / "core" / "support"))
from stand_in_server import Asked, Reply, StandIn, response  # noqa: E402


def items_are_theirs(items: Any) -> None:
    """Input items as OpenAI's client types them."""
    TypeAdapter(ResponseInputParam).validate_python(items)


def episode(policy: str = "keep", **options: Any) -> tuple[Any, StandIn]:
    """Two turns over the API: a call with its result, then an answer in words."""
    pipeline = cw.Pipeline("toolworld-mini-v1", parser="json")
    task = cw.corpus("toolworld-mini-v1").task("train-3")

    def script(asked: Asked) -> Any:
        if any(item.get("type") == "function_call_output" for item in asked.body["input"]):
            return response("That is all.", thought="over")
        answer = response("Let me look.", thought="my why", calls=[("NoSuchTool", '{"a": 1}')], cached=4, reasoning=3)
        answer["output"][0]["encrypted_content"] = "SECRET"
        return answer

    with StandIn(script) as server:
        sampler = cw.sampler(
            "openai",
            model="o",
            api="responses",
            tools="native",
            base_url=server.url,
            earlier_thoughts=policy,
            **options,
        )
        request = cw.SamplingRequest(pipeline.messages(task, native=offers_tools(sampler)), task)
        conditions = cw.Conditions(limits=cw.TurnLimits(assistant_turns=3))
        ((made,),) = converse(pipeline, sampler, [request], conditions=conditions, temperature=0.5)
        assert (sampler.usage.prompt_tokens, sampler.usage.completion_tokens) == (20, 10)
    return made.attempt, server


def test_what_is_sent_and_read_over_two_turns() -> None:
    attempt, server = episode(reasoning_effort="low", parallel_tool_calls=False, tool_choice="required", strict=True)
    assert [asked.path for asked in server.asked] == ["/v1/responses"] * 2
    first, second = (asked.body for asked in server.asked)
    items_are_theirs(first["input"])
    items_are_theirs(second["input"])
    assert [item["role"] for item in first["input"]] == ["system", "user"]
    assert (first["max_output_tokens"], first["temperature"], first["store"]) == (1024, 0.5, False)
    assert first["reasoning"] == {"effort": "low", "summary": "auto"}
    assert (first["tool_choice"], first["parallel_tool_calls"]) == ("required", False)
    assert not first.keys() & {"seed", "n", "max_tokens", "reasoning_effort", "messages"}
    for tool in first["tools"]:
        types.FunctionTool.model_validate(tool)
        assert isinstance(tool["strict"], bool)
        assert "function" not in tool
    thought, said, call, result = second["input"][2:]
    assert (thought["type"], thought["encrypted_content"]) == ("reasoning", "SECRET")
    assert (said["type"], said["content"][0]["text"]) == ("message", "Let me look.")
    assert (call["name"], call["arguments"]) == ("NoSuchTool", '{"a": 1}')
    assert (result["type"], result["call_id"]) == ("function_call_output", call["call_id"])
    assert "unknown_tool" in result["output"]
    programs = [turn.parsed for turn in attempt.turns]
    assert [[one.tool for one in program.calls] for program in programs] == [["NoSuchTool"], []]
    assert [program.thought.split("\n")[0] for program in programs] == ["my why", "over"]


@pytest.mark.parametrize("policy", ["template", "drop"])
def test_thoughts_do_not_go_back_as_items(policy: str) -> None:
    _, server = episode(policy)
    items = server.asked[1].body["input"]
    items_are_theirs(items)
    assert "SECRET" not in json.dumps(items)
    assert ("<think>" in json.dumps(items)) == (policy == "template")
    said, call = items[2:4]
    assert said["role"] == "assistant"
    assert (call["type"], call["name"]) == ("function_call", "NoSuchTool")


def test_an_answer_reads_as_one_of_chat_completions() -> None:
    """Checked against the types of OpenAI's client on both sides."""
    from openai.types.chat import ChatCompletionMessage

    answer = response("Text.", thought="why", calls=[("f", '{"a": 1'), ("g", "")])
    answer["usage"]["input_tokens_details"]["cache_write_tokens"] = 0
    theirs = types.Response.model_validate(answer)
    (choice,) = as_chat(answer)["choices"]
    message = ChatCompletionMessage.model_validate(choice["message"])
    assert message.content == theirs.output_text == "Text."
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()] == [  # type: ignore[union-attr]
        (item.call_id, item.name, item.arguments) for item in theirs.output if item.type == "function_call"
    ]
    assert choice["message"]["reasoning_content"] == "why"
    assert choice["finish_reason"] == "tool_calls"
    thought = {"type": "reasoning", "id": "r", "summary": [{"text": "short", "type": "summary_text"}]}
    whole = {**answer, "output": [{**thought, "content": [{"text": "all of it", "type": "reasoning_text"}]}]}
    assert as_chat(whole)["choices"][0]["message"]["reasoning_content"] == "all of it"


@pytest.mark.parametrize(
    ("incomplete", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), (None, "stop")]
)
def test_why_an_answer_ended(incomplete: str | None, finish: str) -> None:
    assert as_chat(response("half", incomplete=incomplete))["choices"][0]["finish_reason"] == finish


def sampled(answer: Any, **options: Any) -> Any:
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    with StandIn(lambda asked: answer) as server:
        sampler = cw.sampler("openai", model="o", api="responses", base_url=server.url, retries=0, **options)
        return sampler.sample([cw.SamplingRequest((cw.Message.user("q"),), task, (), cw.parser("json"))])[0][0]


def test_a_cut_answer_is_truncated_and_a_thought_that_was_cut_is_not_ended() -> None:
    assert sampled(response("half", incomplete="max_output_tokens")).truncated
    one = sampled(response(None, thought="and so", incomplete="max_output_tokens"))
    assert (one.text, one.truncated) == ("<think>\nand so", True)
    assert not sampled(response("whole")).truncated


def test_a_failed_response_is_a_failure_of_the_machinery() -> None:
    failed = {**response(None), "status": "failed", "error": {"code": "server_error", "message": "out of luck"}}
    with pytest.raises(cw.InfrastructureFailure, match="out of luck"):
        sampled(failed)
    for nonsense in ({"output": None}, {"object": "response"}):
        with pytest.raises(cw.InfrastructureFailure):
            sampled(nonsense)


def test_log_probabilities_are_asked_for_and_read() -> None:
    answer = response("ab")
    answer["output"][0]["content"][0]["logprobs"] = [
        {"token": t, "logprob": -0.5, "bytes": [], "top_logprobs": []} for t in "ab"
    ]
    assert sampled(answer, logprobs=True).logprobs == (-0.5, -0.5)
    body = request_of([], {"logprobs": True})
    assert body["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]


def test_several_samples_are_asked_for_one_by_one() -> None:
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    with StandIn() as server:
        sampler = cw.sampler("openai", model="o", api="responses", base_url=server.url)
        (group,) = sampler.sample([cw.SamplingRequest((cw.Message.user("q"),), task)], n=3)
        assert len(group) == len(server.asked) == 3
        assert all("n" not in asked.body for asked in server.asked)


def test_a_refused_summary_is_left_out_and_the_effort_stays() -> None:
    def script(asked: Asked) -> Any:
        if "summary" in asked.body["reasoning"]:
            message = "Your organization must be verified to generate reasoning summaries."
            error = {"message": message, "param": "reasoning.summary", "code": "unsupported_value"}
            return Reply({"error": error}, 400)
        return response("fine")

    task = cw.corpus("toolworld-mini-v1").task("train-3")
    with StandIn(script) as server:
        sampler = cw.sampler("openai", model="o", api="responses", base_url=server.url, reasoning_effort="low")
        (((one,),)) = sampler.sample([cw.SamplingRequest((cw.Message.user("q"),), task)])
        assert one.text == "fine"
        assert server.asked[-1].body["reasoning"] == {"effort": "low"}


def test_pictures_and_parts_of_a_user_are_sent_as_theirs() -> None:
    parts = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": "https://a/b.png"}}]
    body = request_of([{"role": "user", "content": parts}], {})
    items_are_theirs(body["input"])
    assert body["input"][0]["content"] == [
        {"type": "input_text", "text": "what is this"},
        {"type": "input_image", "detail": "auto", "image_url": "https://a/b.png"},
    ]
