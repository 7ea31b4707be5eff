"""What models read of the twenty environments: running text, where chat templates look for it, and not too much."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import callwright as cw
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.mcp_servers.wire import listed_tool

#: Characters of a compact listing. filesystem has forty tools, twice as many as most.
LONGEST_LISTING = dict.fromkeys(TOOLS, 12_000) | {"filesystem": 15_700}
#: Fields of results whose names do not say what they hold.
SAY_LITTLE = {
    "banking": "converted_cents customer_rate mid_rate held_cents available_cents "
    "daily_limit_left_cents received_cents runs_left verified_from next_at last_failure",
    "trading": "reserved_cents realised_cents cost_cents traded_cents available_shares "
    "triggered_at buying_power_cents next_change_at band_low_cents band_high_cents",
    "payments": "net_cents tax_bps capturable_cents refundable_cents object_id",
    "calendar": "exceptions overlapping_event_ids latest_start next_occurrences",
    "filesystem": "before truncated next_offset",
    "shopping": "counts problem bulky price_changed_from_cents order_limit",
    "marketplace": "in_escrow_for_you_cents released_at_latest reserve_met free_cents held_cents",
    "retail_chain": "free room in_transit missing",
    "travel_booking": "available_at pending_points next_tier_at free_until difference_cents",
    "food_delivery": "served delta_cents promo_problem missing_cents next_opening available_now",
    "budget": "carried_cents upcoming_cents missed entered",
    "maps": "traffic_s bearing_degrees route_code",
    "vehicle": "raised range_km left_km low",
    "iot_devices": "last_skipped attempts_left",
    "issue_tracker": "carried left_out obstacle remaining_minutes",
}


def schemas(node: Any, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object in a schema that could be a schema, with its place."""
    if isinstance(node, Mapping):
        yield place, node
        for key, value in node.items():
            yield from schemas(value, f"{place}.{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from schemas(value, f"{place}[{number}]")


def described(name: str) -> Iterator[tuple[str, str]]:
    for tool, spec in cw.environment(name).tools.items():
        yield tool, spec.description
        for schema in (spec.parameters, spec.result):
            for place, inner in schemas(schema):
                if isinstance(inner.get("description"), str):
                    yield f"{tool}{place}", inner["description"]


@pytest.mark.parametrize("name", TOOLS)
def test_descriptions_are_running_text(name: str) -> None:
    found = list(described(name))
    assert len(found) > 30
    flat = [(place, text.replace("\n\n", " ")) for place, text in found]
    assert [place for place, text in flat if text != " ".join(text.split()) or "``" in text] == []


@pytest.mark.parametrize("name", TOOLS)
def test_descriptions_stand_outside_of_branches(name: str) -> None:
    for tool, spec in cw.environment(name).tools.items():
        for place, inner in schemas(spec.parameters):
            branches = inner.get("anyOf", [])
            inside = [branch for branch in branches if isinstance(branch, Mapping) and "description" in branch]
            assert not inside or "description" in inner, f"{tool}{place}"


@pytest.mark.parametrize("name", SAY_LITTLE)
def test_fields_whose_names_say_little_are_described(name: str) -> None:
    seen = set()
    for tool, spec in cw.environment(name).tools.items():
        for place, node in schemas(spec.result):
            for field, inner in (node.get("properties") or {}).items():
                if field in SAY_LITTLE[name].split():
                    seen.add(field)
                    assert inner.get("description"), f"{tool}{place}.{field}"
    assert seen == set(SAY_LITTLE[name].split())


def enums(schema: Any) -> list[list[str]]:
    return [sorted(map(str, node["enum"])) for _, node in schemas(schema) if isinstance(node.get("enum"), list)]


@pytest.mark.parametrize("name", TOOLS)
def test_listings_are_short(name: str) -> None:
    environment = cw.environment(name)
    whole, small = (json.dumps(cw.openai_tools(environment, compact=compact)) for compact in (False, True))
    assert len(small) < 0.95 * len(whole)
    written = json.dumps(cw.openai_tools(environment, compact=True), ensure_ascii=False, separators=(",", ":"))
    assert len(written) < LONGEST_LISTING[name]


@pytest.mark.parametrize("name", TOOLS)
def test_a_compact_listing_admits_what_the_whole_one_needs(name: str) -> None:
    """Names, types, enums and what is required are the same; only bounds and ways to say nothing are gone."""
    environment = cw.environment(name)
    for one in cw.openai_tools(environment, compact=True):
        function = one["function"]
        whole = environment.tools[function["name"]].parameters
        small = function["parameters"]
        assert list(small.get("properties", {})) == list(whole.get("properties", {}))
        assert small.get("required", []) == whole.get("required", [])
        assert enums(small) == enums(whole)
        for place, node in schemas(small):
            assert node.get("description") != "", place


@pytest.mark.parametrize("name", TOOLS)
def test_a_compact_listing_says_everything_once(name: str) -> None:
    """Each description of a parameter stands where it first comes, and rules stay where only codes are left out."""
    whole, small = (cw.openai_tools(cw.environment(name), compact=compact) for compact in (False, True))

    def said(listing: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {
            (parameter, schema["description"])
            for one in listing
            for parameter, schema in one["function"]["parameters"]["properties"].items()
            if "description" in schema
        }

    assert said(whole) == said(small)
    listed = [one["function"]["description"] for one in small]
    assert all(listed)
    assert not [text for text in listed if "Fails with" in text]


def test_tools_have_titles() -> None:
    listed = [listed_tool(spec) for name in TOOLS for spec in cw.environment(name).tools.values()]
    assert len(listed) == 343
    assert {one["name"]: one["title"] for one in listed}["transfer_funds"] == "Transfer funds"
    assert all(one["title"][0].isupper() and "_" not in one["title"] for one in listed)
