"""The sampler ``openai`` against a real HTTP server on loopback that answers as told."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import callwright as cw
from callwright.episodes import converse
from callwright.plugins import default_registry
from callwright.training.evaluation import judge

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")

Answer = Callable[[dict[str, Any], int], tuple[int, Any]]


class FakeServer:
    """Answers each request with ``answer(body, number of the request)``; remembers what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most = self.now = 0
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.asked.append(body)
                    outer.headers.append(dict(self.headers))
                    number = len(outer.asked)
                    outer.now += 1
                    outer.most = max(outer.most, outer.now)
                status, content = answer(body, number)
                with lock:
                    outer.now -= 1
                if status == 0:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], FakeServer]]:
    running: list[FakeServer] = []

    def start(answer: Answer) -> FakeServer:
        running.append(FakeServer(answer))
        return running[-1]

    yield start
    for one in running:
        one.server.shutdown()
        one.server.server_close()


def chat(*texts: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [
            {"index": index, "finish_reason": finish, "message": {"role": "assistant", "content": text, **more}}
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5 * len(texts), "total_tokens": 10 + 5 * len(texts)},
    }  # fmt: skip


@pytest.fixture
def tasks() -> list[cw.Task]:
    return list(cw.corpus("toolworld-mini-v1")["evaluation"][:4])


def requests_for(tasks: list[cw.Task]) -> list[cw.SamplingRequest]:
    return [cw.SamplingRequest((cw.Message.user(task.query),), task) for task in tasks]


def test_completions_come_in_the_order_of_the_requests(serve: Any, tasks: list[cw.Task]) -> None:
    def answer(body: dict[str, Any], number: int) -> tuple[int, Any]:
        time.sleep(0.02 * (4 - number % 4))  # later requests are answered first
        return 200, chat(*[f"{body['messages'][0]['content']}/{i}" for i in range(body.get("n", 1))])

    server = serve(answer)
    sampler = cw.sampler("openai", model="m", base_url=server.url, max_new_tokens=7, body={"top_p": 0.5})
    found = sampler.sample(requests_for(tasks), n=3, seed=5, temperature=0.7)
    assert [[one.text for one in group] for group in found] == [[f"{t.query}/{i}" for i in range(3)] for t in tasks]
    body = server.asked[0]
    assert (body["model"], body["max_tokens"], body["top_p"], body["n"], body["temperature"]) == ("m", 7, 0.5, 3, 0.7)
    assert len({one["seed"] for one in server.asked}) == 4
    seeds = [one["seed"] for one in server.asked]
    sampler.sample(requests_for(tasks), n=3, seed=5, temperature=0.7)
    assert sorted(one["seed"] for one in server.asked[4:]) == sorted(seeds)
    assert sampler.usage.to_json() == {
        "requests": 8, "retries": 0, "failed": 0, "prompt_tokens": 80, "completion_tokens": 120, "cost": 0.0,
        "refused": 0, "cached_tokens": 0, "reasoning_tokens": 0,
    }  # fmt: skip


def test_seeds_hang_on_the_task_and_not_on_the_batch(serve: Any, tasks: list[cw.Task]) -> None:
    """Alone, in another order and in every turn of an episode, a task is asked for with seeds of its own."""
    pipeline = cw.Pipeline("toolworld-mini-v1")
    call = pipeline.parser.render(cw.Program((cw.Call(0, "NoSuchTool", {}),)))
    server = serve(lambda body, number: (200, chat(*[call] * body.get("n", 1))))
    sampler = cw.sampler("openai", model="m", base_url=server.url)

    def sent() -> dict[str, list[int]]:
        """The seeds of each query, in no order, forgotten then."""
        found: dict[str, list[int]] = {task.query: [] for task in tasks}
        for body in server.asked:
            said = " ".join(message["content"] for message in body["messages"] if message["role"] == "user")
            for task in tasks:
                if task.query in said:
                    found[task.query].append(body["seed"])
        server.asked.clear()
        return {query: sorted(seeds) for query, seeds in found.items() if seeds}

    requests = requests_for(tasks)
    sampler.sample(requests, n=2, seed=5)
    single = sent()
    assert len({seed for seeds in single.values() for seed in seeds}) == 4
    sampler.sample(requests[::-1], n=2, seed=5)
    assert sent() == single
    sampler.sample(requests[2:3], seed=5)
    assert sent() == {tasks[2].query: single[tasks[2].query]}
    sampler.sample(requests, n=2, seed=6)
    assert all(seeds != single[query] for query, seeds in sent().items())

    conditions = cw.Conditions(seed=5, limits=cw.TurnLimits(assistant_turns=3))
    converse(pipeline, sampler, requests, conditions=conditions, n=2)
    several = sent()
    assert all(len(seeds) == len(set(seeds)) == 1 + 2 * 2 for seeds in several.values())
    assert all(single[query][0] in seeds for query, seeds in several.items())
    converse(pipeline, sampler, requests[::-1], conditions=conditions, n=2)
    assert sent() == several
    converse(pipeline, sampler, requests[1:2], conditions=conditions, n=2)
    assert sent() == {tasks[1].query: several[tasks[1].query]}


