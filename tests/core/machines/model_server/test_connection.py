"""One client for model servers, against a real HTTP server on loopback and against the official client."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import openai
import pytest
from dialects import NO_REFUSALS
from stand_in_server import Asked, Faults, Reply, StandIn, chat, echo, fault, usage

import callwright as cw
import callwright.machines.command_folder as common
from callwright.machines.model_server import Connection, RequestRejected, Server, ServerFailing, statuses
from callwright.machines.model_server import connection as module

T = TypeVar("T")
MESSAGES = [{"role": "user", "content": "What is twice two?"}]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between tries are a hundredth of what they are."""
    monkeypatch.setattr(module, "pause", lambda tries, draw: statuses.pause(tries, draw) / 100)


@pytest.fixture
def stand_in() -> Iterator[Callable[..., StandIn]]:
    made: list[StandIn] = []

    def start(*arguments: Any, **options: Any) -> StandIn:
        made.append(StandIn(*arguments, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


def ask(server: Server, request: Callable[[Connection], Awaitable[T]]) -> T:
    """The answer to one request; raises what it raised."""
    (found,) = server.all([request])
    if isinstance(found, BaseException):
        raise found
    return found


def chatted(connection: Connection) -> Awaitable[dict[str, Any]]:
    return connection.chat(MESSAGES, max_tokens=5)


# Answers --------------------------------------------------------------------------------------------------------------


def test_the_official_client_hears_the_same(stand_in: Any) -> None:
    there = stand_in()
    server = Server(model="m", base_url=there.url)
    with openai.OpenAI(base_url=there.url, api_key="k", max_retries=0) as official:
        theirs = official.chat.completions.create(model="m", messages=MESSAGES, n=3, seed=7)  # type: ignore[arg-type]
        mine = ask(server, lambda connection: connection.chat(MESSAGES, n=3, seed=7))
        assert [one["message"]["content"] for one in mine["choices"]] == [one.message.content for one in theirs.choices]
        assert mine == theirs.model_dump(exclude_unset=True)
        text = official.completions.create(model="m", prompt="a text", max_tokens=4).choices[0].text
        assert ask(server, lambda one: one.complete("a text", max_tokens=4))["choices"][0]["text"] == text
        ids = official.completions.create(model="m", prompt=[1, 2, 3], max_tokens=4).choices[0].text
        assert ask(server, lambda one: one.complete([1, 2, 3], max_tokens=4))["choices"][0]["text"] == ids
        said = official.responses.create(model="m", input="hello").output_text
        assert ask(server, lambda one: one.respond("hello"))["output"][0]["content"][0]["text"] == said
    bodies = [(asked.path, asked.body) for asked in there.asked]
    assert bodies[0::2] == bodies[1::2]  # the same requests, too


def test_unknown_keys_pass_both_ways(stand_in: Any) -> None:
    odd = {**chat("x", something_new={"a": [1, None]}), "further": 1.5}
    there = stand_in(lambda asked: odd)
    server = Server(model="m", base_url=there.url)
    body = {"chat_template_kwargs": {"enable_thinking": False}, "made_up": [1]}
    assert ask(server, lambda one: one.chat(MESSAGES, **body, extra_body={"top_k": 3})) == odd
    assert there.asked[0].body == {"model": "m", "messages": MESSAGES, **body, "top_k": 3}


def test_arguments_arrive_as_the_model_wrote_them(stand_in: Any) -> None:
    for written in ('{"a": 1', '{"a": 1, "a": 2}', '{"a": NaN}', "", "nothing"):
        there = stand_in(lambda asked, written=written: chat(None, calls=[("f", written)]))
        answer = ask(Server(model="m", base_url=there.url), chatted)
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == written


def test_answers_come_in_the_order_of_the_requests(stand_in: Any) -> None:
    there = stand_in(latency=(0.0, 0.05))
    server = Server(model="m", base_url=there.url, concurrency=8)
    found = server.all([lambda one, n=n: one.complete(f"text {n}") for n in range(30)])
    assert [str(one["choices"][0]["text"]).split(" [")[0] for one in found] == [f"text {n}" for n in range(30)]  # type: ignore[index]
    assert there.most == 8


def test_whatever_a_model_wrote_can_be_sent_back(stand_in: Any) -> None:
    there = stand_in()
    server = Server(model="m", base_url=there.url)
    for text, sent in (("a\ud800b", "a\ufffdb"), ("\ud83d\ude42", "🙂"), ("\x00\u2028", "\x00\u2028")):
        ask(server, lambda one, text=text: one.chat([{"role": "user", "content": [text]}]))
        assert there.asked[-1].body["messages"][0]["content"] == [sent]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("there", "begins with http"),
        ("ftp://x/v1", "begins with http"),
        ("http://[::1", "no address"),
        (" ", "is empty"),
    ],
)
def test_an_address_that_is_none_is_said(address: str, words: str) -> None:
    with pytest.raises(cw.UsageError, match=words):
        ask(Server(model="m", base_url=address), chatted)


