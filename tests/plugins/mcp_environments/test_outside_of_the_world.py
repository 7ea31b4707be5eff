"""Dates outside of a world are said to be so: no tool that reads answers them as if nothing had been found."""

from __future__ import annotations

import re
from typing import Any

import pytest

import callwright as cw
from callwright_plugins.mcp_environments import TOOLS

#: Calls about times before a world and after it, and what each answers.
OUTSIDE: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("banking", "list_transactions", {"since": "1990-01-01", "until": "1991-01-01"}, "partial", "OUTSIDE_RECORDS"),
    ("banking", "list_transactions", {"since": "2040-01-01", "until": "2041-01-01"}, "partial", "OUTSIDE_RECORDS"),
    ("banking", "list_transactions", {"account_id": "A00003", "until": "1991-01-01"}, "partial", "OUTSIDE_RECORDS"),
    ("banking", "list_transactions", {"since": "2040-01-01"}, "execution_error", "BAD_TIME"),
    ("calendar", "list_events", {"start": "2001-01-01", "end": "2001-02-01"}, "partial", "OUTSIDE_RECORDS"),
    ("calendar", "check_conflicts", {"start": "2001-01-01", "end": "2001-02-01"}, "partial", "OUTSIDE_RECORDS"),
    (
        "calendar",
        "find_free_slots",
        {"people": ["P00002"], "duration_minutes": 30, "start": "2026-02-01", "end": "2026-02-08"},
        "partial",
        "PAST_TIME",
    ),
    ("email", "search_messages", {"query": "before:1999-01-01"}, "partial", "OUTSIDE_RECORDS"),
    ("email", "search_messages", {"query": "report after:2031-01-01"}, "partial", "OUTSIDE_RECORDS"),
    ("email", "search_messages", {"query": "report -before:2031-01-01"}, "partial", "OUTSIDE_RECORDS"),
    ("email", "search_messages", {"query": 'report -after:"1999-01-01"'}, "partial", "OUTSIDE_RECORDS"),
    ("filesystem", "find", {"modified_since": "2031-01-01"}, "partial", "OUTSIDE_RECORDS"),
    ("retail_chain", "get_sales_report", {"since": "2001-01-01", "until": "2001-02-01"}, "partial", "OUTSIDE_RECORDS"),
    ("retail_chain", "get_sales_report", {"since": "2031-01-01", "until": "2031-02-01"}, "partial", "OUTSIDE_RECORDS"),
    ("iot_devices", "get_energy_usage", {"start": "2001-01-01", "end": "2001-02-01"}, "partial", "OUTSIDE_RECORDS"),
    ("iot_devices", "get_energy_usage", {"start": "2031-01-01", "end": "2031-02-01"}, "execution_error", "BAD_PERIOD"),
    ("travel_booking", "search_flights", {"origin": "VAL", "date": "2031-01-01"}, "partial", "OUTSIDE_SCHEDULE"),
    ("travel_booking", "search_flights", {"origin": "VAL", "date": "2001-01-01"}, "execution_error", "DATE_ORDER"),
    (
        "travel_booking",
        "search_hotels",
        {"check_in": "2031-01-01", "check_out": "2031-01-03"},
        "partial",
        "OUTSIDE_SCHEDULE",
    ),
    (
        "travel_booking",
        "search_hotels",
        {"check_in": "2001-01-01", "check_out": "2001-01-03"},
        "execution_error",
        "DATE_ORDER",
    ),
    ("travel_booking", "get_hotel", {"hotel_id": "H00001", "from_day": "2031-01-01"}, "partial", "OUTSIDE_SCHEDULE"),
    ("travel_booking", "get_hotel", {"hotel_id": "H00001", "from_day": "2001-01-01"}, "partial", "OUTSIDE_SCHEDULE"),
    ("maps", "estimate_arrival", {"route_code": "?", "depart_at": "2001-01-01"}, "execution_error", "PAST_TIME"),
    ("budget", "list_expenses", {"month": "2001-01"}, "execution_error", "BAD_MONTH"),
    ("budget", "list_expenses", {"month": "2041-01"}, "execution_error", "BAD_MONTH"),
    ("budget", "get_category_status", {"category_id": "G00001", "month": "2001-01"}, "execution_error", "BAD_MONTH"),
    ("budget", "get_monthly_summary", {"month": "2041-01"}, "execution_error", "BAD_MONTH"),
]
#: Parameters that take no date of the world: a number of days, a zone, a sort; or any time has an answer.
NO_DATES = {
    ("calendar", "find_free_slots", "working_hours_only"),
    ("calendar", "get_current_time", "time_zone"),
    ("calendar", "check_conflicts", "time_zone"),
    ("calendar", "list_events", "calendar_id"),
    ("payments", "list_invoices", "status"),
    ("maps", "get_timezone", "at"),
    ("food_delivery", "search_restaurants", "address_id"),
    ("food_delivery", "search_restaurants", "sort"),
}
_ABOUT_TIME = re.compile(
    r"iso 8601|20[0-9][0-9]-|before:|\b(?:days?|times?|months?|nights?|weeks?|years?|dates?|since|until)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize(("name", "tool", "arguments", "kind", "code"), OUTSIDE)
def test_a_date_outside_of_the_world_is_said_to_be_so(
    name: str, tool: str, arguments: dict[str, Any], kind: str, code: str
) -> None:
    session = cw.environment(name).open("typical", 0)
    if arguments.get("route_code") == "?":
        places = session.call("search_places", {"limit": 2}).value["items"]
        route = session.call(
            "compute_route", {"origin": places[0]["place_id"], "destination": places[1]["place_id"], "mode": "drive"}
        )
        arguments = {**arguments, "route_code": route.value["route_code"]}
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == (kind, code), outcome
    assert re.search(r"[0-9]{4}-[0-9]{2}", outcome.message), "it says what there is, or what time it is"
    assert session.digest() == before


def test_every_parameter_that_takes_a_date_is_tried() -> None:
    """Of the tools that read, by what their descriptions say."""
    tried = {(name, tool, parameter) for name, tool, arguments, _, _ in OUTSIDE for parameter in arguments}
    found = {
        (name, tool, parameter)
        for name in TOOLS
        for tool, spec in cw.environment(name).tools.items()
        if spec.read_only
        for parameter, schema in spec.parameters["properties"].items()
        if schema.get("type") != "integer" and _ABOUT_TIME.search(f"{schema.get('description', '')} {parameter}")
    }
    assert found - tried == NO_DATES
    assert len({(name, tool) for name, tool, *_ in found - NO_DATES}) == 15


@pytest.mark.parametrize(
    ("name", "tool", "arguments"),
    [
        ("banking", "list_transactions", {"account_id": "A00003", "since": "2026-03-02T08:59:59Z"}),
        ("email", "search_messages", {"query": "nothingthatisthere after:2026-01-01 before:2026-03-01"}),
        ("email", "search_messages", {"query": "nothingthatisthere"}),
        ("filesystem", "find", {"name": "nothing.that.is.there", "modified_since": "2026-01-01"}),
        ("calendar", "check_conflicts", {"start": "2026-03-08T02:00Z", "end": "2026-03-08T02:30Z"}),
    ],
)
def test_nothing_found_inside_of_the_world_is_plainly_empty(name: str, tool: str, arguments: dict[str, Any]) -> None:
    assert cw.environment(name).open("typical", 0).call(tool, arguments).kind == "empty"


def test_a_calendar_knows_of_the_year_ahead_even_where_nothing_is_planned() -> None:
    diary = cw.environment("calendar").open("sparse", 0)
    assert diary.call("list_events", {}).kind == "empty"
    assert diary.call("list_events", {"start": "2026-11-01", "end": "2026-11-08"}).kind == "empty"
    ahead = diary.call("list_events", {"start": "2031-11-01", "end": "2031-11-08"})
    assert (ahead.kind, ahead.code) == ("partial", "OUTSIDE_RECORDS")
    assert "2027-03-03" in ahead.message


def test_times_in_part_outside_are_no_reason_to_warn() -> None:
    bank = cw.environment("banking").open("typical", 0)
    assert bank.call("list_transactions", {"since": "1990-01-01"}).kind == "ok"
    diary = cw.environment("calendar").open("typical", 0)
    assert diary.call("list_events", {"start": "2026-02-20", "end": "2026-03-20"}).kind == "ok"