def test_a_server_that_gives_one_at_a_time_is_asked_again(serve: Any, tasks: list[cw.Task]) -> None:
    server = serve(lambda body, number: (200, chat(f"text {number}")))
    sampler = cw.sampler("openai", model="m", base_url=server.url)
    (group,) = sampler.sample(requests_for(tasks[:1]), n=3)
    assert [one.text for one in group] == ["text 1", "text 2", "text 3"]
    assert len({one["seed"] for one in server.asked}) == 3


def test_truncation_and_log_probabilities(serve: Any, tasks: list[cw.Task]) -> None:
    answer = chat("half a", finish="length")
    answer["choices"][0]["logprobs"] = {"content": [{"token": t, "logprob": -0.5, "top_logprobs": []} for t in "ab"]}
    server = serve(lambda body, number: (200, answer))
    (((one,),)) = cw.sampler("openai", model="m", base_url=server.url, logprobs=True).sample(requests_for(tasks[:1]))
    assert (one.truncated, one.logprobs) == (True, (-0.5, -0.5))
    assert server.asked[0]["logprobs"] is True


@pytest.mark.parametrize("status", [429, 500, 503, 0])
def test_what_can_be_mended_is_tried_again(serve: Any, tasks: list[cw.Task], status: int) -> None:
    server = serve(lambda body, number: (status, {"error": {"message": "busy"}}) if number < 3 else (200, chat("ok")))
    sampler = cw.sampler("openai", model="m", base_url=server.url, retries=4)
    assert sampler.sample(requests_for(tasks[:1]))[0][0].text == "ok"
    assert sampler.usage.retries == 2


def test_one_lost_request_masks_its_sample_only(serve: Any, tasks: list[cw.Task]) -> None:
    unlucky = tasks[1].query

    def answer(body: dict[str, Any], number: int) -> tuple[int, Any]:
        if body["messages"][0]["content"] == unlucky:
            return 503, {"error": {"message": "overloaded"}}
        return 200, chat("no program")

    server = serve(answer)
    sampler = cw.sampler("openai", model="m", base_url=server.url, retries=1)
    found = sampler.sample(requests_for(tasks), n=2)
    assert [group[0].masked is not None for group in found] == [False, True, False, False]
    assert "answered 503 2 times: overloaded" in (found[1][0].masked or "")
    attempt = cw.Attempt(tasks[1], found[1][0], cw.parser("json"))
    assert judge(attempt).masked
    reward = cw.reward("tier").score_attempt(attempt)
    assert reward.total is None
    assert reward.masked == found[1][0].masked
    assert sampler.usage.failed == 1


def test_nothing_but_failures_is_said(serve: Any, tasks: list[cw.Task]) -> None:
    server = serve(lambda body, number: (503, {"error": {"message": "down"}}))
    with pytest.raises(cw.InfrastructureFailure, match="503 1 times: down"):
        cw.sampler("openai", model="m", base_url=server.url, retries=0).sample(requests_for(tasks))
    server.server.shutdown()
    server.server.server_close()
    with pytest.raises(cw.InfrastructureFailure, match="does not answer"):
        cw.sampler("openai", model="m", base_url=server.url, retries=0).sample(requests_for(tasks))