def test_a_request_that_is_no_json_is_the_callers_mistake(stand_in: Any) -> None:
    server = Server(model="m", base_url=stand_in().url)
    for wrong in (object(), float("nan")):
        with pytest.raises(cw.UsageError, match="cannot be written as JSON"):
            ask(server, lambda one, wrong=wrong: one.chat(MESSAGES, temperature=wrong))


# Failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["429", "429 date", "500", "503", "529", "dropped", "half"])
def test_what_passes_is_asked_again(stand_in: Any, quick: None, kind: Any) -> None:
    there = stand_in(lambda asked: fault(kind) if asked.number < 3 else chat("fine"))
    server = Server(model="m", base_url=there.url)
    assert ask(server, chatted)["choices"][0]["message"]["content"] == "fine"
    assert (server.usage.requests, server.usage.retries, server.usage.failed) == (1, 2, 0)
    assert len(there.asked) == 3


@pytest.mark.parametrize("data", ["<html>", "[]", "", '{"choices": [', '{"error": {"message": "m", "code": 502}}'])
def test_what_is_no_answer_is_asked_for_again(stand_in: Any, quick: None, data: str) -> None:
    there = stand_in(lambda asked: Reply(data) if asked.number == 1 else chat("fine"))
    server = Server(model="m", base_url=there.url)
    assert ask(server, chatted)["choices"][0]["message"]["content"] == "fine"
    assert server.usage.retries == 1


def test_many_requests_of_which_a_third_fails(stand_in: Any, quick: None) -> None:
    """None is lost, and the server saw no request that is not counted (``benchmarks/model_server.py``: 10,000)."""
    there = stand_in(faults=Faults(0.3, seed=1), latency=(0.0, 0.01))
    server = Server(model="m", base_url=there.url, concurrency=64, retries=12)
    total = 1_500
    found = server.all([lambda one, n=n: one.complete(f"text {n}", max_tokens=4) for n in range(total)])
    texts = [one["choices"][0]["text"].split(" [")[0] for one in found if isinstance(one, dict)]
    assert texts == [f"text {n}" for n in range(total)]
    assert len(there.asked) == server.usage.requests + server.usage.retries
    assert (server.usage.requests, server.usage.failed, there.answered) == (total, 0, total)
    assert server.usage.retries > 0.3 * total
    assert (server.usage.prompt_tokens, server.usage.completion_tokens) == (10 * total, 5 * total)
    assert 1 < there.most <= 64  # how many meet at the server hangs on what else the machine does


def test_retry_after_is_kept(stand_in: Any) -> None:
    there = stand_in(lambda asked: fault("429", 0.6) if asked.number == 1 else chat("fine"))
    ask(Server(model="m", base_url=there.url), chatted)
    assert 0.6 <= there.asked[1].at - there.asked[0].at < 60


def test_retry_after_in_each_of_its_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    now = int(time.time())
    monkeypatch.setattr(statuses.time, "time", lambda: now)
    assert statuses.retry_after({"retry-after": "7"}) == 7
    assert statuses.retry_after({"retry-after": "0.25"}) == 0.25
    assert statuses.retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now + 90))
    assert statuses.retry_after({"retry-after": date}) == 90
    assert statuses.retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nonsense in ("", "soon", "nan", "inf", "-3", "Wed, 99 Foo 2015"):
        assert statuses.retry_after({"retry-after": nonsense}) is None
    assert statuses.retry_after({}) is None


