"""What the gateway adds to a request, and whether many sessions at a time stay apart and small.

    python benchmarks/gateway.py                    # 200 requests with the gateway and without, 500 sessions
    python benchmarks/gateway.py --minutes 10       # 500 sessions at a time, again and again: memory

Both sides are answered by the same scripted engine in this process, over loopback and by the same client; without the
gateway by a bare server that keeps nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import openai
import uvicorn

sys.path.append(str(Path(__file__).parents[1] / "tests" / "core" / "episodes" / "gateway" / "support"))

from scripted_engine import TASK, TOOLS, ScriptedEngine, block

import callwright as cw
from callwright.episodes import Gateway

HI = [{"role": "user", "content": "hi"}]


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """A server that answers with the same text and does nothing else."""
    while (await receive()).get("more_body"):
        pass
    message = {"role": "assistant", "content": "Done, as you wished."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def timed(client: Any) -> float:
    begun = time.perf_counter()
    await client.chat.completions.create(model="m", messages=HI, tools=TOOLS)
    return (time.perf_counter() - begun) * 1000


async def added(requests: int) -> tuple[float, float]:
    """Median milliseconds of a request with the gateway and without, taken in turn."""
    server = uvicorn.Server(uvicorn.Config(bare, port=0, log_config=None, access_log=False, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    engine = ScriptedEngine(lambda context, number: "Done, as you wished.")
    behind, alone = [], []
    direct = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k")
    async with Gateway(engine).serve() as gateway, direct:
        for number in range(requests + 10):
            session = gateway.open(TASK)
            async with openai.AsyncOpenAI(base_url=session.url, api_key="k") as client:
                await client.models.list()  # both connections are open before anything is measured
                one, other = await timed(client), await timed(direct)
            if number >= 10:
                behind.append(one)
                alone.append(other)
            await session.finish()
    server.should_exit = True
    await serving
    return statistics.median(behind), statistics.median(alone)


async def one_session(gateway: Gateway, client: Any, number: int) -> bool:
    """Two turns with a call; whether everything in it is the session's own."""
    session = gateway.open(TASK, seed=number)
    own = client.with_options(base_url=session.url)
    messages: list[Any] = [{"role": "user", "content": f"I am {number}."}]
    said = await own.chat.completions.create(model="m", messages=messages, tools=TOOLS)
    (call,) = said.choices[0].message.tool_calls
    outcome = await session.log.acall("enter", json.loads(call.function.arguments), call_id=call.id)
    messages += [
        said.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": cw.environments.tell(outcome)},
    ]
    end = await own.chat.completions.create(model="m", messages=messages, tools=TOOLS)
    made = await session.finish()
    return bool(
        end.choices[0].message.content == f"done {number}"
        and not made.findings
        and len(made.branches) == 1
        and outcome.value == 1
    )


def answer(context: str, number: int) -> str:
    name = context.split("I am ")[1].split(".")[0]
    return block(name) if number == 0 else f"done {name}"


async def many(sessions: int, minutes: float) -> None:
    """Sessions at a time, once or for some minutes."""
    begun, rounds, right = time.perf_counter(), 0, 0
    client = openai.AsyncOpenAI(base_url="http://localhost", api_key="k", timeout=120)
    engine = ScriptedEngine(answer)
    async with Gateway(engine).serve() as gateway, client:
        while not rounds or time.perf_counter() - begun < minutes * 60:
            first = rounds * sessions
            found = await asyncio.gather(*(one_session(gateway, client, first + number) for number in range(sessions)))
            right += sum(found)
            rounds += 1
            engine.asked.clear()  # which the engine of the tests keeps
            if rounds in (1, 2) or rounds % 10 == 0:
                took = time.perf_counter() - begun
                print(f"{rounds * sessions:>8,} sessions, {right:,} right, {memory():.0f} MB, {took:.0f} s")
    wrong = rounds * sessions - right
    print(f"{sessions} sessions at a time: {wrong} of {rounds * sessions:,} mixed up or with a finding")


def memory() -> float:
    """Resident megabytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=0.0)
    given = parser.parse_args()
    behind, alone = asyncio.run(added(given.requests))
    print(f"median of {given.requests} requests: {behind:.2f} ms behind the gateway, {alone:.2f} ms without")
    print(f"added: {behind - alone:.2f} ms")
    asyncio.run(many(given.sessions, given.minutes))


if __name__ == "__main__":
    main()
