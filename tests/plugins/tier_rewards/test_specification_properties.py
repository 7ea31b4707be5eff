"""What must hold of ``tier`` for every program, found by hypothesis over small programs, damaged and whole.

Each program is written in json, xml and direct; the oracle scores its facts without reading any text.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from adversarial_world import CASES, TOOLS, Case
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from specification_forms import read
from specification_oracle import (
    AbstractCall,
    Came,
    Facts,
    Ref,
    answer_is_right,
    format_reward,
    in_order,
    members,
    parse_rewards,
    references,
    run,
    score,
)
from specification_toolrl import total as toolrl_total
from specification_writers import write

import callwright as cw
from callwright.errors import CannotExpress

FORMS = ("json", "xml", "direct")
ORACLE = ("tier", "tier-guarded", "tier-strict", "simple", "tier-no-parse", "tier-no-execution")
LITERALS: list[Any] = [
    1,
    2,
    255,
    255.0,
    255.5,
    4.5,
    True,
    None,
    "Rome",
    "Oslo",
    "255",
    "a&b <c>",
    [],
    [255],
    {},
    {"n": "b"},
]
RIGHT = {
    "name": "Ada",
    "place": "Rome",
    "code": 255,
    "number": 255,
    "text": "R&D <b>",
    "least": 4.5,
    "limit": 2,
    "radius": 2.5,
}
BUYER = {"name": "Ada", "city": "Rome"}


def earned(facts: Facts, case: Case, recipe: str, form: str) -> float:
    return paid(case, write(facts, form), recipe, form)


@cache
def tools_of(form: str, recipe: str) -> tuple[Any, Any]:
    return cw.parser(form), cw.reward(recipe)


def paid(case: Case, text: str, recipe: str, form: str) -> float:
    parser, reward = tools_of(form, recipe)
    total = reward.score_attempt(cw.Attempt(case.task, text, parser)).total
    assert total is not None
    return float(total)


def facts_of(program: cw.Program) -> Facts:
    """A program without damage as facts."""

    def abstract(value: Any) -> Any:
        if isinstance(value, cw.Reference):
            return Ref(value.call, value.path)
        if isinstance(value, dict):
            return {name: abstract(inner) for name, inner in value.items()}
        return [abstract(item) for item in value] if isinstance(value, list) else value

    calls = tuple(AbstractCall(call.id, call.tool, abstract(dict(call.arguments))) for call in program.calls)
    return Facts(calls, program.returns)


def program_of(facts: Facts) -> cw.Program:
    def concrete(value: Any) -> Any:
        if isinstance(value, Ref):
            return cw.Reference(value.call, value.path)
        if isinstance(value, dict):
            return {name: concrete(inner) for name, inner in value.items()}
        return [concrete(item) for item in value] if isinstance(value, list) else value

    calls = tuple(cw.Call(call.id, call.tool, concrete(dict(call.arguments or {}))) for call in facts.calls)
    return cw.Program(calls, facts.returns)  # type: ignore[arg-type]


# Strategies ----------------------------------------------------------------------------------------------------------


@st.composite
def arguments_of(draw: st.DrawFn, tool: str, number: int, damaged: bool) -> dict[str, Any]:
    schema = TOOLS[tool].parameters
    found: dict[str, Any] = {}
    for name in schema["properties"]:
        if name not in schema["required"] and draw(st.booleans()):
            continue
        if damaged and draw(st.integers(0, 9)) == 0:
            continue  # missing
        if name == "rows" or (name in ("place", "text") and draw(st.booleans())):
            nearest = st.integers(0, max(number - 1, 0))
            found[name] = Ref(draw(st.integers(0, 5)) if damaged and draw(st.integers(0, 3)) == 0 else draw(nearest))
            if damaged and draw(st.integers(0, 7)) == 0:
                found[name] = replace(found[name], path=(draw(st.sampled_from(["rows", "place", "nowhere", 0])),))
        elif damaged and draw(st.integers(0, 4)) == 0:
            found[name] = draw(st.sampled_from(LITERALS))
        elif name == "buyer":
            found[name] = {key: text for key, text in BUYER.items() if not damaged or draw(st.integers(0, 5))}
        elif name == "items":
            found[name] = [{"sku": "s1", "qty": draw(st.sampled_from([2, "2"] if damaged else [2]))}]
        elif name == "mode":
            found[name] = "near"
        else:
            found[name] = RIGHT[name]
    if damaged and draw(st.integers(0, 9)) == 0:
        found["extra"] = draw(st.sampled_from([1, Ref(0), Ref(9)]))
    return found


@st.composite
def programs(draw: st.DrawFn, damaged: bool = True) -> Facts:
    calls = []
    for number in range(draw(st.integers(0, 4))):
        tool = draw(st.sampled_from(sorted(TOOLS)))
        arguments = draw(arguments_of(tool, number, damaged))
        spoilt = damaged and draw(st.integers(0, 19)) == 0
        name = "Nobody" if damaged and draw(st.integers(0, 14)) == 0 else tool
        calls.append(AbstractCall(number, name, None if spoilt else arguments))
    return Facts(tuple(calls), draw(st.sampled_from(["one", "all"])))


@st.composite
def completions(draw: st.DrawFn) -> Facts:
    """Programs and what can be wrong around them."""
    facts = draw(programs())
    wrong = draw(st.sampled_from(["nothing"] * 6 + ["envelope", "second", "stray", "tree"]))
    return replace(
        facts,
        envelope=wrong != "envelope",
        blocks=2 if wrong == "second" else 1,
        stray=wrong == "stray",
        tree=wrong != "tree",
    )


def near(case: Case) -> st.SearchStrategy[Facts]:
    """The right program of a task with one damage or none, so that right answers are common."""
    gold = facts_of(case.gold)

    @st.composite
    def damaged(draw: st.DrawFn) -> Facts:
        calls = list(gold.calls)
        if calls and draw(st.booleans()):
            at = draw(st.integers(0, len(calls) - 1))
            arguments = dict(calls[at].arguments or {})
            if arguments and draw(st.booleans()):
                arguments[draw(st.sampled_from(sorted(arguments)))] = draw(
                    st.sampled_from([*LITERALS, Ref(at), Ref(0)])
                )
            elif arguments:
                del arguments[draw(st.sampled_from(sorted(arguments)))]
            calls[at] = replace(calls[at], arguments=arguments)
        return replace(gold, calls=tuple(calls))

    return damaged()


cases = st.sampled_from(sorted(CASES)).map(CASES.__getitem__)
tried = cases.flatmap(lambda case: st.tuples(st.just(case), st.one_of(completions(), near(case))))


# The same damage, the same score -------------------------------------------------------------------------------------


@settings(max_examples=120)
@given(tried)
def test_the_same_damage_earns_the_same_in_each_form(drawn: tuple[Case, Facts]) -> None:
    case, facts = drawn
    expected = score(facts, case.question).totals
    truth = facts_of(case.gold)
    for form in FORMS:
        for recipe in ORACLE:
            assert earned(facts, case, recipe, form) == pytest.approx(float(expected[recipe] or 0), abs=1e-9), form
        for recipe, guarded in (("toolrl", False), ("toolrl-guarded", True)):
            literal = toolrl_total(facts, truth, guarded=guarded)
            assert earned(facts, case, recipe, form) == pytest.approx(float(literal), abs=1e-9), (form, recipe)


@settings(max_examples=80)
@given(completions(), st.sampled_from(FORMS))
def test_the_readers_of_the_oracle_read_what_was_written(facts: Facts, form: str) -> None:
    found = read(write(facts, form), form)
    if not (facts.envelope and facts.tree):
        assert format_reward(found) == 0
        return
    assert (found.blocks, found.stray, found.returns) == (facts.blocks, facts.stray or facts.blocks > 1, facts.returns)
    assert [(call.id, call.tool) for call in found.calls] == [(call.id, call.tool) for call in facts.calls]
    for mine, theirs in zip(facts.calls, found.calls, strict=True):
        assert (mine.arguments is None) == (theirs.arguments is None)
        assert [dangles for _, dangles in references(mine, facts)] == [d for _, d in references(theirs, found)]


@settings(max_examples=80)
@given(tried, st.sampled_from(FORMS))
def test_what_our_renderers_write_earns_what_the_oracle_says(drawn: tuple[Case, Facts], form: str) -> None:
    case, facts = drawn
    assume(all(call.arguments is not None for call in facts.calls))
    facts = replace(facts, envelope=True, tree=True, blocks=1, stray=False)
    try:
        text = cw.parser(form).render(program_of(facts))
    except CannotExpress:
        assume(False)
    expected = score(facts, case.question).totals
    for recipe in ORACLE:
        assert paid(case, text, recipe, form) == pytest.approx(float(expected[recipe] or 0), abs=1e-9)


@pytest.mark.parametrize("form", ["json", "xml"])
def test_one_id_twice_is_malformed_where_ids_are_written(form: str) -> None:
    call = AbstractCall(0, "Lookup", {"code": 255})
    facts = Facts((call, call))
    assert earned(facts, CASES["number"], "tier", form) == score(facts, CASES["number"].question).totals["tier"] == 0


# Dominance -----------------------------------------------------------------------------------------------------------


def checks(facts: Facts, case: Case) -> dict[str, Fraction]:
    """Every check by itself, without gates and weights: what is verified of a program, not what is paid for it."""
    passed = dict.fromkeys(
        ("format", "readable", "names", "parameters", "types", "execution", "answer", "calls"), Fraction(0)
    )
    passed["format"] = Fraction(format_reward(facts))
    if not passed["format"] or any(call.arguments is None for call in facts.calls):
        return passed
    came: list[Came] = run(facts, case.question)
    names, parameters, types = parse_rewards(facts, case.question)
    passed.update(readable=Fraction(1), names=names, parameters=parameters, types=types)
    passed["execution"] = Fraction(all(outcome.kind == "result" for outcome in came))
    passed["answer"] = Fraction(answer_is_right(facts, came, case.question))
    passed["calls"] = Fraction(bool(facts.calls) or not case.question.expected)
    return passed


@settings(max_examples=200)
@given(
    cases.flatmap(
        lambda case: st.tuples(
            st.just(case), st.one_of(completions(), near(case)), st.one_of(completions(), near(case))
        )
    ),
    st.sampled_from(FORMS),
)
def test_who_passes_every_check_that_another_passes_never_earns_less(
    drawn: tuple[Case, Facts, Facts], form: str
) -> None:
    case, one, other = drawn
    mine, theirs = checks(one, case), checks(other, case)
    if all(theirs[name] >= mine[name] for name in mine):
        one, other, mine, theirs = other, one, theirs, mine
    assume(all(mine[name] >= theirs[name] for name in mine))
    for recipe in ("tier", "tier-guarded", "simple", "tier-no-parse", "tier-no-execution"):
        assert earned(one, case, recipe, form) >= earned(other, case, recipe, form) - 1e-9, recipe


@pytest.mark.parametrize("form", FORMS)
def test_more_damage_can_earn_more(form: str) -> None:
    """2.2 counts mismatches over all calls: who drops a broken call drops its mismatches, and no calls have none."""
    case = CASES["parallel"]
    broken = [AbstractCall(at, "Lookup", {"code": str(at)}) for at in range(2)]
    both, dropped, nothing = (Facts(tuple(broken[:count]), "all") for count in (2, 1, 0))
    assert [earned(facts, case, "tier", form) for facts in (both, dropped, nothing)] == pytest.approx(
        [0.35, 0.375, 0.5]
    )
    assert [score(facts, case.question).totals["tier"] for facts in (both, dropped, nothing)] == [
        Fraction(35, 100),
        Fraction(375, 1000),
        Fraction(1, 2),
    ]
    assert earned(nothing, case, "tier-guarded", form) == pytest.approx(0.1)


# Trajectory invariance -----------------------------------------------------------------------------------------------


def renumbered(facts: Facts, ids: list[int]) -> Facts:
    """The same program under other ids; references to no call keep naming none."""
    new = {call.id: number for call, number in zip(facts.calls, ids, strict=True)}

    def moved(value: Any) -> Any:
        if isinstance(value, Ref):
            return replace(value, call=new.get(value.call, 900_000 + value.call))
        if isinstance(value, dict):
            return {name: moved(inner) for name, inner in value.items()}
        return [moved(item) for item in value] if isinstance(value, list) else value

    return replace(
        facts,
        calls=tuple(
            AbstractCall(new[call.id], call.tool, None if call.arguments is None else moved(dict(call.arguments)))
            for call in facts.calls
        ),
    )


@settings(max_examples=80)
@given(tried, st.integers(0, 50), st.lists(st.integers(1, 9), min_size=4, max_size=4), st.sampled_from(["json", "xml"]))
def test_other_ids_change_nothing(drawn: tuple[Case, Facts], start: int, gaps: list[int], form: str) -> None:
    case, facts = drawn
    ids = [start + sum(gaps[:at]) for at in range(len(facts.calls))]
    other = renumbered(facts, ids)
    for recipe in ORACLE:
        assert earned(other, case, recipe, form) == pytest.approx(earned(facts, case, recipe, form), abs=1e-9)
    truth = facts_of(case.gold)
    if not any(dangles for call in facts.calls for _, dangles in references(call, facts)):
        assert toolrl_total(other, truth) == toolrl_total(facts, truth)  # ours: references by position
        assert earned(other, case, "toolrl", form) == pytest.approx(earned(facts, case, "toolrl", form), abs=1e-9)


def legal_orders(facts: Facts) -> list[list[int]]:
    """Every order of the calls in which each comes after those that it refers to; with "one", the last stays last."""
    needs = {call.id: {ref.call for ref, dangles in references(call, facts) if not dangles} for call in facts.calls}
    last = facts.calls[-1].id if facts.calls and facts.returns == "one" else None

    def orders(done: list[int]) -> list[list[int]]:
        left = [number for number in needs if number not in done]
        if not left:
            return [done]
        ready = [n for n in left if needs[n] <= set(done) and (n != last or len(left) == 1)]
        return [order for number in ready for order in orders([*done, number])]

    return orders([])


def reordered(facts: Facts, order: list[int]) -> Facts:
    by_id = {call.id: call for call in facts.calls}
    moved = replace(facts, calls=tuple(by_id[number] for number in order))
    return renumbered(moved, list(range(len(order))))


@settings(max_examples=80)
@given(cases.flatmap(lambda case: st.tuples(st.just(case), st.one_of(programs(), near(case)))), st.data())
def test_a_legal_order_changes_nothing(drawn: tuple[Case, Facts], data: st.DataObject) -> None:
    case, facts = drawn
    assume(len(facts.calls) > 1)
    # A reference to a later call dangles; in another order it might not, and that is another program.
    assume(not any(dangles for call in facts.calls for _, dangles in references(call, facts)))
    other = reordered(facts, data.draw(st.sampled_from(legal_orders(facts))))
    truth = facts_of(case.gold)
    form = data.draw(st.sampled_from(FORMS))
    for recipe in ORACLE:
        assert earned(other, case, recipe, form) == pytest.approx(earned(facts, case, recipe, form), abs=1e-9)
    # ToolRL compares with the reference, in which references are positions: the formula says by how much it moves.
    moved = earned(other, case, "toolrl", form) - earned(facts, case, "toolrl", form)
    assert moved == pytest.approx(float(toolrl_total(other, truth) - toolrl_total(facts, truth)), abs=1e-9)


FUNNEL = Facts(
    (
        AbstractCall(0, "Lookup", {"code": 7}),
        AbstractCall(1, "Locate", {}),
        AbstractCall(2, "Order", {"buyer": {"name": Ref(0), "city": Ref(1)}}),
    )
)


@pytest.mark.parametrize("form", FORMS)
def test_a_legal_order_costs_toolrl_what_the_formula_says(form: str) -> None:
    """A funnel whose two independent calls change places: S is 1 + 3 + 2 = 6, and ``buyer`` no longer agrees."""
    import adversarial_world as world

    case = world.case("funnel", program_of(FUNNEL), {"order": {"buyer": {"name": "title 7", "city": "Rome"}}})
    other = reordered(FUNNEL, [1, 0, 2])
    assert [earned(facts, case, "tier", form) for facts in (FUNNEL, other)] == pytest.approx([1, 1])
    assert [earned(facts, case, "toolrl", form) for facts in (FUNNEL, other)] == pytest.approx([4, 3])
    assert [toolrl_total(facts, FUNNEL) for facts in (FUNNEL, other)] == [4, 3]


@settings(max_examples=80)
@given(st.sampled_from(["number", "chain", "parallel"]), st.data())
def test_another_legal_path_earns_the_same(name: str, data: st.DataObject) -> None:
    """Equivalent tools, a place that is known without asking, calls that nobody needs, a filter applied twice."""
    case = CASES[name]
    gold = facts_of(case.gold)
    calls: list[AbstractCall] = []
    for call in gold.calls:
        code = dict(call.arguments or {}).get("code")
        if code is not None and data.draw(st.booleans()):
            calls.append(AbstractCall(call.id, "Search", {"number": code}))
        elif call.tool == "Find" and data.draw(st.booleans()):
            calls.append(AbstractCall(call.id, "Find", {"place": "Rome"}))
        else:
            calls.append(call)
    if gold.returns == "one":
        calls = [AbstractCall(-1 - at, "Locate", {}) for at in range(data.draw(st.integers(0, 2)))] + calls
        if name == "chain" and data.draw(st.booleans()):
            calls.append(AbstractCall(3, "Filter", {"rows": Ref(2), "least": 2}))
    other = renumbered(replace(gold, calls=tuple(calls)), list(range(len(calls))))
    form = data.draw(st.sampled_from(FORMS))
    assert earned(other, case, "tier", form) == pytest.approx(1)
    assert score(other, case.question).totals["tier"] == 1
    loss = 4 - earned(other, case, "toolrl", form)
    assert loss == pytest.approx(float(4 - toolrl_total(other, gold)), abs=1e-9)


def test_the_schema_of_the_oracle_counts_what_it_says() -> None:
    """A few counts by hand, so that oracle and implementation cannot share a slip unseen."""
    order = TOOLS["Order"].parameters
    nobody = lambda ref: None  # noqa: E731
    assert members({}, order, nobody) == (1, 0)
    assert members({"buyer": {}}, order, nobody) == (2, 0)
    assert members({"buyer": "Ada", "items": [{"sku": 1}]}, order, nobody) == (1, 2)
    assert members(
        {"buyer": {"name": "A", "city": "B", "x": 1}, "items": 3, "y": {}}, {**order, "closed": True}, nobody
    ) == (2, 1)
    assert [call.id for call in in_order(Facts((AbstractCall(7, "a"), AbstractCall(3, "b"))))] == [3, 7]