def test_who_asks_to_wait_longer_than_a_request_may_take_is_given_up(stand_in: Any) -> None:
    there = stand_in(lambda asked: fault("429", 3600))
    with pytest.raises(cw.InfrastructureFailure, match="it asks to wait 3600 s, longer than a request may take"):
        ask(Server(model="m", base_url=there.url, timeout=5), chatted)
    assert len(there.asked) == 1


def test_a_request_has_one_time_limit_for_all_of_it(stand_in: Any) -> None:
    """Also where the server sends a little now and then: here the head of the answer comes, its body never does."""
    there = stand_in(lambda asked: Reply(chat("late"), after=3600))
    with pytest.raises(cw.InfrastructureFailure, match=r"does not answer 2 times: no answer in 0\.2 s"):
        ask(Server(model="m", base_url=there.url, timeout=0.2, retries=1), chatted)


def test_too_many_failures_in_a_row_end_the_run(stand_in: Any, quick: None) -> None:
    there = stand_in(lambda asked: fault("503"))
    server = Server(model="m", base_url=there.url, retries=1, most_failures=7, concurrency=2)
    found = server.all([chatted] * 500)
    assert [type(one) for one in found].count(cw.InfrastructureFailure) == 6
    assert [type(one) for one in found].count(ServerFailing) == 494
    assert "7 requests in a row failed" in str(found[-1])
    assert "503 2 times: the server is overloaded" in str(found[-1])
    assert len(there.asked) <= 2 * 8  # the others were not sent


def test_an_answer_ends_the_row_of_failures(stand_in: Any, quick: None) -> None:
    there = stand_in(lambda asked: chat("fine") if asked.number % 3 == 0 else fault("500"))
    server = Server(model="m", base_url=there.url, retries=0, most_failures=3, concurrency=1)
    found = server.all([chatted] * 30)
    assert sum(isinstance(one, dict) for one in found) == 10
    assert server.usage.failed == 20


