"""Parameters that a model refuses are recognised by the words of servers, and only those that nobody asked for."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog

import callwright as cw
from callwright.machines.model_server.refused_parameters import RefusedParameters

sys.path.append(str(Path(__file__).parents[2] / "support"))
from stand_in_server import Asked, Reply, StandIn, chat

BODY = {"messages": [], "max_tokens": 7, "temperature": 0.0, "seed": 3, "n": 2}
GENERIC = "Only the default (1) value is supported."
#: The words of a server, its code and what it calls the parameter, what was sent, and what is sent then.
REFUSED: list[tuple[str, str | None, str | None, dict[str, Any], dict[str, Any]]] = [
    (f"Unsupported value: 'temperature' does not support 0 with this model. {GENERIC}", "unsupported_value",
     "temperature", BODY, {**BODY, "temperature": ...}),
    (f"Unsupported value: 'temperature' does not support 0.0 with this model. {GENERIC}", None, None, BODY,
     {**BODY, "temperature": ...}),
    ("Unsupported parameter: 'temperature' is not supported with this model.", "unsupported_parameter", "temperature",
     BODY, {**BODY, "temperature": ...}),
    ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
     "unsupported_parameter", "max_tokens", BODY, {**BODY, "max_tokens": ..., "max_completion_tokens": 7}),
    ("Unrecognized request argument supplied: max_completion_tokens", None, None, {"max_completion_tokens": 9},
     {"max_tokens": 9}),
    ("Unknown parameter: 'seed'.", "unknown_parameter", "seed", BODY, {**BODY, "seed": ...}),
    ('Invalid JSON payload received. Unknown name "seed": Cannot find field.', None, None, BODY, {**BODY, "seed": ...}),
    ("[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]", None, None,
     BODY, {**BODY, "seed": ...}),
    ("property 'seed' is unsupported", None, None, BODY, {**BODY, "seed": ...}),
    ("'n' is not supported with this model", "unsupported_parameter", "n", BODY, {**BODY, "n": ...}),
    ("Your organization must be verified to generate reasoning summaries.", "unsupported_value", "reasoning.summary",
     {"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning": {"effort": "low"}}),
]  # fmt: skip


@pytest.mark.parametrize(("message", "code", "param", "body", "wanted"), REFUSED)
def test_what_nobody_asked_for_is_left_out_or_renamed(
    message: str, code: str | None, param: str | None, body: dict[str, Any], wanted: dict[str, Any]
) -> None:
    said: list[str] = []
    parameters = RefusedParameters()
    assert parameters.accepted(body) == body
    for _ in range(2):  # the second was under way when the first was refused
        assert parameters.learn(body, 400, message, code, param, said.append)
    assert parameters.accepted(body) == {key: value for key, value in wanted.items() if value is not ...}
    assert len(said) == 1
    assert message in said[0]
    assert pickle.loads(pickle.dumps(parameters)).accepted(body) == parameters.accepted(body)


@pytest.mark.parametrize(
    ("status", "message", "code", "param"),
    [
        (400, "max_tokens is too large: 100000. This model supports at most 4096", None, "max_tokens"),
        (400, "This model's maximum context length is 8 tokens, but temperature was fine", None, None),
        (400, "Invalid value for temperature: must be between 0 and 2", "invalid_value", "temperature"),
        (400, "Unsupported parameter: 'reasoning_effort' is not supported with this model.", "unsupported_parameter",
         "reasoning_effort"),
        (400, "Unsupported parameter: 'logprobs' is not supported with this model.", "unsupported_parameter",
         "logprobs"),
        (401, "Unsupported parameter: 'temperature' is not supported", "unsupported_parameter", "temperature"),
        (500, "Unsupported parameter: 'temperature' is not supported", "unsupported_parameter", "temperature"),
        (400, "this image is not supported in any of your messages", None, None),
    ],
)  # fmt: skip
def test_anything_else_is_an_error(status: int, message: str, code: str | None, param: str | None) -> None:
    parameters = RefusedParameters()
    body = {**BODY, "reasoning_effort": "low", "logprobs": True}
    assert not parameters.learn(body, status, message, code, param)
    assert parameters.accepted(body) == body


def test_a_model_that_takes_neither_name_is_not_asked_for_ever() -> None:
    parameters = RefusedParameters()
    assert parameters.learn({"max_tokens": 1}, 400, "Unsupported parameter: 'max_tokens'", None, "max_tokens")
    sent = parameters.accepted({"max_tokens": 1})
    words = "Unrecognized request argument supplied: max_completion_tokens"
    assert not parameters.learn(sent, 400, words, None, None)


def reasoning_model(asked: Asked) -> Any:
    """What models of OpenAI that reason answer: one thing at a time is wrong."""
    for name, message in (
        ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. "
         "Use 'max_completion_tokens' instead."),
        ("temperature", f"Unsupported value: 'temperature' does not support 0 with this model. {GENERIC}"),
    ):  # fmt: skip
        if name in asked.body:
            code = "unsupported_parameter" if name == "max_tokens" else "unsupported_value"
            error = {"message": message, "type": "invalid_request_error", "param": name, "code": code}
            return Reply({"error": error}, 400)
    return chat("fine")


def test_a_reasoning_model_is_asked_again_and_from_then_on_rightly() -> None:
    pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
    tasks = cw.corpus("toolworld-mini-v1")["evaluation"][:4]
    requests = [cw.SamplingRequest((cw.Message.user(task.query),), task) for task in tasks]
    with StandIn(reasoning_model) as server, structlog.testing.capture_logs() as logs:
        sampler = cw.sampler("openai", model="o", base_url=server.url, concurrency=1, reasoning_effort="low")
        for _ in range(2):
            found = sampler.sample(requests, temperature=0.0)
            assert [one.text for (one,) in found] == ["fine"] * 4
        last = server.asked[-1].body
        assert (last["max_completion_tokens"], last["reasoning_effort"]) == (1024, "low")
        assert not last.keys() & {"max_tokens", "temperature"}
        assert len(server.asked) == 8 + 2
        assert (sampler.usage.requests, sampler.usage.retries, sampler.usage.failed) == (8, 2, 0)
    assert [entry["log_level"] for entry in logs] == ["warning"] * 2
    assert "--temperature has no effect" in logs[1]["event"]


def test_what_was_asked_for_and_refused_ends_the_command_in_the_servers_words() -> None:
    pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
    task = cw.corpus("toolworld-mini-v1").task("train-3")
    error = {"message": "Unrecognized request argument supplied: reasoning_effort", "param": None, "code": None}
    with StandIn(lambda asked: Reply({"error": error}, 400)) as server:
        sampler = cw.sampler("openai", model="o", base_url=server.url, reasoning_effort="low")
        with pytest.raises(cw.UsageError, match="Unrecognized request argument supplied: reasoning_effort"):
            sampler.sample([cw.SamplingRequest((cw.Message.user("q"),), task)])
        assert len(server.asked) == 1
