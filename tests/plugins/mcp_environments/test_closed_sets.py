"""Filters by something that does not exist say what there is, and filters that find nothing are plainly empty."""

from __future__ import annotations

import pytest

import callwright as cw

FILTERS = [
    ("food_delivery", "search_restaurants", "cuisine", "italian"),
    ("trading", "search_symbols", "sector", "energy"),
    ("retail_chain", "search_items", "category", "kitchen"),
    ("retail_chain", "list_stores", "city", "Arnsberg"),
    ("vehicle", "list_saved_destinations", "category", "fuel"),
    ("budget", "list_categories", "group", "home"),
    ("issue_tracker", "search_issues", "status", "Backlog"),
    ("issue_tracker", "search_issues", "label", "backend"),
]


@pytest.mark.parametrize(("name", "tool", "field", "value"), FILTERS)
def test_a_value_that_does_not_exist_is_answered_with_those_that_do(
    name: str, tool: str, field: str, value: str
) -> None:
    session = cw.environment(name).open()
    known = session.call(tool, {field: value})
    assert known.kind == "ok", known
    unknown = session.call(tool, {field: "no such thing"})
    assert (unknown.kind, unknown.code, unknown.value["items"]) == ("partial", "UNKNOWN_VALUE", [])
    assert value in unknown.message


def test_a_search_without_results_is_empty() -> None:
    session = cw.environment("trading").open()
    assert session.call("search_symbols", {"sector": "energy", "query": "no such thing"}).kind == "empty"


def test_the_two_fees_for_cancelling_are_told_apart() -> None:
    result = cw.environment("travel_booking").tools["get_fare_rules"].result
    assert result is not None
    rules = result["properties"]
    terms = next(one for one in rules["booking"]["anyOf"] if "properties" in one)["properties"]
    assert rules["cancel_fee_cents"]["description"].startswith("For each traveller")
    assert "accepted_fee_cents" in terms["cancel_fee_cents"]["description"]