def test_a_slow_server_is_given_up(serve: Any, tasks: list[cw.Task]) -> None:
    release = threading.Event()
    server = serve(lambda body, number: (200, chat("late")) if release.wait(20) else (500, {}))
    try:
        with pytest.raises(cw.InfrastructureFailure, match="does not answer"):
            cw.sampler("openai", model="m", base_url=server.url, retries=0, timeout=0.2).sample(requests_for(tasks[:1]))
    finally:
        release.set()


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, r"refuses the key in \$MY_KEY"), (404, "no model 'm'"), (400, "refuses the request"), (422, "refuses")],
)
def test_what_cannot_be_mended_is_said_at_once(serve: Any, tasks: list[cw.Task], status: int, said: str) -> None:
    server = serve(lambda body, number: (status, {"error": {"message": "because"}}))
    sampler = cw.sampler("openai", model="m", base_url=server.url, api_key_env="MY_KEY")
    with pytest.raises(cw.UsageError, match=said):
        sampler.sample(requests_for(tasks[:1]))
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [401, 500])
def test_what_a_server_echoes_of_its_key_is_not_said(
    serve: Any, tasks: list[cw.Task], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "an-odd-key-of-no-known-form")
    said = "bad key Bearer sk-SECRET-abc123, you sent an-odd-key-of-no-known-form" + "x" * 500
    server = serve(lambda body, number: (status, {"error": {"message": said}}))
    address = server.url.replace("http://", "http://me:hunter2@") + "?key=q1w2e3"
    sampler = cw.sampler("openai", model="m", base_url=address, api_key_env="MY_KEY", retries=0)
    with pytest.raises((cw.UsageError, cw.InfrastructureFailure)) as raised:
        sampler.sample(requests_for(tasks[:1]))
    message = str(raised.value)
    assert "bad key" in message
    assert "@127.0.0.1" in message
    assert not any(secret in message for secret in ("SECRET", "an-odd-key", "hunter2", "q1w2e3"))