def test_failures_of_all_processes_are_one_row(stand_in: Any, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    there = stand_in(lambda asked: chat("fine") if asked.number in (6, 12) else fault("500"))

    def a_worker(requests: int) -> list[type]:
        server = Server(model="m", base_url=there.url, retries=0, most_failures=8, concurrency=1)
        return [type(one) for one in server.all([chatted] * requests)]

    failed = cw.InfrastructureFailure
    assert a_worker(5) == [failed] * 5  # of the command itself
    monkeypatch.setattr(common, "_named_here", [])  # as in its workers
    assert a_worker(1) == [dict]  # which ends the row for all
    assert a_worker(5) == [failed] * 5
    assert a_worker(1) == [dict]
    assert a_worker(5) == [failed] * 5
    assert a_worker(4) == [failed] * 2 + [ServerFailing] * 2
    assert len(there.asked) == 5 + 1 + 5 + 1 + 5 + 3
    # Another server of the same program begins anew.
    monkeypatch.setattr(common, "_named_here", [os.getpid()])
    assert a_worker(2) == [failed] * 2


@pytest.mark.parametrize("name", [name for name in NO_REFUSALS if name not in ("rate", "parameter")])
def test_what_repeating_cannot_mend_is_said_at_once(stand_in: Any, name: str) -> None:
    status, body = NO_REFUSALS[name]
    there = stand_in(lambda asked: Reply(body, status))
    with pytest.raises(RequestRejected) as raised:
        ask(Server(model="m", base_url=there.url, api_key_env="MY_KEY"), chatted)
    assert (len(there.asked), raised.value.status) == (1, status)
    assert body["error"]["message"].split("sk-")[0].strip() in str(raised.value)


@pytest.mark.parametrize("name", ["key", "forbidden", "model", "credits"])
def test_what_holds_for_all_requests_is_asked_once(stand_in: Any, name: str) -> None:
    status, body = NO_REFUSALS[name]
    there = stand_in(lambda asked: Reply(body, status))
    found = Server(model="m", base_url=there.url, concurrency=1).all([chatted] * 50)
    assert all(isinstance(one, RequestRejected) for one in found)
    assert len(there.asked) == 1


def test_an_empty_account_is_no_rate_limit(stand_in: Any) -> None:
    error = {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"}
    there = stand_in(lambda asked: Reply({"error": error}, 429))
    with pytest.raises(RequestRejected, match=r"has no credit left for the key in \$OPENAI_API_KEY"):
        ask(Server(model="m", base_url=there.url), chatted)


def test_a_redirect_is_not_followed(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = stand_in()
    there = stand_in(lambda asked: Reply({}, 307, {"Location": elsewhere.url + "/chat/completions"}))
    with pytest.raises(RequestRejected, match="sends elsewhere"):
        ask(Server(model="m", base_url=there.url), chatted)
    assert elsewhere.asked == []


def test_no_key_leaves_in_an_error_its_cause_or_its_notes(
    stand_in: Any, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import traceback

    monkeypatch.setenv("MY_KEY", "an-odd-key-of-no-known-form")
    words = "bad key an-odd-key-of-no-known-form"
    for status in (400, 401, 404, 429, 500):
        there = stand_in(lambda asked, status=status: Reply({"error": {"message": words, "code": "c"}}, status))
        address = there.url.replace("http://", "http://me:hunter2@")
        server = Server(model="m", base_url=address, api_key_env="MY_KEY", retries=1)
        with pytest.raises(cw.CallwrightError) as raised:
            ask(server, chatted)
        trace = "".join(traceback.format_exception(raised.value))
        assert "bad key" in trace
        assert not any(secret in trace for secret in ("an-odd-key", "hunter2"))


def test_many_requests_at_once_are_really_at_once(stand_in: Any) -> None:
    there = stand_in(latency=1.0)
    server = Server(model="m", base_url=there.url, concurrency=256)
    found = server.all([lambda one, n=n: one.complete(f"text {n}") for n in range(256)])
    assert all(isinstance(one, dict) for one in found)
    assert there.most == 256


def test_answers_that_are_kept_are_not_asked_for_again(stand_in: Any) -> None:
    class Kept(dict[str, dict[str, Any]]):
        def __init__(self) -> None:
            super().__init__()
            self.told: list[str] = []

        def key(self, endpoint: str, address: str, body: Any) -> str:
            assert address.startswith("http://127.0.0.1")
            return json.dumps([endpoint, body], sort_keys=True)

        def begun(self, key: str, worst: float) -> None:
            self.told.append("begun")

        def lost(self, worst: float) -> None:
            raise AssertionError("without prices nothing is lost")

        def put(self, key: str, answer: dict[str, Any]) -> None:
            self.told.append("put")
            self[key] = answer

        def gave_up(self, key: str) -> None:
            self.told.append("gave up")

    def script(asked: Asked) -> Any:
        return echo(asked) if asked.body["seed"] != 3 else fault("500")

    there = stand_in(script)
    server = Server(model="m", base_url=there.url, retries=0)
    kept = Kept()
    server.replies = kept  # type: ignore[assignment]
    first = server.all([lambda one, n=n: one.chat(MESSAGES, seed=n) for n in range(5)])
    assert sorted(kept.told) == ["begun"] * 5 + ["gave up"] + ["put"] * 4
    again = server.all([lambda one, n=n: one.chat(MESSAGES, seed=n) for n in range(5)])
    assert [one for one in first if isinstance(one, dict)] == [one for one in again if isinstance(one, dict)]
    assert [asked.body["seed"] for asked in there.asked].count(3) == 2  # what failed was not kept
    assert (len(there.asked), len(kept), server.usage.requests) == (6, 4, 6)


def test_what_the_model_turns_out_not_to_take_is_left_out_from_then_on(stand_in: Any) -> None:
    class Learning:
        def __init__(self) -> None:
            self.without: set[str] = set()

        def accepted(self, body: dict[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in body.items() if name not in self.without}

        def learn(self, body: Any, status: int, message: str, code: Any, param: Any, say: Any) -> bool:
            news = param in body and status == 400 and code == "unsupported_value" and "Only the default" in message
            self.without.add(param)
            return bool(news)

    def script(asked: Asked) -> Any:
        if "temperature" in asked.body:
            error = {"message": "Only the default (1) value", "param": "temperature", "code": "unsupported_value"}
            return Reply({"error": error}, 400)
        return chat("fine")

    there = stand_in(script)
    server = Server(model="m", base_url=there.url, retries=0, concurrency=1)
    server.parameters = Learning()
    found = server.all([lambda one: one.chat(MESSAGES, temperature=0)] * 3)
    assert all(isinstance(one, dict) for one in found)
    assert (server.usage.requests, server.usage.retries, len(there.asked)) == (3, 1, 4)


# Streams --------------------------------------------------------------------------------------------------------------


def streamed(server: Server, **body: Any) -> list[dict[str, Any]]:
    async def run() -> list[dict[str, Any]]:
        async with Connection(server) as connection:
            return [chunk async for chunk in connection.stream_chat(MESSAGES, **body)]

    return asyncio.run(run())


def test_a_stream_holds_what_the_official_client_hears(stand_in: Any) -> None:
    answer = chat("It is four.", thought="two and two", calls=[("f", '{"a": 1')], counted=usage(12, 7, reasoning=3))
    there = stand_in(lambda asked: answer)
    server = Server(model="m", base_url=there.url, prices=(1.0, 2.0))
    mine = streamed(server, n=1)
    with openai.OpenAI(base_url=there.url, api_key="k", max_retries=0) as official:
        options = {"include_usage": True}
        theirs = official.chat.completions.create(
            model="m",
            messages=MESSAGES,
            n=1,
            stream=True,
            stream_options=options,  # type: ignore[call-overload]
        )
        assert mine == [chunk.model_dump(exclude_unset=True) for chunk in theirs]
    assert there.asked[0].body == there.asked[1].body
    text = "".join(one["choices"][0]["delta"].get("content") or "" for one in mine if one["choices"])
    assert text == "It is four."
    assert (server.usage.prompt_tokens, server.usage.reasoning_tokens) == (12, 3)
    assert server.usage.cost == pytest.approx((12 + 14) / 1e6)


def test_a_stream_that_fails_before_it_begins_is_asked_for_again(stand_in: Any, quick: None) -> None:
    there = stand_in(
        lambda asked: fault(["429", "dropped", "500"][asked.number - 1]) if asked.number < 4 else echo(asked)
    )  # type: ignore[arg-type]
    server = Server(model="m", base_url=there.url)
    assert streamed(server)[-1]["usage"]
    assert (server.usage.requests, server.usage.retries) == (1, 3)


def test_a_stream_that_breaks_off_is_a_failure(stand_in: Any) -> None:
    there = stand_in(lambda asked: Reply(chat("this text is never whole"), drop="half"))
    server = Server(model="m", base_url=there.url)
    with pytest.raises(cw.InfrastructureFailure, match="broke its stream off"):
        streamed(server)
    assert (server.usage.failed, len(there.asked)) == (1, 1)  # some of it was given away: it cannot be asked for again
    unfinished = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
    there = stand_in(lambda asked: {"chunks": [unfinished]})
    with pytest.raises(cw.InfrastructureFailure, match="ended its stream before the answer was finished"):
        streamed(Server(model="m", base_url=there.url))
    error = {"error": {"message": "out of memory", "code": 500}}
    there = stand_in(lambda asked: {"chunks": [unfinished, error]})
    with pytest.raises(cw.InfrastructureFailure, match="broke its stream off: out of memory"):
        streamed(Server(model="m", base_url=there.url))


def test_a_stream_that_stops_coming_is_given_up(stand_in: Any) -> None:
    there = stand_in(lambda asked: Reply(chat("slow " * 20), pause=0.6))
    with pytest.raises(cw.InfrastructureFailure, match="broke its stream off"):
        streamed(Server(model="m", base_url=there.url, timeout=0.3))
