"""What is said is read back exactly: every tool, hard values, chains, and nothing else in its place."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.errors import DataError
from callwright.language.program import PREFIX, Call, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.language.grammar import Grammar, Unclear
from callwright_plugins.synthesis.language.plan import Condition, Plan
from callwright_plugins.synthesis.language.reading import STEPS, Reader
from callwright_plugins.synthesis.language.styles import Style, drawn

ENVIRONMENTS = (*TOOLS, "depthbench-v1")


def keys(grammar: Grammar, text: str) -> list[str]:
    return [plan.key for plan in grammar.readings(text)]


def test_the_tools_are_all_there(live: Any) -> None:
    counts = {name: len(live(name).tools) for name in ENVIRONMENTS}
    assert {name: counts[name] for name in TOOLS} == dict(TOOLS)
    assert sum(counts.values()) == 343 + 163


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_call_of_every_tool_is_read_back(name: str, live: Any) -> None:
    world = live(name)
    random = Random(f"calls/{name}")
    for tool in world.tools:
        for seed in range(3):
            plan = Plan((Call(0, tool, world.arguments(tool, random)),))
            query = world.grammar.render(plan, drawn(random), seed)
            assert keys(world.grammar, query.text) == [query.said.key], query.text
            if not query.withheld:
                assert query.said.key == plan.key


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_chains_with_references_and_conditions_are_read_back(name: str, live: Any) -> None:
    world = live(name)
    random = Random(f"chains/{name}")
    attempts = 0
    for seed in range(40):
        plan = world.plan(random)
        query = world.grammar.render(plan, drawn(random), seed)
        assert keys(world.grammar, query.text) == [query.said.key], query.text
        attempts += query.attempts
    assert attempts <= 4  # the first wording is nearly always exact: the grammar does it, not the check behind it


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30).filter(lambda text: not text.startswith(PREFIX)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
LISTS = {"type": "array", "items": {"type": "string"}}
MEMBERS = {"street": {"type": "string"}, "zip_code": {"type": "integer"}, "tags": LISTS}
STORE = Grammar(
    {
        "store": ToolSpec(
            "store",
            "Store anything.",
            {
                "type": "object",
                "properties": {
                    "anything": {},
                    "text": {"type": "string"},
                    "number": {"type": ["number", "null"]},
                    "amount_cents": {"type": "integer"},
                    "flag": {"type": "boolean"},
                    "names": LISTS,
                    "either": {"type": ["string", "array", "integer"]},
                    "address": {"type": "object", "properties": MEMBERS},
                    "lines": {"type": "array", "items": {"type": "object", "properties": MEMBERS}},
                },
            },
        )
    }
)
TEXT = st.text(max_size=40).filter(lambda text: not text.startswith(PREFIX))
ADDRESS = st.fixed_dictionaries(
    {}, optional={"street": TEXT, "zip_code": st.integers(), "tags": st.lists(TEXT, max_size=3)}
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "anything": ANY,
        "text": TEXT,
        "number": st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
        "amount_cents": st.integers(),
        "flag": st.booleans(),
        "names": st.lists(TEXT, max_size=4),
        "either": TEXT | st.lists(TEXT, max_size=3) | st.integers(),
        "address": ADDRESS,
        "lines": st.lists(ADDRESS, max_size=3),
    },
)


@settings(max_examples=150, deadline=None)
@given(ARGUMENTS, st.integers(0, 10**6))
def test_any_json_is_read_back_with_its_types(arguments: dict[str, Any], seed: int) -> None:
    plan = Plan((Call(0, "store", arguments),))
    query = STORE.render(plan, drawn(Random(seed), {"complete": 1}), seed)
    assert keys(STORE, query.text) == [plan.key]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_reading_takes_any_text(text: str) -> None:
    assert isinstance(STORE.readings(text), tuple)


@pytest.mark.parametrize(
    "text",
    [
        "Please store anything with the anything " + "(" * 3000,
        "Please store anything with the anything " + "(a: " * 2000,
        "Please store anything with the names " + '"a", ' * 9000,
        "Please store anything with the names " + "a1 and " * 9000,
        "Please store anything" + " and then store anything" * 4000,
        "Please store anything." + " Then store anything." * 4000,
        "Please store anything." + " No, make the text" * 4000,
        "Please store anything with the anything " + "the first of " * 5000,
        "Please " * 20_000,
        '"' * 50_001,
        "Monday " * 20_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    reader = Reader(STORE.lexicon, STORE.speaker, text)
    reader.plans()
    assert reader.left >= -1
    assert STEPS <= 100_000


WORLD = ("banking", "trading", "crm", "food_delivery")


def _mutants(world: Any, plan: Plan, random: Random) -> dict[str, Plan]:
    """The plan with one wrong value, one wrong entity, and one constraint less, where it has such."""
    found: dict[str, Plan] = {}
    places = [(call, name) for call in plan.calls for name in call.arguments]
    random.shuffle(places)
    for call, name in places:
        value = call.arguments[name]
        if "dropped" not in found:
            found["dropped"] = plan.without([(call.id, name)])
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault("value", _with(plan, call, name, value + 1))
        if isinstance(value, str) and value:
            others = [one for one in world.values.get(name, ()) if one != value and isinstance(one, str)]
            found.setdefault("entity", _with(plan, call, name, random.choice(others) if others else f"{value}0"))
    if plan.conditions:
        found["condition"] = Plan(plan.calls, plan.conditions[1:])
    return found


def _with(plan: Plan, call: Call, name: str, value: Any) -> Plan:
    changed = Call(call.id, call.tool, {**call.arguments, name: value})
    return Plan((*plan.calls[: call.id], changed, *plan.calls[call.id + 1 :]), plan.conditions)


def test_no_query_with_something_wrong_in_it_translates_back_to_the_plan(live: Any) -> None:
    random = Random("planted")
    counts = dict.fromkeys(("value", "entity", "dropped", "condition"), 0)
    while sum(counts.values()) < 200:
        world = live(random.choice(WORLD))
        plan = world.plan(random, 3)
        for kind, wrong in _mutants(world, plan, random).items():
            text = world.grammar.render(wrong, drawn(random, {"complete": 1}), random.randrange(99)).text
            assert plan.key not in keys(world.grammar, text), (kind, text)
            counts[kind] += 1
    assert min(counts.values()) >= 5, counts


def test_a_value_that_is_overwritten_in_the_text_is_read_as_written(bank: Any) -> None:
    arguments = {"from_account_id": "A00001", "to_account_id": "A00002", "amount_cents": 2500, "auth_token": "T1"}
    plan = Plan((Call(0, "transfer_funds", arguments),))
    for seed in range(20):
        text = bank.grammar.render(plan, Style(names="never"), seed).text
        changed = text.replace("25.00", "25.01")
        assert changed != text
        assert bank.grammar.parse(changed).calls[0].arguments == {**arguments, "amount_cents": 2501}
        swapped = text.replace("A00001", "A00003")
        assert bank.grammar.parse(swapped).calls[0].arguments == {**arguments, "from_account_id": "A00003"}


def test_a_plan_is_json_both_ways() -> None:
    call = Call(1, "store", {"anything": Reference(0, ("items", 0, "id"))})
    plan = Plan((Call(0, "store", {"text": "a"}), call), (Condition(1, Reference(0), "is not", 3),))
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.of(plan.program, plan.conditions) == plan


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ((Call(1, "store"),), "numbered from 0"),
        ((Call(0, "store", {"text": Reference(0)}),), "no earlier call"),
        ((Call(0, "store", {"text": "API_RESPONSE_0"}),), "read as a reference"),
    ],
)
def test_a_plan_that_is_none_is_refused(calls: tuple[Call, ...], words: str) -> None:
    with pytest.raises(DataError, match=words):
        Plan(calls)


@pytest.mark.parametrize(
    ("call", "words"),
    [(Call(0, "stoer"), "none of the tools"), (Call(0, "store", {"txt": "a"}), "no parameter 'txt'")],
)
def test_what_no_tool_takes_is_not_said(call: Call, words: str) -> None:
    with pytest.raises(DataError, match=words):
        STORE.render(Plan((call,)))


def test_a_text_of_somebody_else_has_no_plan(bank: Any) -> None:
    with pytest.raises(Unclear, match="no query of the grammar"):
        bank.grammar.parse("Colourless green ideas sleep furiously.")
