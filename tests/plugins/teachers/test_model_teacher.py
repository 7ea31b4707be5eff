"""The teacher ``openai`` against a stand-in server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import callwright as cw
from callwright.errors import RunError, UnknownName, UsageError
from callwright.plugins import default_registry
from callwright.testing import check_component
from callwright.training import Teacher, TeacherFailure, TeacherReply, TeacherRequest
from callwright.training.teaching.teacher import AsksConcurrently, connected

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")
from stand_in_server import Asked, Reply, StandIn, chat, refusal, usage


def teacher(url: str, **options: Any) -> Any:
    return default_registry().create("teacher", "openai", model="m", base_url=url, **{"retries": 0, **options})


def request(said: str = "Hello", role: Any = "user", **more: Any) -> TeacherRequest:
    return TeacherRequest(role, (cw.Message.user(said),), **more)


def test_answers_come_in_the_order_of_the_requests_in_a_loop_and_without_one() -> None:
    with StandIn(lambda asked: Reply(chat(f"re {asked.last}"), after=0.03 if asked.last == "0" else 0)) as server:
        made = teacher(server.url)
        wanted = [TeacherReply(f"re {n}", usage={"prompt_tokens": 10, "completion_tokens": 5}) for n in range(6)]
        assert made.ask([request(str(n)) for n in range(6)]) == wanted

        async def inside() -> list[Any]:
            return list(made.ask([request(str(n)) for n in range(6)]))

        assert asyncio.run(inside()) == wanted
        assert made.usage.requests == 12
        assert made.ask([]) == []


def test_each_role_has_its_model_and_options_and_a_request_may_say_otherwise() -> None:
    with StandIn(lambda asked: chat(asked.body["model"])) as server:
        roles = {"judge": {"model": "large", "temperature": 0}, "user": {"max_tokens": 33, "body": {"top_p": 0.5}}}
        made = teacher(server.url, roles=roles, temperature=0.9, token_limit="max_completion_tokens")
        asked = [request("a", "judge"), request("b", "user"), request("c", "planner", temperature=0.2, max_tokens=7)]
        assert [reply.text for reply in made.ask(asked)] == ["large", "m", "m"]
        bodies = {one.last: one.body for one in server.asked}
    assert (bodies["a"]["temperature"], bodies["b"]["temperature"], bodies["c"]["temperature"]) == (0, 0.9, 0.2)
    limits = [bodies[name]["max_completion_tokens"] for name in "abc"]
    assert limits == [1024, 33, 7]
    assert bodies["b"]["top_p"] == 0.5
    assert "top_p" not in bodies["a"]
    assert made.settings("judge")["model"] == "large" != made.settings("user")["model"]


def test_tools_are_sent_and_calls_come_back_as_they_were_sampled() -> None:
    tools = tuple(cw.corpus("toolworld-mini-v1")["evaluation"][0].tools.values())
    broken = '{"a": 1'
    with StandIn(lambda asked: chat(None, calls=[("f", broken)], thought="hm")) as server:
        (reply,) = teacher(server.url).ask([request("go", "assistant", tools=tools)])
        sent = server.asked[0].body["tools"]
    assert [tool["function"]["name"] for tool in sent] == [tool.name for tool in tools]
    assert (reply.calls[0].name, reply.calls[0].arguments, reply.finish, reply.thought) == ("f", broken, "calls", "hm")


def test_usage_holds_cached_and_reasoning_tokens_and_the_cost() -> None:
    counted = usage(1000, 500, cached=400, reasoning=300)
    with StandIn(lambda asked: chat("x", counted=counted)) as server:
        (reply,) = teacher(server.url, price_prompt=1.0, price_completion=2.0).ask([request()])
    assert dict(reply.usage) == {
        "prompt_tokens": 1000, "completion_tokens": 500, "cached_tokens": 400, "reasoning_tokens": 300, "cost": 0.002,
    }  # fmt: skip


def test_a_request_that_fails_fails_alone_and_a_refusal_says_that_it_is_one() -> None:
    def script(asked: Asked) -> Any:
        match asked.last:
            case "down":
                return Reply({"error": {"message": "overloaded"}}, 503)
            case "long":
                return refusal("vllm", "overflow")
            case "filtered":
                return chat("", finish="content_filter")
            case "cut":
                return chat("half of", finish="length")
            case "nothing":
                return {**chat("x"), "choices": []}
        return chat("fine")

    with StandIn(script) as server:
        kinds = ["down", "long", "filtered", "cut", "nothing", "fine"]
        down, long, filtered, cut, nothing, fine = teacher(server.url).ask([request(kind) for kind in kinds])
    assert isinstance(down, TeacherFailure)
    assert not down.refused
    assert "503" in down.reason
    assert isinstance(long, TeacherFailure)
    assert long.refused
    assert isinstance(filtered, TeacherFailure)
    assert filtered.refused
    assert isinstance(nothing, TeacherFailure)
    assert "without a choice" in nothing.reason
    assert isinstance(cut, TeacherReply)
    assert cut.truncated
    assert fine.text == "fine"


def test_a_key_that_is_refused_ends_everything() -> None:
    error = {"error": {"message": "Incorrect API key provided"}}
    with StandIn(lambda asked: Reply(error, 401)) as server, pytest.raises(UsageError, match="OPENAI_API_KEY"):
        teacher(server.url).ask([request(str(n)) for n in range(3)])


SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}


def test_a_schema_holds_the_server_to_it_and_one_that_knows_none_is_asked_without_from_then_on() -> None:
    def old(asked: Asked) -> Any:
        if "response_format" in asked.body:
            return Reply({"error": {"message": "Unknown parameter: 'response_format'"}}, 400)
        return chat('{"score": 3}')

    with StandIn(old) as server:
        made = teacher(server.url)
        for n in range(3):
            (reply,) = made.ask([request(str(n), "judge", schema=SCHEMA)])
            assert json.loads(reply.text) == {"score": 3}
        assert ["response_format" in one.body for one in server.asked] == [True, False, False, False]
        with pytest.raises(UsageError, match="response_format"):
            teacher(server.url, structured="schema").ask([request("x", "judge", schema=SCHEMA)])
    with StandIn(lambda asked: chat('{"score": 3}')) as server:
        teacher(server.url).ask([request("x", "judge", schema=SCHEMA), request("y", "judge")])
        (held,) = [one.body["response_format"] for one in server.asked if "response_format" in one.body]
    assert held["json_schema"]["schema"] == SCHEMA


def test_a_400_about_something_else_is_no_reason_to_ask_without_the_schema() -> None:
    error = {"error": {"message": "Unsupported value: 'messages'"}}
    with StandIn(lambda asked: Reply(error, 400)) as server, pytest.raises(UsageError, match="messages"):
        teacher(server.url).ask([request("x", "judge", schema=SCHEMA)])
    assert len(server.asked) == 1


def test_no_more_are_under_way_than_concurrency_allows() -> None:
    with StandIn(lambda asked: chat("x"), latency=(0.005, 0.01)) as server:
        teacher(server.url, concurrency=3).ask([request(str(n)) for n in range(12)])
        assert server.most == 3


def test_one_request_at_a_time_from_a_loop() -> None:
    async def work(made: Any) -> list[Any]:
        async with connected(made) as asker:
            return [await asker.ask_one(request("a")), await asker.ask_one(request("b"))]

    with StandIn(lambda asked: chat(f"re {asked.last}")) as server:
        made = teacher(server.url)
        assert isinstance(made, AsksConcurrently)
        assert isinstance(made, Teacher)
        assert [one.text for one in asyncio.run(work(made))] == ["re a", "re b"]
    scripted = default_registry().create("teacher", "scripted", lines=[{"says": "yes"}])
    assert not isinstance(scripted, AsksConcurrently)
    assert [one.text for one in asyncio.run(work(scripted))] == ["yes", "yes"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roles": {"judges": {}}}, "Did you mean 'judge'"),
        ({"roles": {"judge": {"temprature": 1}}}, "Did you mean 'temperature'"),
        ({"roles": {"judge": {"temperature": -1}}}, "of the role 'judge'"),
        ({"max_tokens": 0}, "1 or more"),
        ({"structured": "yes"}, "structured"),
        ({"roles": {"user": 3}}, "table of options"),
    ],
)
def test_wrong_options_are_said_before_anything_is_asked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        teacher("http://127.0.0.1:1", **options)
    assert issubclass(UnknownName, UsageError)


def test_the_teachers_conform() -> None:
    with StandIn() as server:
        check_component("teacher", teacher(server.url, send_seed=True))


def test_what_it_reaches_for_is_the_key_that_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "abc")
    spec = default_registry().spec("teacher", "openai")
    (reach,) = spec.reach({"model": "m", "base_url": "http://else.where", "api_key_env": "SOME_KEY"})
    assert reach.kind == "secret"
    assert "SOME_KEY" in reach.what
    assert "else.where" in reach.what
    assert spec.reach({"model": "m"}) == ()


@pytest.mark.parametrize("dialect", ["openai", "azure", "vllm", "anthropic"])
def test_a_refusal_in_the_words_of_a_server_is_one_of_its_request_alone(dialect: str) -> None:
    kind = "filter" if dialect == "azure" else "overflow"

    def script(asked: Asked) -> Any:
        return refusal(dialect, kind) if asked.last == "bad" else chat("fine")

    with StandIn(script) as server:
        made = teacher(server.url)
        bad, good = made.ask([request("bad"), request("good")])
    assert isinstance(bad, TeacherFailure)
    assert bad.refused
    assert good.text == "fine"
    assert made.usage.refused == 1


def test_a_budget_ends_everything_before_it_is_passed() -> None:
    counted = usage(1000, 1000)
    with StandIn(lambda asked: chat("x", counted=counted)) as server:
        made = teacher(server.url, price_prompt=1.0, price_completion=1.0, max_cost=0.012, concurrency=1)
        with pytest.raises(RunError):
            made.ask([request(str(n)) for n in range(100)])
        assert made.usage.cost <= 0.012
        assert 1 <= len(server.asked) < 10


def test_a_server_that_only_fails_ends_everything() -> None:
    with StandIn(lambda asked: Reply({"error": {"message": "down"}}, 503)) as server:
        made = teacher(server.url, most_failures=4, concurrency=1)
        with pytest.raises(RunError, match="in a row failed"):
            made.ask([request(str(n)) for n in range(100)])
        assert len(server.asked) < 20
