"""Equally right programs: right in v1.1, or refused for a reason that the page states; v1 keeps its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.language.program import Call, Program
from callwright.training.evaluation import judge
from callwright.walk.answers import answers_match
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Answer, Task
from callwright_plugins.depthbench.corpus import DepthBenchCorpus, DepthBenchV11Corpus
from callwright_plugins.depthbench.environment import DepthBenchV11
from callwright_plugins.depthbench.mended.regrouping import LISTINGS, regroupings
from callwright_plugins.depthbench.mended.spellings import folded
from callwright_plugins.depthbench.prove import right_in_all
from callwright_plugins.depthbench.world import V1_1

FIRST, CORPUS = DepthBenchCorpus(), DepthBenchV11Corpus()
JSON = cw.parser("json")
PAGE = Path(__file__).parents[3] / "docs" / "depthbench-1-1.md"


def tasks_of(corpus: DepthBenchCorpus) -> list[Task]:
    return [task for split in corpus.splits for task in corpus[split]]


def verdict(task: Task, program: Program) -> str:
    found = judge(Attempt(task, JSON.render(program), JSON))
    return "right" if found.answer else found.failure


def places(call: Call) -> list[str]:
    """The places that a listing names."""
    named = call.arguments.get(LISTINGS.get(call.tool, ""))
    return named if isinstance(named, list) else []


def listing(corpus: DepthBenchCorpus) -> list[Task]:
    """Tasks whose reference lists several places in one argument."""
    return [
        task
        for task in tasks_of(corpus)
        if task.program is not None and any(len(places(call)) > 1 for call in task.program.calls)
    ]


def with_listings(program: Program, change: Any) -> Program:
    calls = [
        evolve(call, arguments={**call.arguments, LISTINGS[call.tool]: change(call.arguments[LISTINGS[call.tool]])})
        if call.tool in LISTINGS
        else call
        for call in program.calls
    ]
    return evolve(program, calls=tuple(calls))


def test_two_listings_for_one_are_right_in_v11_and_lose_in_v1() -> None:
    for corpus, wanted in ((CORPUS, "right"), (FIRST, "answer:wrong")):
        tasks = listing(corpus)
        assert len(tasks) > 15
        for task in tasks:
            assert task.program is not None
            apart = next(iter(regroupings(task.program)))
            assert len(apart.calls) > len(task.program.calls)
            assert apart.returns == "all"
            assert verdict(task, apart) == wanted


def test_a_reversed_list_is_right_in_v11_and_loses_in_v1() -> None:
    for corpus, wanted in ((CORPUS, "right"), (FIRST, "answer:wrong")):
        for task in listing(corpus):
            assert task.program is not None
            assert verdict(task, with_listings(task.program, lambda names: names[::-1])) == wanted


def test_listings_that_leave_a_place_out_or_add_one_are_wrong() -> None:
    for task in listing(CORPUS):
        assert task.program is not None
        apart = next(iter(regroupings(task.program)))
        assert verdict(task, evolve(apart, calls=apart.calls[:-1])) == "answer:wrong"
        assert verdict(task, evolve(apart, calls=(*apart.calls, evolve(apart.calls[-1], id=99)))) == "answer:wrong"
        assert verdict(task, evolve(apart, returns="one")) == "answer:wrong"
        assert verdict(task, with_listings(task.program, lambda names: names[:1])) == "answer:wrong"


def test_regroupings_take_apart_and_put_together() -> None:
    def listed(*groups: list[str]) -> Program:
        calls = tuple(Call(n, "list_cars_at_dealerships", {"dealerships": names}) for n, names in enumerate(groups))
        return Program(calls, "all" if len(calls) > 1 else "one")

    found = [
        [call.arguments["dealerships"] for call in program.calls] for program in regroupings(listed(["A", "B"], ["C"]))
    ]
    assert found == [[["A"], ["B"], ["C"]], [["A", "B", "C"]]]
    (apart, together) = regroupings(listed(["A", "B"]))
    assert (apart.returns, together.returns) == ("all", "one")
    assert not list(regroupings(Program((Call(0, "get_current_city", {}),))))


def test_a_table_that_a_later_call_takes_is_not_regrouped() -> None:
    for task in tasks_of(CORPUS):
        if task.program is not None and len(task.program.calls) > 1 and task.returns == "one":
            assert not list(regroupings(task.program))
            assert task.answer.others == ()


# Names ----------------------------------------------------------------------------------------------------------------


def respelt(task: Task, change: Any) -> Program | None:
    """The reference with each name of a place or thing spelt otherwise; ``None`` if it has none."""
    assert task.program is not None
    calls, changed = [], False
    for call in task.program.calls:
        arguments = {}
        for name, value in call.arguments.items():
            known = folded({name: value}, V1_1) == {name: value} and isinstance(value, str)
            other = change(value) if known else value
            fits = known and other != value and folded({name: other}, V1_1) == {name: value}
            arguments[name] = other if fits else value
            changed |= fits
        calls.append(evolve(call, arguments=arguments))
    return evolve(task.program, calls=tuple(calls)) if changed else None


@pytest.mark.parametrize("change", [str.lower, str.upper, lambda text: f" {text} "], ids=["lower", "upper", "spaces"])
def test_names_in_any_case_are_right_in_v11(change: Any) -> None:
    tried = 0
    for task in tasks_of(CORPUS)[::3]:
        program = respelt(task, change) if task.depth else None
        if program is not None:
            tried += 1
            assert right_in_all(task, program), task.id
    assert tried > 150


def test_names_in_another_case_lose_in_v1() -> None:
    for task in tasks_of(FIRST)[60:400:9]:
        assert task.program is not None
        calls = [call for call in task.program.calls if "city" in call.arguments]
        if calls and isinstance(calls[0].arguments["city"], str):
            lower = evolve(calls[0], arguments={**calls[0].arguments, "city": calls[0].arguments["city"].lower()})
            changed = tuple(lower if call is calls[0] else call for call in task.program.calls)
            assert verdict(task, evolve(task.program, calls=changed)) == "execution:unknown_city"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("find_restaurants", {"city": "Amsterdam, Netherlands"}, "unknown_city"),
        ("find_restaurants", {"city": "Amsterdm"}, "unknown_city"),
        ("find_restaurants", {"city": ""}, "unknown_city"),
        ("create_cart", {"items": [{"sku": "sku-1", "quantity": 1}]}, "unknown_product"),
        ("create_cart", {"items": [], "coupon": "x"}, None),
        ("estimate_food_delivery", {"kitchen": "burger yard", "time": "8:00"}, None),
    ],
)
def test_other_spellings_are_refused(tool: str, arguments: dict[str, Any], code: str | None) -> None:
    outcome = DepthBenchV11().open("user-0001").call(tool, arguments)
    assert not outcome.executed
    if code is not None:
        assert outcome.code == code


def test_a_result_echoes_the_name_as_the_data_have_it() -> None:
    session = DepthBenchV11().open("user-0001")
    for tool, arguments, field, name in (
        ("find_restaurants", {"city": "  aMSTERDAM "}, "city", "Amsterdam"),
        ("songs_by", {"artist": "fern & flint"}, "artist", "Fern & Flint"),
        ("clock_elsewhere", {"clock": "10:00", "source": "OSLO", "target": "paris"}, "target", "Paris"),
        ("get_kitchen_menu", {"kitchen": "BURGER YARD"}, "kitchen", "Burger Yard"),
    ):
        outcome = session.call(tool, arguments)
        assert outcome.kind == "ok", outcome
        assert outcome.value[field] == name


# The core -------------------------------------------------------------------------------------------------------------


def test_an_answer_may_have_others_that_are_equally_right() -> None:
    answer = Answer((1, 2), others=((3,), (1, 1, 2)))
    for returned in ((2, 1), (3,), (1, 2, 1)):
        assert answers_match(answer, returned)
    for wrong in ((1,), (3, 3), (1, 2, 2), (), (1, 3)):
        assert not answers_match(answer, wrong)


def test_tasks_with_others_have_a_digest_of_their_own() -> None:
    from callwright.training.ledger.ingredients import task_digests

    task = listing(CORPUS)[0]
    assert task.answer.others
    assert task_digests([task]) != task_digests([evolve(task, answer=evolve(task.answer, others=()))])


def test_the_page_counts_the_tasks() -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    page = PAGE.read_text(encoding="utf-8")
    named = sum(respelt(task, str.upper) is not None for task in tasks_of(CORPUS) if task.depth)
    assert f"| two listings for one, or one for two | {len(listing(CORPUS))} |" in page
    assert f"| a list in another order | {len(listing(CORPUS))} |" in page
    assert f'| `"amsterdam"`, `" Amsterdam"` | {named} |' in page
