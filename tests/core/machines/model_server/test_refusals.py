"""Refusals in the words of each kind of server, and what is counted of answers in each dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dialects import NO_REFUSALS, REFUSALS
from hypothesis import given
from hypothesis import strategies as st
from stand_in_server import Reply, StandIn, chat, refusal, response, usage

import callwright as cw
from callwright.machines.model_server import ContentFiltered, ContextExceeded, Refused, Server, Usage, usage_of
from callwright.machines.model_server import refusals as module
from callwright.machines.model_server.reply_cache import ReplyCache
from callwright.training.evaluation import judge

MESSAGES = [{"role": "user", "content": "What is twice two?"}]


@pytest.mark.parametrize(("dialect", "kind"), list(REFUSALS))
def test_each_dialect_is_understood(dialect: str, kind: str) -> None:
    expected = {"overflow": ContextExceeded, "filter": ContentFiltered}[kind]
    with StandIn(lambda asked: refusal(dialect, kind)) as there:
        server = Server(model="m", base_url=there.url)
        (found,) = server.all([lambda one: one.chat(MESSAGES)])
        assert type(found) is expected
        assert str(found)
        assert (len(there.asked), server.usage.refused, server.usage.failed) == (1, 1, 0)


@pytest.mark.parametrize("name", list(NO_REFUSALS))
def test_what_only_looks_like_one_is_none(name: str) -> None:
    status, body = NO_REFUSALS[name]
    assert module.refusal(status, module.said(body)) is None


@pytest.mark.parametrize("text", ["maximum context length", "prompt is too long", "content management policy"])
@pytest.mark.parametrize("status", [401, 402, 404, 429])
def test_keys_models_and_rates_are_never_refusals(text: str, status: int) -> None:
    assert module.refusal(status, module.said({"error": {"message": text, "code": "context_length_exceeded"}})) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "metadata", "innererror", "usage", "choices", "x"]),
            inner,
            max_size=4,
        )
    ),
)


@given(values)
def test_reading_what_servers_say_never_raises(body: Any) -> None:
    error = module.said(body)
    assert isinstance(error.message, str)
    assert module.refusal(400, error) in (None, "overflow", "filter")
    if isinstance(body, dict):
        assert usage_of(body, (1.0, 1.0)).cost >= 0
        assert module.filtered(body) >= 0


def test_a_filtered_answer_is_refused(tmp_path: Path) -> None:
    for answer in (
        chat("half", finish="content_filter"),
        response("half", incomplete="content_filter"),
        {"type": "message", "content": [], "stop_reason": "refusal", "usage": {"input_tokens": 3, "output_tokens": 1}},
    ):
        with StandIn(lambda asked, answer=answer: answer) as there:  # type: ignore[misc]
            server = Server(model="m", base_url=there.url, prices=(1.0, 1.0))
            (found,) = server.all([lambda one: one.chat(MESSAGES)])
            assert isinstance(found, ContentFiltered)
            assert server.usage.refused == 1
            assert server.usage.cost > 0  # it was paid for all the same
            assert isinstance(found, Refused)
            assert found.answer == answer
            # What is paid for is kept, and as filtered as it was.
            replies = ReplyCache(tmp_path / "replies.sqlite")
            for _ in range(3):
                server.keep_replies(replies)
                (found,) = server.all([lambda one: one.chat(MESSAGES)])
                assert isinstance(found, ContentFiltered)
            assert (len(there.asked), server.usage.requests, server.usage.refused) == (2, 2, 2)
            replies.close()
            replies.path.unlink()


# In a sampler ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def request_() -> cw.SamplingRequest:
    task = next(iter(cw.corpus("toolworld-mini-v1")["evaluation"]))
    return cw.SamplingRequest((cw.Message.user(task.query),), task)


def test_an_overflow_is_a_truncated_empty_completion(request_: cw.SamplingRequest) -> None:
    for dialect in ("vllm", "sglang", "llama.cpp", "openai", "azure", "together", "openrouter", "anthropic"):
        with StandIn(lambda asked, dialect=dialect: refusal(dialect, "overflow")) as there:  # type: ignore[misc]
            sampler = cw.sampler("openai", model="m", base_url=there.url)
            (group,) = sampler.sample([request_], n=2)
            assert [(one.text, one.truncated, one.masked) for one in group] == [("", True, None)] * 2
            assert sampler.usage.refused == 1


def test_what_a_filter_takes_is_masked_with_its_reason(request_: cw.SamplingRequest) -> None:
    for dialect in ("openai", "azure", "openrouter", "anthropic"):
        with StandIn(lambda asked, dialect=dialect: refusal(dialect, "filter")) as there:  # type: ignore[misc]
            sampler = cw.sampler("openai", model="m", base_url=there.url)
            (group,) = sampler.sample([request_], n=2)
            assert [one.masked is not None and "content filter" in one.masked for one in group] == [True, True]
            assert judge(cw.Attempt(request_.task, group[0], cw.parser("json"))).masked


def test_one_filtered_choice_of_several_is_masked_alone(request_: cw.SamplingRequest) -> None:
    answer = chat("a", "b", "c")
    answer["choices"][1]["finish_reason"] = "content_filter"
    with StandIn(lambda asked: answer) as there:
        sampler = cw.sampler("openai", model="m", base_url=there.url)
        (group,) = sampler.sample([request_], n=3)
        assert [one.masked is None for one in group] == [True, False, True]
        assert sampler.usage.refused == 1


# Usage ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        (usage(100, 20, cached=60, reasoning=12), (100, 20, 60, 12)),  # OpenAI, vLLM
        ({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": None}, (100, 20, 0, 0)),
        ({"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64}, (100, 20, 64, 0)),  # DeepSeek
        ({"prompt_tokens": 100, "completion_tokens": 20, "reasoning_tokens": 7}, (100, 20, 0, 7)),  # SGLang
        (
            {
                "input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 60},
                "output_tokens_details": {"reasoning_tokens": 12},
            },
            (100, 20, 60, 12),
        ),  # the Responses API
        (
            {
                "input_tokens": 30, "output_tokens": 20, "cache_read_input_tokens": 60,
                "cache_creation_input_tokens": 10,
            },
            (100, 20, 60, 0),
        ),  # Anthropic: the cache beside the input
        ({"prompt_tokens": "many", "completion_tokens": -3}, (0, 0, 0, 0)),
        (None, (0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_usage_of_each_dialect(counted: Any, expected: tuple[int, int, int, int]) -> None:
    found = usage_of({"usage": counted}, (2.0, 10.0, 0.5))
    prompt, completion, cached, _ = expected
    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens, found.reasoning_tokens) == expected
    assert found.cost == pytest.approx(((prompt - cached) * 2 + cached * 0.5 + completion * 10) / 1e6)
    assert found.requests == 1
    assert usage_of({"usage": counted}, (2.0, 10.0)).cost == pytest.approx((prompt * 2 + completion * 10) / 1e6)


def test_usage_adds_up() -> None:
    total = Usage(requests=2, cost=0.5)
    total.add(usage_of({"usage": usage(3, 4)}, (1e6, 1e6)))
    total.add({"requests": 1, "cached_tokens": 2, "of a later version": 9})
    assert total.to_json() == {
        "requests": 4, "retries": 0, "failed": 0, "prompt_tokens": 3, "completion_tokens": 4, "cost": 7.5, "refused": 0,
        "cached_tokens": 2, "reasoning_tokens": 0,
    }  # fmt: skip


def test_refusals_are_not_kept_from_the_statuses_of_gateways() -> None:
    """A gateway hands a refusal on as a failure of its own."""
    status, body = REFUSALS["vllm", "overflow"]
    with StandIn(lambda asked: Reply(body, 502)) as there:
        (found,) = Server(model="m", base_url=there.url).all([lambda one: one.chat(MESSAGES)])
        assert isinstance(found, ContextExceeded)
        assert status == 400