def test_a_key_for_a_host_of_a_recipe_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = default_registry().spec("sampler", "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("UNSET", raising=False)
    assert spec.reach({"model": "m"}) == ()
    assert spec.reach({"model": "m", "base_url": "http://h", "api_key_env": "UNSET"}) == ()
    (reach,) = spec.reach({"model": "m", "base_url": "http://h/v1"})
    assert (reach.kind, reach.what) == ("secret", "sends the environment variable OPENAI_API_KEY to http://h/v1")
    (reach,) = spec.reach({"model": "m", "api_key_env": "HOME"})
    assert reach.what.startswith("sends the environment variable HOME to http")


def test_a_prompt_that_does_not_fit_is_a_truncated_completion(serve: Any, tasks: list[cw.Task]) -> None:
    error = {"error": {"message": "This model's maximum context length is 8 tokens", "code": "context_length_exceeded"}}
    server = serve(lambda body, number: (400, error))
    (group,) = cw.sampler("openai", model="m", base_url=server.url).sample(requests_for(tasks[:1]), n=2)
    assert [(one.text, one.truncated, one.masked) for one in group] == [("", True, None)] * 2


@pytest.mark.parametrize("data", [b"<html>", b"[]", b'{"choices": []}'])
def test_nonsense_is_a_failure_of_the_machinery(serve: Any, tasks: list[cw.Task], data: bytes) -> None:
    server = serve(lambda body, number: (200, data))
    with pytest.raises(cw.InfrastructureFailure):
        cw.sampler("openai", model="m", base_url=server.url, retries=0).sample(requests_for(tasks[:1]))


def test_concurrency_is_bounded_and_the_key_is_sent(
    serve: Any, tasks: list[cw.Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(body: dict[str, Any], number: int) -> tuple[int, Any]:
        time.sleep(0.05)
        return 200, chat("ok")

    server = serve(answer)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    cw.sampler("openai", model="m", base_url=server.url, concurrency=2).sample(requests_for(tasks) * 2)
    assert 1 <= server.most <= 2
    sent = {value for headers in server.headers for name, value in headers.items() if name.lower() == "authorization"}
    assert sent == {"Bearer secret"}


def test_costs_are_counted(serve: Any, tasks: list[cw.Task]) -> None:
    server = serve(lambda body, number: (200, chat("ok")))
    sampler = cw.sampler("openai", model="m", base_url=server.url, price_prompt=2.0, price_completion=10.0)
    sampler.sample(requests_for(tasks))
    assert sampler.usage.cost == pytest.approx((4 * 10 * 2.0 + 4 * 5 * 10.0) / 1e6)


def test_limits_of_requests_are_kept(serve: Any, tasks: list[cw.Task]) -> None:
    """Also from one batch to the next: the limit is that of the command, and not of a connection."""
    server = serve(lambda body, number: (200, chat("ok")))
    sampler = cw.sampler("openai", model="m", base_url=server.url, requests_per_minute=600)
    began = time.monotonic()
    for task in tasks:
        sampler.sample(requests_for([task]))
    assert time.monotonic() - began >= 3 * 0.1 - 0.2  # a tenth of a second apart, of which 0.2 s may be early
    sampler.sample(requests_for(tasks) * 2)
    assert time.monotonic() - began >= 11 * 0.1 - 0.2


def test_it_works_inside_a_running_event_loop(serve: Any, tasks: list[cw.Task]) -> None:
    server = serve(lambda body, number: (200, chat("ok")))
    sampler = cw.sampler("openai", model="m", base_url=server.url)

    async def notebook() -> str:
        return str(sampler.sample(requests_for(tasks[:1]))[0][0].text)

    assert asyncio.run(notebook()) == "ok"


def test_native_tool_calls_are_read_as_hermes(serve: Any, tasks: list[cw.Task]) -> None:
    task = next(task for task in tasks if task.program and task.program.calls)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "API_RESPONSE_0"}'}}
    server = serve(lambda body, number: (200, chat("", tool_calls=[call], reasoning_content="hm")))
    sampler = cw.sampler("openai", model="m", base_url=server.url, tools="native")
    messages: tuple[cw.Message, ...] = (
        cw.Message.system("s"),
        cw.Message.user("q"),
        cw.Message.assistant('<think>t</think>\n<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'),
        cw.Message.tool("42"),
        cw.Message.user("and?"),
    )
    (((one,),)) = sampler.sample([cw.SamplingRequest(messages, task)])
    program = cw.parser("hermes").parse(one.text)
    assert isinstance(program, cw.Program)
    assert (program.thought, program.calls) == ("hm", (cw.Call(0, "f", {"a": "API_RESPONSE_0"}),))
    sent = server.asked[0]
    assert [tool["function"]["name"] for tool in sent["tools"]] == [spec.name for spec in task.tools.values()]
    assert sent["messages"][2]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert sent["messages"][3] == {
        "role": "tool", "tool_call_id": sent["messages"][2]["tool_calls"][0]["id"], "content": "42",
    }  # fmt: skip


def test_wrong_options() -> None:
    for options in ({"tools": "magic"}, {"max_new_tokens": 0}, {"concurrency": 0}, {"timeout": 0}):
        with pytest.raises(cw.UsageError):
            cw.sampler("openai", model="m", **options)
    with pytest.raises(cw.UsageError, match="'model'"):
        cw.sampler("openai")


def test_a_server_that_sends_no_message_loses_the_sample(serve: Any, tasks: list[cw.Task]) -> None:
    """What is not a call of the functions that were offered is the server's fault, never the model's."""
    custom = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}

    def answer(body: dict[str, Any], number: int) -> tuple[int, Any]:
        return 200, chat("", tool_calls=[custom]) if number == 1 else chat("fine")

    server = serve(answer)
    sampler = cw.sampler("openai", model="m", base_url=server.url, tools="native", concurrency=1)
    lost, kept = (group[0] for group in sampler.sample(requests_for(tasks[:2])))
    assert lost.masked is not None
    assert "is no message: 'tool_calls[0]' is of the type 'custom'" in lost.masked
    assert (kept.text, kept.masked) == ("fine", None)


def test_broken_arguments_reach_the_parser_as_they_were_sampled(serve: Any, tasks: list[cw.Task]) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1'}}
    server = serve(lambda body, number: (200, chat("", tool_calls=[call])))
    sampler = cw.sampler("openai", model="m", base_url=server.url, tools="native")
    (((one,),)) = sampler.sample(requests_for(tasks[:1]))
    failure = cw.parser("hermes").parse(one.text)
    assert isinstance(failure, cw.ParseFailure)
    assert (failure.code, '{"a": 1' in one.text) == ("invalid_json", True)
