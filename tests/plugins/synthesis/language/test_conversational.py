"""What makes a request one of a conversation: the same thing again, one and several, phrases that ship."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.plugins.synthesis.dialogue.talks import MATERIALS, OFFERED, blueprint, fetching, stage

import callwright as cw
from callwright.language.program import Call, Reference
from callwright.plugins import default_registry
from callwright.tools.spec import ToolSpec
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.dialogue.words import persona_of, style_of
from callwright_plugins.synthesis.language.environments import grammar_for, phrases_for
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.overrides import check_phrases
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.replies import Replies, Reply, user_options
from callwright_plugins.synthesis.language.styles import Style
from callwright_plugins.synthesis.language.values.titles import title_of
from callwright_plugins.synthesis.language.withholding import Withheld
from callwright_plugins.synthesis.language.wordlists.personas import GREETINGS, PERSONAS

REGISTRY = default_registry()


def account(place: int, key: str) -> Call:
    return Call(place, "get_account", {"account_id": key})


def test_a_thing_that_was_told_of_last_is_the_same(bank: Any) -> None:
    plan = Plan((account(0, "A00001"), Call(1, "list_transactions", {"account_id": "A00001", "limit": 3})))
    texts = [bank.grammar.render(plan, Style(names="never"), seed).text for seed in range(20)]
    assert sum("the same account" in text and text.count("A00001") == 1 for text in texts) >= 10, texts
    assert all(bank.grammar.parse(text) == plan for text in texts)


def test_the_same_thing_is_the_last_one_of_its_kind(bank: Any) -> None:
    changed = Plan((account(0, "A00001"), account(1, "A00002"), Call(2, "list_transactions", {"account_id": "A00001"})))
    for seed in range(20):
        text = bank.grammar.render(changed, Style(names="never", ellipsis=False), seed).text
        assert "the same account" not in text
        assert bank.grammar.parse(text) == changed


def test_what_a_turn_before_was_told_of_is_the_same_in_a_later_one(bank: Any) -> None:
    plan, earlier = Plan((Call(0, "list_transactions", {"account_id": "A00001"}),)), (account(0, "A00001"),)
    texts = {bank.grammar.render(plan, Style(), seed, earlier=earlier).text for seed in range(20)}
    short = [text for text in texts if "the same account" in text]
    assert short
    for text in short:
        assert bank.grammar.parse(text, earlier) == plan
        assert bank.grammar.readings(text) == (), "nothing was told of before"
        (other,) = bank.grammar.readings(text, (account(0, "A00009"),))
        assert other != plan
        assert bank.grammar.readings(text, (Call(0, "list_payees", {"customer_id": "C00001"}),)) == ()


def test_what_an_earlier_call_told_is_the_same_thing_where_it_is_told_of_again() -> None:
    grammar = grammar_for(cw.environment("food_delivery"), REGISTRY)
    basket = Reference(0, ("basket_id",))
    items = [Call(place, "add_item", {"basket_id": basket, "item_id": f"I0000{place}"}) for place in (1, 2, 3)]
    plan = Plan((Call(0, "start_basket", {"restaurant_id": "R00001", "address_id": "A00001"}), *items))
    texts = [grammar.render(plan, Style(ellipsis=False), seed).text for seed in range(12)]
    assert all(grammar.parse(text) == plan for text in texts)
    assert sum("the same basket" in text for text in texts) >= 8, texts
    assert not any("a basket that basket" in text or "a basket for that basket" in text for text in texts)
    # What a turn before has made is no call of this one, which it could refer to.
    assert "the same basket" not in grammar.render(Plan((plan.calls[0],)), Style(), 1, earlier=plan.calls).text


def test_a_member_of_a_result_is_said_without_what_it_stands_for() -> None:
    """In its folder, not in the folder its folder."""
    grammar = grammar_for(cw.environment("email"), REGISTRY)
    for place in ("folder", "label"):
        path: tuple[str | int, ...] = ("folder",) if place == "folder" else ("items", 2, "subject")
        calls = (Call(0, "get_message", {"message_id": "M00001"}),)
        plan = Plan((*calls, Call(1, "list_messages", {place: Reference(0, path)})))
        for seed in range(12):
            text = grammar.render(plan, Style(ellipsis=False), seed).text
            assert grammar.parse(text) == plan
            assert f"{place} its" not in text
            assert f"{place} the" not in text
            assert "of that result" not in text, "there are nicer ways"


def test_what_is_done_for_the_speaker_is_for_somebody_else_to_do() -> None:
    """Never "I need to show me the accounts"."""
    tools = {
        name: ToolSpec(name, "", {"type": "object", "properties": {}}) for name in ("get_time", "get_date", "open_door")
    }
    said = {"get_time": ["tell me the time"], "get_date": ["show me what day it is"], "open_door": ["open the door"]}
    grammar = Grammar(tools, phrases=said)
    own = re.compile(
        r"\b(?:i|we) (?:\w+ )?(?:need|want|have|would like|must) to (?:tell|show) me|help me (?:tell|show) me"
    )
    seen = set()
    for seed in range(300):
        calls = [Call(place, tool, {}) for place, tool in enumerate(tools)]
        alone = Call(0, list(tools)[seed % 3], {})
        text = grammar.render(Plan((alone,)), Style(), seed).text.lower()
        both = grammar.render(Plan(tuple(calls)), Style(persona=PERSONAS[seed % len(PERSONAS)]), seed).text.lower()
        for one in (text, both):
            assert not own.search(one), one
            seen |= {words for words in ("need you to", "need to", "want to", "can you") if words in one}
    assert seen == {"need you to", "need to", "want to", "can you"}, "the door may be opened by anybody"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("account_id",), "that account"),
        (("source_account_id",), "its source account"),
        (("items", 1, "account_id"), "the second of these accounts"),
        (("items", 1, "source_account_id"), "the source account of the second"),
        (("items", 1, "steps", 24, "account_id"), "the account of the 25th of the steps of the second"),
        (("holder", "account_id"), "the account of its holder"),
    ],
)
def test_the_id_of_a_thing_is_said_as_the_thing_wherever_it_stands(path: Any, words: str) -> None:
    member = {"type": "string"}
    properties = {"account_id": member, "source_account_id": member, "holder": {"type": "object"}, "steps": {}}
    item = {"type": "object", "properties": properties}
    listing = {"type": "object", "properties": {"items": {"type": "array", "items": item}, **properties}}
    taking = {"type": "object", "properties": {"account_id": {"type": "string", "description": "The id of one."}}}
    tools = {
        "list_accounts": ToolSpec("list_accounts", "", {"type": "object", "properties": {}}, result=listing),
        "close_account": ToolSpec("close_account", "", taking),
    }
    grammar = Grammar(tools, phrases={"close_account": ["close account {account_id}", "put an end to it"]})
    plan = Plan((Call(0, "list_accounts", {}), Call(1, "close_account", {"account_id": Reference(0, path)})))
    texts = [grammar.render(plan, Style(typo=False), seed).text for seed in range(20)]
    assert all(grammar.parse(text) == plan for text in texts)
    assert all(words in text.lower() for text in texts), texts
    assert sum(f"close {words}" in text.lower() for text in texts) > 10, texts
    assert not any("account the" in text or "account its" in text for text in texts), texts


def test_tools_with_names_in_camel_case_have_the_same_words() -> None:
    text = {"type": "string"}
    note = {"type": "object", "properties": {"id": text, "title": text, "ownerId": text}}
    listing = {"type": "object", "properties": {"items": {"type": "array", "items": note}}}
    one = {"type": "object", "properties": {"noteId": text}}
    tools = {
        "listNotes": ToolSpec("listNotes", "List the notes.", {"type": "object", "properties": {}}, result=listing),
        "createNote": ToolSpec("createNote", "", {"type": "object", "properties": {"title": text}}, result=note),
        "deleteNote": ToolSpec("deleteNote", "", one),
        "showOwner": ToolSpec("showOwner", "", {"type": "object", "properties": {"ownerId": text}}),
    }
    grammar = Grammar(tools)
    for first, second, path, words in (
        ("listNotes", ("deleteNote", "noteId"), ("items", 1, "id"), "the second of these notes"),
        ("createNote", ("deleteNote", "noteId"), ("id",), " that note"),
        ("createNote", ("showOwner", "ownerId"), ("ownerId",), " that owner"),
        ("listNotes", ("showOwner", "ownerId"), ("items", 0, "ownerId"), "the owner of the first of these"),
    ):
        plan = Plan((Call(0, first, {}), Call(1, second[0], {second[1]: Reference(0, path)})))
        texts = [grammar.render(plan, Style(), seed).text for seed in range(20)]
        assert all(grammar.parse(text) == plan for text in texts)
        assert sum(words in text for text in texts) > 10, texts
        assert not any("noteid" in text.lower() or "ownerid" in text.lower() for text in texts), texts


def test_camel_case_is_known_from_parameters_where_results_are_not_described() -> None:
    """Servers in Python describe a list of dictionaries as objects in ``result``, and nothing of what is in them."""
    text = {"type": "string"}
    wrapped = {"type": "object", "properties": {"result": {"type": "array", "items": {"type": "object"}}}}
    tools = {
        "searchBooks": ToolSpec("searchBooks", "", {"type": "object", "properties": {"genre": text}}, result=wrapped),
        "returnBook": ToolSpec("returnBook", "", {"type": "object", "properties": {"bookId": text}}),
    }
    grammar = Grammar(tools)
    calls = (
        Call(0, "searchBooks", {"genre": "fiction"}),
        Call(1, "returnBook", {"bookId": Reference(0, ("result", 1, "bookId"))}),
    )
    texts = [grammar.render(Plan(calls), Style(), seed).text for seed in range(20)]
    assert all(grammar.parse(text) == Plan(calls) for text in texts)
    assert not any("bookid" in text.lower() for text in texts), texts
    told = Reply("answer", facts=(("bookId", "B10"),))
    replies = Replies(grammar)
    assert (said := replies.say(told, 0)).endswith("the book id is B10."), said
    assert replies.read(said) == told


def test_what_is_told_of_something_is_no_one_of_these() -> None:
    """The accounts of a list are no customers, though each has one."""
    grammar = grammar_for(cw.environment("banking"), REGISTRY)
    calls = (
        Call(0, "list_accounts", {}),
        Call(1, "list_payees", {"customer_id": Reference(0, ("items", 3, "customer_id"))}),
    )
    texts = [grammar.render(Plan(calls), Style(), seed).text for seed in range(20)]
    assert all(grammar.parse(text) == Plan(calls) for text in texts)
    assert sum("the customer of the fourth of these" in text for text in texts) > 10, texts
    assert not any("of these customers" in text for text in texts), texts


def test_the_only_item_of_a_list_is_no_list() -> None:
    email = grammar_for(cw.environment("email"), REGISTRY)
    got = Call(0, "get_message", {"message_id": "M00001"})
    its, that = Reference(0, ("to",)), Reference(0, ("message_id",))
    for tool, name, value, words in (
        ("mark_read", "message_ids", [that], "that message alone"),
        (
            "mark_read",
            "message_ids",
            [Reference(0, ("items", 2, "message_id"))],
            "the message of the third of these alone",
        ),
        ("forward_message", "to", its, "its recipients"),
        ("forward_message", "to", [Reference(0, ("sender",))], "its sender alone"),
        ("forward_message", "to", [Reference(0, ("sender",)), "ana@example.com"], "its sender and ana@example.com"),
    ):
        plan = Plan((got, Call(1, tool, {name: value})))
        texts = [email.render(plan, Style(ellipsis=False), seed).text for seed in range(12)]
        assert all(email.parse(text) == plan for text in texts)
        assert sum(words in text for text in texts) > 8, texts
        assert not any(f"{words} alone" in text for text in texts), texts


def test_objects_are_said_without_more_brackets_than_are_needed() -> None:
    text = {"type": "string"}
    edit = {
        "type": "object",
        "properties": {"oldText": text, "newText": text, "lines": {"type": "array", "items": text}},
    }
    schema = {"type": "object", "properties": {"edits": {"type": "array", "items": edit}}}
    grammar = Grammar({"edit_file": ToolSpec("edit_file", "", schema)})
    one, other = {"oldText": "a b.", "newText": "c"}, {"oldText": "d", "lines": ["e", "f"]}
    for edits, words in (
        ([one], ' (old text: "a b.", new text: "c")'),
        ([one, other], ' (old text: "a b.", new text: "c") and (old text: "d", lines: ("e" and "f"))'),
        ([{"other": "x y"}], ' ("other": "x y")'),
    ):
        plan = Plan((Call(0, "edit_file", {"edits": edits}),))
        for seed in range(10):
            query = grammar.render(plan, Style(), seed)
            assert grammar.parse(query.text) == plan
            assert words in query.text
    twice = {"type": "object", "properties": {"oldText": text, "old_text": text}}
    told_apart = Grammar({"edit": ToolSpec("edit", "", {"type": "object", "properties": {"of": twice}})})
    plan = Plan((Call(0, "edit", {"of": {"oldText": "a", "old_text": "b"}}),))
    assert told_apart.parse(told_apart.render(plan).text) == plan


@pytest.mark.parametrize("name", TOOLS)
def test_no_thing_is_named_twice(name: str) -> None:
    """Label message M00001, not a message for message M00001."""
    environment = cw.environment(name)
    grammar = grammar_for(environment, REGISTRY)
    for tool, words in grammar.lexicon.tools.items():
        for key, hint in words.hints.items():
            if not (hint.kind and key.endswith("_id")):
                continue
            noun = hint.kind.replace("_", " ")
            plan = Plan((Call(0, tool, {key: "X00001"}),))
            twice = re.compile(rf"\b(?:an?|the) {noun} (?:for|of) (?:the )?{noun} X00001", re.IGNORECASE)
            for seed in range(6):
                text = grammar.render(plan, Style(), seed).text
                assert not twice.search(text), text


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("from_account_id", "from account"),
        ("amount_cents", "amount"),
        ("starts_at", "start time"),
        ("created_at", "creation time"),
        ("started_by", "starter"),
        ("approved_by", "approved by"),
        ("pin", "PIN"),
        ("cc", "recipients of copies"),
        ("to", "target"),
    ],
)
def test_parameters_are_called_by_nouns(key: str, title: str) -> None:
    assert title_of(key) == title


def test_several_recipients_are_recipients_and_are_told_in_the_plural() -> None:
    grammar = grammar_for(cw.environment("email"), REGISTRY)
    replies = Replies(grammar)
    titles = grammar.lexicon.tools["send_message"].titles
    assert titles["to"] == "recipients"
    held = [Withheld(0, "to", ["ana@example.com"], titles["to"])]
    said = replies.tell(held, ["send_message"])
    assert "recipients are (ana@example.com)." in said or "recipients are ana@example.com." in said
    assert replies.told(said, held, ["send_message"]) == (["ana@example.com"],)
    assert user_options(held)["tells"] == {"to": "The recipients are {to}."}


def test_one_is_not_several() -> None:
    properties = {"nights": {"type": "integer"}, "people": {"type": "integer"}}
    grammar = Grammar({"book_room": ToolSpec("book_room", "", {"type": "object", "properties": properties})})
    for nights in (1, 2):
        plan = Plan((Call(0, "book_room", {"nights": nights}),))
        texts = [grammar.render(plan, Style(), seed).text for seed in range(30)]
        words = [match[1] for text in texts if (match := re.search(r"\b(nights?)\b\.?", text.partition("ook")[2]))]
        assert set(words) == ({"night"} if nights == 1 else {"nights"}), texts
        assert all(grammar.parse(text) == plan for text in texts)


def test_a_thing_inside_of_a_result_is_said_without_its_id() -> None:
    shop = cw.environment("shopping")
    grammar = grammar_for(shop, REGISTRY)
    path = ("products", 0, "variants", 3, "variant_id")
    calls = (Call(0, "compare_products", {"product_ids": ["P00001", "P00002"]}),)
    plan = Plan((*calls, Call(1, "add_to_cart", {"variant_id": Reference(0, path)})))
    texts = [grammar.render(plan, Style(), seed).text for seed in range(12)]
    assert sum("the fourth of the variants of the first of its products" in text for text in texts) >= 6
    assert all(grammar.parse(text) == plan for text in texts)


@pytest.mark.parametrize("name", TOOLS)
def test_phrases_that_ship_fit_their_tools_and_are_used(name: str) -> None:
    environment = cw.environment(name)
    shipped = phrases_for(environment, REGISTRY)
    check_phrases(shipped, environment.tools, name)
    grammar = grammar_for(environment, REGISTRY)
    assert grammar is grammar_for(environment, REGISTRY)
    for tool in environment.tools:
        if not environment.tools[tool].hidden:
            own = grammar.lexicon.own(tool, "order")
            assert any(not one.arguments for one in own), f"{tool} cannot be asked for when nothing is told"
            if tool in shipped:
                said = {" ".join(one.parts[::2]).split(" ")[0] for one in own}
                assert said & {text.split(" ")[0] for text in shipped[tool]}, tool


def test_several_environments_as_one_have_the_phrases_of_each() -> None:
    together = REGISTRY.create("environment", "crm+email")
    found = phrases_for(together, REGISTRY)
    assert found
    assert set(found) <= set(together.tools)
    assert set(phrases_for(cw.environment("email"), REGISTRY).values()) <= set(found.values())


def test_what_is_optional_is_never_held_back(bank: Any) -> None:
    paying = {"from_account_id": "A00001", "to_account_id": "A00002", "amount_cents": 2500, "auth_token": "T1"}
    plan = Plan((Call(0, "transfer_funds", {**paying, "description": "rent", "convert": True}),))
    held: set[str] = set()
    for level in ("missing", "minimal"):
        for seed in range(10):
            query = bank.grammar.render(plan, Style(information=level, names="never"), seed)  # type: ignore[arg-type]
            held |= {one.argument for one in query.withheld}
            assert query.said.calls[0].arguments.items() >= {"description": "rent", "convert": True}.items()
    assert held == set(paying)


def test_greetings_come_once() -> None:
    greetings = {one.lower() for register in GREETINGS.values() for one in register}
    greeted = 0
    for seed in range(0, 400, 10):
        task = converse(blueprint(stage(("open_gate", {})), stage(("list_parcels", {}))), MATERIALS, seed, "t")
        assert isinstance(task, cw.Task)
        first, later = (one["query"].lower() for one in task.facts["stages"])
        greeted += any(first.startswith(one) for one in greetings)
        assert not any(later.startswith(f"{one} ") for one in greetings), later
    assert greeted
    persona = persona_of(blueprint(fetching()))
    assert any(style_of(persona, "complete", seed, first=True).greets for seed in range(20))
    assert not any(style_of(persona, "complete", seed, first=False).greets for seed in range(20))
    assert OFFERED
