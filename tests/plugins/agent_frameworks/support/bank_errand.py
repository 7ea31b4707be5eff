"""An errand at the shipped bank: five turns, three tools, a pair of calls of which the order shows, a failure."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import callwright as cw
from callwright.environments.knowledge.asking import knowledge_of
from callwright.language.messages import ToolCall

SCENARIO, SEED = "typical", 7
ANSWER = "The cash is in the account."


def errand() -> cw.Task:
    """A task with the three tools; its answer is what the deposit returns."""
    bank = cw.environment("banking")
    names = ("find_customer", "verify_identity", "deposit_cash")
    return cw.Task(
        "errand",
        "Please pay 20 euros in.",
        {name: bank.tools[name] for name in names},
        cw.Answer(),
        bank,
        scenario=SCENARIO,
        seed=SEED,
    )


@cache
def turns() -> list[list[ToolCall]]:
    """The calls of each turn, as a model would write them; ids are unique over the errand."""
    task = errand()
    session: Any = task.environment.open(SCENARIO, SEED)
    found = [_verified(session, customer["customer_id"]) for customer in _customers(session)]
    (one, account), (two, _) = [pair for pair in found if pair][:2]
    fresh = cw.Log(task)
    fresh.call("find_customer", {"query": ""})
    tokens = [fresh.call("verify_identity", arguments).value["auth_token"] for arguments in (one, two)]
    pay = {"auth_token": tokens[0], "account_id": account, "amount_cents": 2000, "currency": "EUR"}
    return [
        [_call("a", "find_customer", {"query": ""})],
        [_call("b", "verify_identity", one), _call("c", "verify_identity", two)],
        [_call("d", "deposit_cash", {**pay, "account_id": "A99999"})],
        [_call("e", "deposit_cash", pay)],
    ]


def _customers(session: Any) -> list[dict[str, Any]]:
    return list(session.call("find_customer", {"query": ""}).value["items"])


def _verified(session: Any, customer: str) -> tuple[dict[str, Any], str] | None:
    """What verifies a customer, and an account of it."""
    known = knowledge_of(session, customer)
    accounts = session.call("list_accounts", {"customer_id": customer}).value["items"]
    proof = {"customer_id": customer, "pin": known.get("pin", ""), "otp": known.get("otp", "")}
    proof = {key: value for key, value in proof.items() if value}
    open_ones = [one["account_id"] for one in accounts if one["status"] == "active"]
    return (proof, open_ones[0]) if open_ones and session.call("verify_identity", proof).executed else None


def _call(call_id: str, name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(f"call_{call_id}", name, json.dumps(arguments))


def expected() -> cw.Attempt:
    """The errand as the log of an own loop has it."""
    log = cw.Log(errand())
    messages = [cw.Message.user(log.task.query)]
    for calls in turns():
        messages.append(cw.Message.assistant(tool_calls=calls))
        for call in calls:
            outcome = log.call(call.name, json.loads(call.arguments), call_id=call.id, turn=calls[0].id)
            messages.append(cw.Message.tool(cw.environments.tell(outcome), call.id))
    messages.append(cw.Message.assistant(ANSWER))
    log.close()
    return log.episode(messages)


def same(made: cw.Attempt, wanted: cw.Attempt) -> None:
    """Both have the same calls, outcomes and states, turn by turn, and the same rewards."""
    assert [[call.tool for call in turn.calls] for turn in made.turns] == [
        [call.tool for call in turn.calls] for turn in wanted.turns
    ]
    for one, other in zip(made.turns, wanted.turns, strict=True):
        assert (one.trace is None) == (other.trace is None)
        if one.trace is not None and other.trace is not None:
            assert one.trace.records == other.trace.records
            assert one.trace.order == other.trace.order
    assert made.masked is None
    for name in ("tier", "tier-no-execution", "simple"):
        reward = cw.reward(name)
        assert reward.score_attempt(made).total == reward.score_attempt(wanted).total
