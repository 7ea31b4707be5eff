"""Replies of the assistant and answers of the user say what they are given, and it is read back."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError
from callwright.language.program import Call
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.replies import Replies, Reply, Several, stated, user_options
from callwright_plugins.synthesis.language.styles import Style


@pytest.mark.parametrize("name", TOOLS)
def test_an_answer_states_a_live_result_and_is_read_back(name: str, live: Any) -> None:
    world = live(name)
    replies = Replies(world.grammar)
    session = world.environment.open("", 1)
    told = 0
    for tool, spec in world.tools.items():
        if not spec.parameters.get("required") and spec.read_only:
            outcome = session.call(tool, {})
            facts = stated(outcome.value)
            if outcome.executed and facts:
                reply = Reply("answer", facts)
                assert replies.read(replies.say(reply, told)) == reply
                told += 1
    assert told


GOODS = [{"id": f"G{number}", "name": name, "stock": 3} for number, name in enumerate(("kettle", "lamp", "tent"))]


@pytest.mark.parametrize(
    ("value", "facts", "text"),
    [
        (GOODS, (("name", Several(("kettle", "lamp", "tent"))),), 'by name they are "kettle", "lamp" and "tent".'),
        ({"total": 9, "items": GOODS * 3}, (("total", 9),), "the total is 9."),  # five of which two are the same
        (
            {"total": 6, "items": [{"account_id": f"A0000{n}", "kind": "checking"} for n in range(6)]},
            (
                ("total", 6),
                ("account_id", Several(("A00000", "A00001", "A00002", "A00003", "A00004"), whole=False)),
            ),
            "the total is 6 and by account id the first are A00000, A00001, A00002, A00003 and A00004.",
        ),
        (
            {"items": GOODS[:1], "attempts": 2, "note": "", "next_cursor": "7"},
            (("attempts", 2), ("id", "G0"), ("name", "kettle"), ("stock", 3)),
            'the attempts are 2, the id is G0, the name is "kettle" and the stock is 3.',
        ),
        (
            ["Rome", "Oslo"],
            (("results", Several(("Rome", "Oslo"), of_each=False)),),
            'the results are "Rome" and "Oslo".',
        ),
        (
            {"cities": ["Rome", "Oslo"], "to": ["Ada", "Lin"]},
            (("cities", Several(("Rome", "Oslo"), of_each=False)),),
            'the cities are "Rome" and "Oslo".',
        ),
        (["Rome"], (("result", "Rome"),), 'the result is "Rome".'),
        ({"big_cities": ["Rome"], "to": ["Ada"]}, (("big_city", "Rome"),), 'the big city is "Rome".'),
        ([], (), ""),
        ({"result": 3, "rest_is_left": 4, "lineCount": 5, "balance": 6, "line2": 7, "miles": 2.5}, None, ""),
    ],
)
def test_of_a_result_is_told_what_it_lists(
    value: Any, facts: tuple[tuple[str, Any], ...] | None, text: str, bank: Any
) -> None:
    facts = tuple(value.items()) if facts is None else facts
    assert stated(value) == facts
    replies, reply = Replies(bank.grammar), Reply("answer", facts)
    said = replies.say(reply)
    assert said.endswith(text)
    assert replies.read(said) == reply


def test_several_things_are_asked_for_in_the_plural(bank: Any) -> None:
    replies, reply = Replies(bank.grammar), Reply("question", titles=("times",))
    texts = {replies.say(reply, seed) for seed in range(20)}
    assert "What are the times?" in texts
    assert not any(" is " in text for text in texts)
    assert all(replies.read(text) == reply for text in texts)


def test_an_answer_with_another_value_is_another_answer(bank: Any) -> None:
    replies = Replies(bank.grammar)
    right = Reply("answer", (("account_id", "A00001"), ("balance_cents", 2500), ("status", "active")))
    text = replies.say(right)
    assert "A00001" in text
    assert replies.read(text.replace("A00001", "A00002")) != right
    assert replies.read(text.replace("25.00", "25.01")) == Reply(
        "answer", (*right.facts[:1], ("balance_cents", 2501), right.facts[2])
    )


@pytest.mark.parametrize(
    "reply",
    [
        Reply("answer"),
        Reply("refusal"),
        Reply("failure", code="NOT_FOUND", reason='there is no account "A9"'),
        Reply("question", titles=("amount",)),
        Reply("question", titles=("from account", "to account", "amount")),
    ],
)
def test_every_kind_of_reply_is_read_back(reply: Reply, bank: Any) -> None:
    replies = Replies(bank.grammar)
    texts = {replies.say(reply, seed) for seed in range(20)}
    assert len(texts) >= 3
    assert all(replies.read(text) == reply for text in texts)


def test_a_question_for_no_parameter_is_refused(bank: Any) -> None:
    with pytest.raises(DataError, match="by their titles"):
        Replies(bank.grammar).say(Reply("question", titles=("colour of the sky",)))


@pytest.mark.parametrize(
    "text", ["", "Done", "What is the?", "Here you are: the", '"', "What is the amount", "x" * 5000]
)
def test_another_text_is_no_reply(text: str, bank: Any) -> None:
    assert Replies(bank.grammar).read(text) is None


def test_what_is_told_is_read_back_as_the_values_withheld(live: Any) -> None:
    random = Random("told")
    told = 0
    for name in TOOLS:
        world = live(name)
        replies = Replies(world.grammar)
        for seed in range(8):
            query = world.grammar.render(world.plan(random, 2), Style(information="minimal"), seed)
            tools = [call.tool for call in query.plan.calls]
            if query.withheld:
                text = replies.tell(query.withheld, tools, seed)
                values = replies.told(text, query.withheld, tools)
                assert repr(values) == repr(tuple(one.value for one in query.withheld)), text
                told += len(query.withheld)
    assert told >= 100


def test_a_scripted_user_tells_what_was_withheld_when_asked(bank: Any) -> None:
    arguments = {"auth_token": "T1", "account_id": "A00001", "amount_cents": 2500}
    plan = Plan((Call(0, "withdraw_cash", arguments),))
    query = bank.grammar.render(plan, Style(information="minimal", names="never"))
    options = user_options(query.withheld)
    assert set(options["knows"]) == {"account_id", "amount_cents"}
    asked = Replies(bank.grammar).say(Reply("question", titles=tuple(one.title for one in query.withheld)))
    assert all(word in asked.lower() for words in options["asked"].values() for word in words)
    assert cw.UserSpec("scripted", options).to_json()["options"] == options
