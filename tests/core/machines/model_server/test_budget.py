"""A budget stops before it is passed, over all requests under way and all workers."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in_server import Faults, Reply, StandIn, chat, echo, usage

import callwright as cw
import callwright.machines.command_folder as common
from callwright.machines.model_server import Budget, BudgetSpent, Server, usage_of

PRICES = (2.0, 10.0, 0.5)
MESSAGES = [{"role": "user", "content": "What is twice two?"}]


def bill(there: StandIn, cost_of_one: float) -> float:
    """What the server would charge: for each answer that it began to send."""
    return there.answered * cost_of_one


ANSWER = chat("four", counted=usage(40, 90))
COST = (40 * 2 + 90 * 10) / 1e6


def test_it_stops_before_it_is_passed_and_says_so() -> None:
    with StandIn(lambda asked: ANSWER, latency=(0.0, 0.02)) as there:
        server = Server(model="m", base_url=there.url, prices=PRICES, max_cost=0.05, concurrency=16)
        found = server.all([lambda one: one.chat(MESSAGES, max_tokens=100)] * 300)
        stopped = [one for one in found if isinstance(one, BudgetSpent)]
        assert len(stopped) + server.usage.requests == 300
        assert bill(there, COST) == pytest.approx(server.usage.cost)
        # No more than it may cost at the very most is left: 100 tokens, and a prompt bounded by its bytes.
        worst = (700 * 2 + 100 * 10) / 1e6
        assert 0.05 - worst < server.usage.cost <= 0.05
        assert f"the budget of 0.05 is spent: {server.usage.cost:.6g} so far" in str(stopped[0])
        assert "max_cost" in str(stopped[0])
        assert issubclass(BudgetSpent, cw.CallwrightError)
        # Nothing more is sent afterwards.
        sent = len(there.asked)
        assert all(isinstance(one, BudgetSpent) for one in server.all([lambda one: one.chat([], max_tokens=1)] * 3))
        assert len(there.asked) == sent


def test_it_holds_in_all_worker_processes_together(tmp_path: Path) -> None:
    program = tmp_path / "worker.py"
    program.write_text(
        "import sys\n"
        "from callwright.machines.model_server import Server\n"
        "server = Server(model='m', base_url=sys.argv[1], prices=(2.0, 10.0, 0.5), max_cost=0.08, concurrency=8)\n"
        "body = {'max_tokens': 100}\n"
        "found = server.all([lambda one: one.chat([{'role': 'user', 'content': 'x'}], **body)] * 100)\n"
        "print(server.usage.cost)\n"
    )
    with StandIn(lambda asked: ANSWER, latency=0.01) as there:
        Server(model="m", base_url=there.url, prices=PRICES, max_cost=0.08)  # as the command itself makes it
        workers = [
            subprocess.Popen([sys.executable, str(program), there.url], stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        costs = [float(worker.communicate()[0]) for worker in workers]
        assert bill(there, COST) == pytest.approx(sum(costs))
        assert 0.08 - (700 * 2 + 100 * 10) / 1e6 < bill(there, COST) <= 0.08


def test_what_may_have_been_paid_for_is_counted() -> None:
    """Answers that were cut on the way, and those without usage, count at the most that they may have cost."""
    for faults, script in (
        (Faults(0.5, kinds=["half"], seed=4, retry_after=0), lambda asked: ANSWER),
        (None, lambda asked: {key: value for key, value in ANSWER.items() if key != "usage"}),
    ):
        with StandIn(script, faults=faults) as there:
            server = Server(model="m", base_url=there.url, prices=PRICES, max_cost=0.03, retries=0, most_failures=99)
            server.all([lambda one: one.chat(MESSAGES, max_tokens=100)] * 60)
            assert len(there.asked) * COST <= 0.03
            assert len(there.asked) >= 10


def test_refusals_and_server_errors_cost_nothing() -> None:
    with StandIn(lambda asked: Reply({"error": {"message": "x"}}, 400)) as there:
        server = Server(model="m", base_url=there.url, prices=PRICES, max_cost=0.005)
        found = server.all([lambda one: one.chat(MESSAGES, max_tokens=100)] * 50)
        assert not any(isinstance(one, BudgetSpent) for one in found)
        assert server.budget is not None
        assert server.budget.spent == 0
        assert len(there.asked) == 50


def test_a_request_that_nothing_bounds_is_refused() -> None:
    with StandIn() as there:
        server = Server(model="m", base_url=there.url, prices=PRICES, max_cost=1.0)
        (found,) = server.all([lambda one: one.chat(MESSAGES)])
        assert isinstance(found, cw.UsageError)
        assert "a limit of tokens" in str(found)
        assert there.asked == []
    with pytest.raises(cw.UsageError, match="max_cost needs prices"):
        Server(model="m", max_cost=1.0)


def test_a_worker_that_was_killed_keeps_its_reservations_and_nobody_waits_for_ever() -> None:
    budget = Budget("k", 1.0, patience=0.3)

    async def run() -> None:
        await budget.reserve(0.9)  # and is never settled
        await asyncio.wait_for(budget.reserve(0.2), 5)

    with pytest.raises(BudgetSpent, match=r"is spent: 0\.9 so far"):
        asyncio.run(run())


def test_each_budget_of_a_command_is_its_own() -> None:
    first = Budget("k", 1.0, patience=9)
    asyncio.run(first.reserve(0.7))
    first.settle(0.7, 0.6)
    second = Budget("k", 1.0, patience=9)
    assert (first.spent, second.spent) == (0.6, 0.0)
    common._named_here.clear()  # as in a worker
    assert Budget("k", 1.0, patience=9).spent == 0.0
    asyncio.run(second.reserve(0.5))
    second.settle(0.5, 0.5)
    assert Budget("k", 1.0, patience=9).spent == 0.5


def test_a_server_can_be_sent_to_another_process() -> None:
    server = pickle.loads(pickle.dumps(Server(model="m", prices=PRICES, max_cost=1.0)))
    assert server.budget is not None
    asyncio.run(server.budget.reserve(0.5))
    server.budget.settle(0.5, 0.25)
    assert server.budget.spent == 0.25


def test_streams_are_paid_for_too() -> None:
    async def run(server: Server) -> None:
        from callwright.machines.model_server import Connection

        async with Connection(server) as connection:
            async for _ in connection.stream_chat(MESSAGES, max_tokens=100):
                pass

    with StandIn(lambda asked: ANSWER) as there:
        server = Server(model="m", base_url=there.url, prices=PRICES, max_cost=1.0)
        asyncio.run(run(server))
        assert server.budget is not None
        assert server.budget.spent == pytest.approx(COST) == pytest.approx(server.usage.cost)


def test_the_worst_case_holds_for_what_was_really_counted() -> None:
    """The stand-in counts a token for every byte of every text, which no tokenizer passes."""

    def script(asked: object) -> object:
        body = asked.body  # type: ignore[attr-defined]
        count = len(json.dumps(body["messages"], ensure_ascii=False).encode())
        return {**echo(asked), "usage": usage(count, body["max_tokens"])}  # type: ignore[arg-type]

    with StandIn(script) as there:  # type: ignore[arg-type]
        server = Server(model="m", base_url=there.url, prices=PRICES, max_cost=0.1, concurrency=4)
        texts = ["plain", "ünïcödé " * 40, "日本語" * 60, "🙂" * 30, ""] * 20
        found = server.all([lambda one, t=t: one.chat([{"role": "user", "content": t}], max_tokens=90) for t in texts])
        charged = sum(usage_of(one, PRICES).cost for one in found if isinstance(one, dict))
        assert 0.09 < charged <= 0.1
