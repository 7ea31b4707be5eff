"""What tools declare of the cost of a call, and who is told."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.tools.costing import cost_of, in_words, listed_costs, telling_costs
from callwright.tools.spec import ToolSpec
from callwright.training.ledger.ingredients import task_digests
from callwright.walk.prompt import build_messages
from callwright_plugins.mcp_servers.wire import completed_tool, listed_tool


@cw.tool
def plain(book_id: str) -> str:
    """Bring a book."""
    return book_id


@cw.tool(cost=25, latency=90, irreversible=True)
def dear(book_id: str) -> str:
    """Bring a book."""
    return book_id


def test_by_default_nothing_is_said_and_nothing_changes() -> None:
    spec = plain.spec
    assert (spec.cost, spec.latency, spec.irreversible) == (0, 0, False)
    assert in_words(spec) == ""
    assert telling_costs(spec) is spec
    told = listed_tool(spec)
    assert told["annotations"]["destructiveHint"] is False
    assert not {"cost", "latency", "irreversible", "destructive"} & told["_meta"]["io.callwright/tool"].keys()


def test_schemas_listings_and_digests_do_not_hang_on_it() -> None:
    spec = evolve(dear.spec, name="plain")
    assert spec.to_openai() == plain.spec.to_openai()
    tasks = []
    for one in (plain.spec, spec):
        environment = cw.environment("books", tools=[plain])
        tasks.append(cw.Task("t", "?", {"plain": one}, cw.Answer(), environment))
    assert task_digests(tasks[:1]) == task_digests(tasks[1:])


def test_models_are_told_where_they_are_asked_to_be() -> None:
    environment = cw.environment("books", tools=[plain, dear])

    def descriptions(**options: bool) -> list[str]:
        return [one["function"]["description"] for one in cw.openai_tools(environment, **options)]

    assert descriptions() == ["Bring a book."] * 2
    words = "Bring a book.\n\nCosts 25 cents a call. Takes 1 min 30 s. Cannot be undone."
    assert descriptions(costs=True) == ["Bring a book.", words]
    assert cw.offer(environment, costs=True)["dear"].spec.description == words
    assert in_words(ToolSpec("t", cost="fee_cents", latency=60)) == "Costs fee_cents of the result. Takes 1 min."


def test_prompts_tell_costs_where_the_task_says_so() -> None:
    environment = cw.environment("books", tools=[plain, dear])
    task = cw.Task("t", "?", environment.tools, cw.Answer(), environment)
    telling = evolve(task, tells_costs=True)
    words = "Costs 25 cents a call."

    def prompts(given: cw.Task) -> list[str]:
        return [build_messages(given, cw.parser(form))[0].text for form in ("json", "hermes")]

    assert not [text for text in prompts(task) if words in text]
    assert [text.count(words) for text in prompts(telling)] == [1, 1]
    assert telling.tools == task.tools  # by which calls are checked
    assert task_digests([task]) != task_digests([telling])
    assert task_digests([task]) == task_digests([evolve(telling, tells_costs=False)])


@pytest.mark.parametrize("native", [False, True])
def test_a_briefing_lists_what_calls_cost_where_the_task_tells_it(native: bool) -> None:
    shop = cw.environment("shopping+email")
    names = ["search_products", "checkout", "cancel_order"]
    offered = {name: spec for name, spec in shop.tools.items() if name.rpartition("__")[2] in names}
    task = cw.Task("t", "?", offered, cw.Answer(), shop)

    def world(given: cw.Task) -> str:
        return build_messages(given, cw.parser("hermes"), native=native)[0].text.partition("# World")[2]

    costs = listed_costs(offered.values())
    assert [line.partition(":")[0] for line in costs] == [
        "Calls that cost money",
        "Calls that take time",
        "Calls that cannot be undone",
    ]
    assert costs[0] == "Calls that cost money: checkout (shipping_cents of the result)."
    assert not [line for line in costs if line in world(task)]
    told = world(evolve(task, tells_costs=True))
    assert "\n\n" + "\n".join(costs) in told
    hidden = world(evolve(task, tells_costs=True, shown=("search_products",)))
    assert "checkout (" not in hidden
    assert listed_costs([ToolSpec("t")]) == ()


def test_mcp_hands_it_on() -> None:
    told = listed_tool(dear.spec)
    assert told["annotations"]["destructiveHint"] is True
    for spec in (dear.spec, plain.spec, ToolSpec("f", cost="a.b", latency=3, destructive=True, irreversible=True)):
        listed = listed_tool(spec)
        back = completed_tool(ToolSpec.from_mcp(listed), listed["_meta"])
        for name in ("cost", "latency", "irreversible", "destructive"):
            assert getattr(back, name) == getattr(spec, name)
    silly = {"io.callwright/tool": {"cost": -1, "latency": "soon", "irreversible": "yes"}}
    back = completed_tool(ToolSpec("t", read_only=True), silly)
    assert (back.cost, back.latency, back.irreversible) == (0, 0, False)
    assert pickle.loads(pickle.dumps(dear.spec)) == dear.spec


@pytest.mark.parametrize(
    ("value", "cents"),
    [({"bill": {"fee": 12}}, 12), ({"bill": {}}, 0), ({"bill": {"fee": -3}}, 0), ({"bill": 4}, 0), (None, 0), ([1], 0)],
)
def test_a_result_may_tell_what_a_call_cost(value: Any, cents: int) -> None:
    assert cost_of(ToolSpec("t", cost="bill.fee"), value) == cents
    assert cost_of(ToolSpec("t", cost=7), value) == 7
    assert cost_of(ToolSpec("t", cost="bill.fee + tax"), {"bill": {"fee": 5}, "tax": 2}) == 7


@pytest.mark.parametrize(
    "wrong",
    [{"cost": -1}, {"cost": 1.5}, {"cost": True}, {"latency": -1}, {"latency": 0.5}, {"latency": 10**6}],
)
def test_what_is_no_cost_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(cw.UsageError, match="tool 't'"):
        ToolSpec("t", **wrong)
    with pytest.raises(cw.UsageError, match="read_only"):
        ToolSpec("t", read_only=True, irreversible=True)
