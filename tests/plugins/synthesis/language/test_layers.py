"""Frames, names, information, corrections, slips and personas: each is there, and each is read back."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from attrs import evolve

from callwright.errors import DataError, UsageError
from callwright.language.program import Call, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.language.grammar import Grammar, Unclear
from callwright_plugins.synthesis.language.overrides import check_phrases, read_phrases
from callwright_plugins.synthesis.language.plan import Condition, Plan
from callwright_plugins.synthesis.language.styles import Style, drawn
from callwright_plugins.synthesis.language.values.names import Names, names_in
from callwright_plugins.synthesis.language.wordlists.frames import FRAMES, fitting
from callwright_plugins.synthesis.language.wordlists.personas import PERSONAS
from callwright_plugins.synthesis.language.wordlists.typos import mended, slips

PAYING = {"from_account_id": "A00001", "to_account_id": "A00002", "amount_cents": 2500, "auth_token": "T1"}
PLAN = Plan((Call(0, "transfer_funds", PAYING),))
PERSONA = {one.name: one for one in PERSONAS}


def test_there_are_two_hundred_frames_and_none_twice() -> None:
    assert len({(frame.text, frame.mood) for frame in FRAMES}) == len(FRAMES)
    assert len(FRAMES) >= 200
    assert min(len(fitting(mood, register)) for mood in ("order", "thing") for register in ("formal", "casual")) >= 50


def test_no_frame_makes_more_than_two_hundredths_of_a_mixture(live: Any) -> None:
    random = Random("mixture")
    first: Counter[str] = Counter()
    for name in TOOLS:
        world = live(name)
        for seed in range(100):
            first[world.grammar.render(world.plan(random, 1), drawn(random), seed).frames[0]] += 1
    assert len(first) >= 200
    assert max(first.values()) <= 0.02 * sum(first.values()), first.most_common(3)


def test_a_query_depends_on_plan_style_and_seed_alone() -> None:
    times = {"limit": {"type": "integer"}, "since": {"type": "string"}, "loud": {"type": "boolean"}}
    tools = {
        "list_bells": ToolSpec(
            "list_bells", "List the bells, the oldest first.", {"type": "object", "properties": times}
        ),
        "ring_bell": ToolSpec(
            "ring_bell", "A bell.", {"type": "object", "properties": {"bell_id": {"type": "string"}}}
        ),
    }
    grammar, random, said = Grammar(tools), Random("sample"), []
    for seed in range(40):
        first = Call(0, "list_bells", {"limit": seed, "since": "2026-03-05", "loud": seed % 2 == 0})
        second = Call(1, "ring_bell", {"bell_id": Reference(0, ("items", 0, "id"))})
        said.append(grammar.render(Plan((first, second)), drawn(random), seed).text)
    # Word lists are stable over versions. Another digest is another mixture: say so in the changelog.
    assert sha256("\n".join(said).encode()).hexdigest()[:16] == "47ce60eea59de9e8"


def test_things_are_called_by_names_that_are_theirs_alone(bank: Any) -> None:
    names = Names({"A00001": "Main", "A00002": "rainy days", "A00003": "Twin", "A00004": "Twin"}, {"A00001": "account"})
    grammar = Grammar(bank.environment.tools, names)
    texts = [grammar.render(PLAN, Style(), seed).text for seed in range(20)]
    assert any("Main" in text and "A00001" not in text for text in texts)
    assert any('"rainy days"' in text for text in texts)
    for text in texts:
        assert grammar.parse(text) == PLAN
    twins = Plan((Call(0, "get_account", {"account_id": "A00003"}),))
    assert all("Twin" not in grammar.render(twins, Style(), seed).text for seed in range(20))


def test_a_name_that_two_share_is_no_plan_but_two(bank: Any) -> None:
    grammar = Grammar(bank.environment.tools, Names({"A00003": "Twin", "A00004": "Twin", "C1": "Twin"}, {"C1": "card"}))
    plan = Plan((Call(0, "get_account", {"account_id": "A00003"}),))
    text = grammar.render(plan, Style(names="always")).text
    assert "Twin" in text
    with pytest.raises(Unclear, match="account_id is") as raised:
        grammar.parse(text)
    assert plan in raised.value.plans


def test_an_id_that_is_spelt_as_the_name_of_another_is_said_exactly(bank: Any) -> None:
    grammar = Grammar(bank.environment.tools, Names({"A00001": "Main"}))
    plan = Plan((Call(0, "get_account", {"account_id": "Main"}),))
    text = grammar.render(plan).text
    assert 'exactly "Main"' in text
    assert grammar.parse(text) == plan


def test_names_are_found_in_results() -> None:
    page = {
        "items": [
            {"account_id": "A1", "nickname": "Main", "owner": {"customer_id": "C1", "first": "Ana", "last": "Berg"}}
        ]
    }
    names = names_in([page, [{"id": "X1", "title": "A day out"}, {"note": "nothing"}]])
    assert names.of == {"A1": "Main", "C1": "Ana Berg", "X1": "A day out"}
    assert names.kinds == {"A1": "account", "C1": "customer"}


@pytest.mark.parametrize("information", ["missing", "minimal"])
def test_what_is_withheld_is_not_said_and_handed_out(information: Any, bank: Any) -> None:
    for seed in range(10):
        query = bank.grammar.render(PLAN, Style(information=information, names="never"), seed)
        assert query.withheld
        assert bank.grammar.parse(query.text) == query.said
        told = {**query.said.calls[0].arguments, **{one.argument: one.value for one in query.withheld}}
        assert told == PAYING
        assert len(query.withheld) == (1 if information == "missing" else 3)
        assert all(str(one.value) not in query.text for one in query.withheld if isinstance(one.value, str))


def test_of_two_values_by_one_title_one_is_withheld(bank: Any) -> None:
    """ "The account is A00001. The account is A00002." would not say which is which."""
    accounts = [Call(at, "get_account", {"account_id": f"A0000{at + 1}"}) for at in range(4)]
    for seed in range(10):
        query = bank.grammar.render(Plan(tuple(accounts)), Style(information="minimal", names="never"), seed)
        assert [one.value for one in query.withheld] == ["A00002"]
        assert "A00003" in query.text


def test_references_are_never_withheld(bank: Any) -> None:
    first = Call(0, "list_accounts", {"customer_id": "C00001"})
    plan = Plan((first, Call(1, "get_account", {"account_id": Reference(0, ("items", 0, "account_id"))})))
    for seed in range(10):
        query = bank.grammar.render(plan, Style(information="minimal"), seed)
        assert query.said.calls[1] == plan.calls[1]


def test_the_id_of_a_thing_in_a_result_is_said_as_the_thing(bank: Any) -> None:
    first = Call(0, "list_accounts", {"customer_id": "C00001"})
    for path, words in (
        (("items", 1, "account_id"), "the second of these accounts"),
        (("account_id",), "that account"),
        (("items", 1, "id"), 'the "id" of the second'),
    ):
        plan = Plan((first, Call(1, "get_account", {"account_id": Reference(0, path)})))
        texts = [bank.grammar.render(plan, Style(names="never"), seed).text for seed in range(12)]
        assert sum(words in text for text in texts) >= 6, texts
        assert all(bank.grammar.parse(text) == plan for text in texts)
    other = Call(2, "get_account", {"account_id": Reference(0, ("items", 0, "account_id"))})
    plan = Plan((first, Call(1, "get_account", {"account_id": "A00009"}), other))
    texts = [bank.grammar.render(plan, Style(names="never", ellipsis=False), seed).text for seed in range(12)]
    assert any("the first of those earlier accounts" in text for text in texts)
    assert all(bank.grammar.parse(text) == plan for text in texts)
    plan = Plan((*plan.calls[:2], Call(2, "get_account", {"account_id": "A00007"}), evolve(other, id=3)))
    texts = [bank.grammar.render(plan, Style(names="never", ellipsis=False), seed).text for seed in range(12)]
    assert any("the first account of the first result" in text for text in texts)
    assert all(bank.grammar.parse(text) == plan for text in texts)


def test_a_correction_says_a_wrong_value_and_takes_it_back(bank: Any) -> None:
    corrected = [bank.grammar.render(PLAN, Style(correction=True, names="never"), seed) for seed in range(20)]
    told = [query.text for query in corrected if " instead of " in query.text]
    assert len(told) >= 15
    for text in told:
        assert text.count("25.00") == 1
        assert bank.grammar.parse(text) == PLAN
    changed = told[0].replace("25.00", "26.00")
    assert bank.grammar.parse(changed).calls[0].arguments["amount_cents"] == 2600


def test_a_repeated_request_leaves_out_what_stays(bank: Any) -> None:
    again = Call(1, "transfer_funds", {**PAYING, "amount_cents": 300})
    plan = Plan((PLAN.calls[0], again))
    texts = [bank.grammar.render(plan, Style(names="never"), seed).text for seed in range(10)]
    assert all(text.count("A00001") == 1 and "3.00" in text for text in texts)
    assert all(bank.grammar.parse(text) == plan for text in texts)


def test_slips_are_in_words_of_the_grammar_and_mend(bank: Any) -> None:
    arguments = {**PAYING, "description": "transfer the amount with the please from account"}
    plan = Plan((Call(0, "transfer_funds", arguments),))
    style, plain = Style(typo=True, names="never"), Style(names="never")
    changed = 0
    for seed in range(30):
        text = bank.grammar.render(plan, style, seed).text
        assert arguments["description"] in text
        assert bank.grammar.parse(text) == plan
        changed += text != bank.grammar.render(plan, plain, seed).text
    assert changed >= 25


def test_a_slip_that_two_words_share_mends_to_neither() -> None:
    mends = mended(["form", "from", "farm", "please"])
    assert "from" not in mends
    assert mends["plaese"] == "please"
    assert all(slip not in ("form", "from", "farm") for slip in mends)
    assert slips("at") == ()


def test_personas_have_their_habits(bank: Any) -> None:
    texts = {
        name: [bank.grammar.render(PLAN, drawn_as(name, seed), seed).text for seed in range(12)]
        for name in ("tired student", "careful clerk")
    }
    assert all(text[0].islower() for text in texts["tired student"])
    assert all(text[0].isupper() for text in texts["careful clerk"])


def drawn_as(name: str, seed: int) -> Style:
    return Style(PERSONA[name], greets=seed % 2 == 0, thanks=True, background=seed % 3 == 0)


def test_days_are_said_in_words_and_read_back() -> None:
    properties = {"day": {"type": "string"}, "moment": {"type": "string"}, "clock": {"type": "string"}}
    grammar = Grammar({"run": ToolSpec("run", "", {"type": "object", "properties": properties})})
    arguments = {"day": "2028-02-29", "moment": "2026-03-05T09:00:00Z", "clock": "21:30"}
    plan = Plan((Call(0, "run", arguments),))
    texts = {grammar.render(plan, Style(), seed).text for seed in range(40)}
    assert any("29 February 2028" in text for text in texts)
    assert any("29th of February 2028" in text for text in texts)
    assert any("9:30 pm" in text for text in texts)
    assert all(grammar.parse(text) == plan for text in texts)
    wrong = next(text for text in texts if "Tuesday, 29 February 2028" in text)
    assert not grammar.readings(wrong.replace("Tuesday", "Monday"))


def test_a_condition_is_part_of_the_plan(bank: Any) -> None:
    calls = (Call(0, "get_account", {"account_id": "A00001"}), Call(1, "transfer_funds", PAYING))
    plan = Plan(calls, (Condition(1, Reference(0, ("status",)), "is", "active"),))
    text = bank.grammar.render(plan, Style(names="never")).text
    assert "only if its status is" in text or "only if the status of that result is" in text
    assert bank.grammar.parse(text) == plan
    assert bank.grammar.parse(text) != Plan(calls)


def test_phrases_of_an_environment_take_the_place_of_made_ones(bank: Any) -> None:
    given = read_phrases(
        'transfer_funds = ["wire {amount_cents} from {from_account_id} to {to_account_id}"]', "phrases.toml"
    )
    check_phrases(given, bank.tools, "phrases.toml")
    grammar = Grammar(bank.environment.tools, phrases=given)
    text = grammar.render(PLAN, Style(names="never")).text
    assert "ire 25.00 from A00001 to A00002" in text
    assert grammar.parse(text) == PLAN


@pytest.mark.parametrize(
    ("text", "words"),
    [("a = [", "no TOML"), ("a = 3", "a list of phrases"), ("a = ['']", "a list of phrases")],
)
def test_a_file_of_phrases_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_phrases(text, "phrases.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [("lend = ['lend']", "none of the tools"), ("get_account = ['show {acount_id}']", "'acount_id'")],
)
def test_a_phrase_of_no_tool_or_parameter_is_refused(text: str, words: str, bank: Any) -> None:
    with pytest.raises(DataError, match=words):
        check_phrases(read_phrases(text, "phrases.toml"), bank.tools, "phrases.toml")


def test_two_tools_of_one_name_in_words_are_told_apart_by_readers() -> None:
    tools = {name: ToolSpec(name, "Get the account.") for name in ("get_account", "get-account")}
    grammar = Grammar(tools)
    with pytest.raises(DataError, match="no words say just this"):
        grammar.render(Plan((Call(0, "get_account"),)))
    assert len(grammar.readings("Please get account.")) == 2


def test_an_unknown_level_of_information_is_refused() -> None:
    with pytest.raises(UsageError, match="no level of information"):
        Style(information="most")  # type: ignore[arg-type]
