"""What models read of the twenty environments: running text, where chat templates look for it, and not too much."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import callwright as cw
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.mcp_servers.wire import listed_tool

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

#: Bytes of a compact listing: as prompts write it, as function definitions, and as clients of MCP hand it on.
LONGEST_LISTING = 12_000
#: Bytes of a page of an environment that is told so, and the longest result that is none.
LONGEST_PAGE = 4_000
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
        for place, inner in (*schemas(spec.parameters), *schemas(spec.result)):
            branches = inner.get("anyOf", [])
            inside = [branch for branch in branches if isinstance(branch, Mapping) and "description" in branch]
            assert len(inside) != 1 or "description" in inner, (
                f"{tool}{place}: in a branch, where templates do not look"
            )


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


#: How names end whose values have a unit or are a part of something: said of one tool, it has to be said of all.
MEASURES = (
    *("_cents", "_minutes", "_days", "_km", "_m", "_s", "_kg", "_wh", "_bytes", "_points"),
    *("points", "quantity", "size", "bytes", "percent", "total", "volume", "shares"),
)


@pytest.mark.parametrize("name", TOOLS)
def test_a_measure_that_is_described_in_one_result_is_described_in_all(name: str) -> None:
    """Money, times and amounts of one name mean different things in different tools; pages say what their total is."""
    said: dict[str, dict[bool, list[str]]] = {}
    for tool, spec in cw.environment(name).tools.items():
        for _, node in schemas(spec.result):
            for member, inner in (node.get("properties") or {}).items():
                if member.endswith(MEASURES):
                    said.setdefault(member, {}).setdefault("description" in inner, []).append(tool)
    assert {member: found[False] for member, found in said.items() if len(found) == 2} == {}


def test_a_good_part_of_all_fields_is_described() -> None:
    from model_sizes import described as counted

    found = [counted(name) for name in TOOLS]
    assert sum(fields for _, fields in found) > 4_000
    assert sum(said for said, _ in found) > 1_400


def enums(schema: Any) -> list[list[str]]:
    return [sorted(map(str, node["enum"])) for _, node in schemas(schema) if isinstance(node.get("enum"), list)]


@pytest.mark.parametrize("name", TOOLS)
def test_listings_are_short(name: str) -> None:
    from model_sizes import listings

    found = listings(name)
    for form in ("prompt", "tools", "mcp"):
        assert found[f"compact {form}"] < LONGEST_LISTING, form
        assert found[f"compact {form}"] < 0.85 * found[form], form


@pytest.mark.parametrize("name", TOOLS)
def test_pages_are_as_short_as_an_environment_is_told_and_lose_nothing(name: str) -> None:
    """Of every tool that gives pages; what has no pages is as it was, without what is nothing."""
    from environment_speed import scripts
    from model_sizes import answers, is_page, size

    whole: Any = cw.environment(name)
    small: Any = cw.environment(name, page_bytes=LONGEST_PAGE, compact=True)
    found = answers(small, scripts()[name][0])
    assert {one.tool for one in found if one.is_page} == {one for one, spec in whole.tools.items() if is_page(spec)}
    assert {one.tool for one in found if one.is_page and one.bytes > LONGEST_PAGE} == set()
    sessions = whole.open("typical", 0), small.open("typical", 0)
    checked = 0
    for one in found:
        schema = small.tools[one.tool].result
        given = dict(one.arguments)
        if one.is_page:
            given |= {"limit": 100} if "limit" in small.tools[one.tool].parameters["properties"] else {}
        outcomes = [session.call(one.tool, given) for session in sessions]
        assert outcomes[0].kind == outcomes[1].kind
        if not outcomes[0].executed:  # of the script, after what it changed
            continue
        values = [outcome.value for outcome in outcomes]
        assert jsonschema_rs.Draft202012Validator(schema).is_valid(values[1]), one
        if one.is_page:
            items, cursor = list(values[1]["items"]), values[1]["next_cursor"]
            while len(items) < len(values[0]["items"]):
                page = sessions[1].call(one.tool, {**given, "cursor": cursor}).value
                assert size(page) <= LONGEST_PAGE or len(page["items"]) == 1
                items, cursor = [*items, *page["items"]], page["next_cursor"]
            values = [values[0]["items"], items[: len(values[0]["items"])]]
        assert slim(values[0]) == values[1]
        checked += 1
    assert checked >= len(whole.tools) // 4
    assert sessions[0].digest() == sessions[1].digest()


def slim(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: slim(inner) for key, inner in value.items() if inner not in (None, "", [])}
    return [slim(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", TOOLS)
def test_every_closed_set_is_told(name: str) -> None:
    """By an enum, by the description, or by a tool that lists it."""
    from model_sizes import closed_sets

    assert [place for place, told in closed_sets(name).items() if not told] == []


def test_closed_sets_are_found() -> None:
    from model_sizes import closed_sets

    assert closed_sets("retail_chain")["search_items.category"] == "description"
    assert closed_sets("retail_chain")["list_stores.city"] == "list_stores"
    assert closed_sets("trading")["list_orders.status"] == "enum"
    assert closed_sets("issue_tracker")["search_issues.project"] == "list_projects"


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
    """What is said of a parameter stands where it first comes, and rules stay where only codes are left out."""
    whole, small = (cw.openai_tools(cw.environment(name), compact=compact) for compact in (False, True))

    def said(listing: list[dict[str, Any]]) -> list[str]:
        return [
            schema["description"]
            for one in listing
            for schema in one["function"]["parameters"]["properties"].values()
            if "description" in schema
        ]

    assert said(small) == list(dict.fromkeys(said(whole)))
    listed = [one["function"]["description"] for one in small]
    assert all(listed)
    assert not [text for text in listed if "Fails with" in text]


def test_tools_have_titles() -> None:
    listed = [listed_tool(spec) for name in TOOLS for spec in cw.environment(name).tools.values()]
    assert len(listed) == 343
    assert {one["name"]: one["title"] for one in listed}["transfer_funds"] == "Transfer funds"
    assert all(one["title"][0].isupper() and "_" not in one["title"] for one in listed)
