"""Tools about the customer: travellers, bookings, itineraries, points."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.times import iso, iso_date, parse_day
from callwright_plugins.mcp_environments.travel_booking.hotels import hotel_booking_view
from callwright_plugins.mcp_environments.travel_booking.party import TIERS, Tier, age_on, points_available, tier
from callwright_plugins.mcp_environments.travel_booking.rows import FlightBooking, HotelBooking, LoyaltyEntry, Traveler
from callwright_plugins.mcp_environments.travel_booking.trips import booking_view

_ENDED: Final = ("cancelled", "departed", "completed")


class TravelerView(TypedDict):
    """Somebody whom the customer books for; of a passport only when it expires."""

    traveler_id: str
    first_name: str
    last_name: str
    birth_date: str
    age: int
    has_passport: bool
    passport_expires: str | None


class BookingSummary(TypedDict):
    """A booking in a list."""

    booking_id: str
    kind: Literal["flight", "hotel"]
    status: str
    title: str
    begins: Annotated[str, Field(description="Departure or day of arrival.")]
    ends: Annotated[str, Field(description="Arrival or day of departure.")]
    people: Annotated[int, Field(description="How many.")]
    total_cents: Annotated[int, Field(description="For all travellers and nights, points counted.")]


class Entry(TypedDict):
    """A step of an itinerary."""

    at: Annotated[str, Field(description="UTC.")]
    kind: Literal["departure", "arrival", "check_in", "check_out"]
    booking_id: str
    where: str
    what: str
    traveler_ids: list[str]


class Itinerary(TypedDict):
    """What happens when, in order of time."""

    entries: list[Entry]
    booking_ids: list[str]


class LoyaltyView(TypedDict):
    """Points: what can be spent, what is still to come, and the tier."""

    available_points: Annotated[int, Field(description="A cent each.")]
    pending_points: Annotated[int, Field(description="Earned, and not to be spent yet.")]
    tier: Tier
    points_earned_in_a_year: Annotated[int, Field(description="Which the tier goes by.")]
    next_tier_at: Annotated[
        int | None, Field(description="Points in a year that the next tier needs; null: there is none above.")
    ]
    history: list[LoyaltyEntryView]


class LoyaltyEntryView(TypedDict):
    """Points that came or went."""

    at: str
    available_at: Annotated[str, Field(description="From when on these points can be spent.")]
    points: Annotated[int, Field(description="Negative: spent or lost.")]
    reason: str
    booking_id: str | None


@tool(read_only=True, discovery=True)
def list_travelers(
    world: World,
    /,
    name: Annotated[str, Field(description="Part of a name; empty for all.", max_length=60)] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[TravelerView]:
    """List the people whom the customer books for, with their ages and whether they have a passport."""
    wanted = name.strip().lower()
    found = [one for one in world.rows(Traveler) if wanted in f"{one.first_name} {one.last_name}".lower()]
    return page(found, lambda one: _traveler_view(world, one), limit, cursor)


@tool(idempotent=True)
def add_traveler(
    world: World,
    /,
    first_name: Annotated[str, Field(min_length=1, max_length=60, description="First name as in the passport.")],
    last_name: Annotated[str, Field(min_length=1, max_length=60, description="Last name as in the passport.")],
    birth_date: Annotated[str, Field(description="Day of birth, such as 1990-05-17.", max_length=10)],
    passport_no: Annotated[
        str,
        Field(
            description="Passport number: 6 to 12 capitals and digits; empty for none.",
            pattern=r"^([A-Z0-9]{6,12})?$",
            json_schema_extra={"x-sensitive": True},
        ),
    ] = "",
    passport_expires: Annotated[str, Field(description="Last day of the passport; goes with passport_no.")] = "",
) -> TravelerView:
    """Add a traveller, or give the one with this name and birth date a new passport. Fails with BAD_DOCUMENT if number
    and expiry do not go together or the passport has expired, and with BAD_DATE for a day that is none.
    """
    first, last = first_name.strip(), last_name.strip()
    if not first or not last:
        raise ToolError("BAD_NAME", "first_name and last_name must not be blank")
    if parse_day(birth_date) > world.now:
        raise ToolError("BAD_DATE", f"birth_date {birth_date} is in the future")
    if bool(passport_no) != bool(passport_expires):
        raise ToolError("BAD_DOCUMENT", "passport_no and passport_expires go together; give both or neither")
    # Days are compared as text later, so they are kept in one form.
    born = date.fromisoformat(birth_date.strip()).isoformat()
    expires = ""
    if passport_expires:
        parse_day(passport_expires)
        expires = date.fromisoformat(passport_expires.strip()).isoformat()
        if expires < iso_date(world.now):
            raise ToolError("BAD_DOCUMENT", f"the passport expired on {expires}")
    same = next(
        (
            one
            for one in world.rows(Traveler)
            if (one.first_name.lower(), one.last_name.lower(), one.birth_date) == (first.lower(), last.lower(), born)
        ),
        None,
    )
    if same is None:
        made = Traveler(world.new_id(Traveler), first, last, born, passport_no, expires)
        return _traveler_view(world, world.put(made))
    if passport_no:
        same = world.update(same, passport_no=passport_no, passport_expires=expires)
    return _traveler_view(world, same)


@tool(read_only=True, discovery=True)
def list_bookings(
    world: World,
    /,
    kind: Annotated[Literal["any", "flight", "hotel"], Field(description="Which bookings.")] = "any",
    upcoming_only: Annotated[bool, Field(description="Leave out what is over or cancelled.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[BookingSummary]:
    """List the customer's bookings of flights and hotels by the day on which they begin."""
    found: list[BookingSummary] = []
    if kind != "hotel":
        found += [_flight_summary(world, booking) for booking in world.rows(FlightBooking)]
    if kind != "flight":
        found += [_hotel_summary(world, booking) for booking in world.rows(HotelBooking)]
    if upcoming_only:
        found = [one for one in found if one["status"] not in _ENDED]
    found.sort(key=lambda one: (one["begins"], one["booking_id"]))
    return page(found, lambda one: one, limit, cursor)


@tool(read_only=True)
def get_itinerary(
    world: World,
    /,
    booking_id: Annotated[
        str,
        Field(description="One booking, such as BF00001 or BH00002; empty for all upcoming.", max_length=40),
    ] = "",
    traveler_id: Annotated[
        str, Field(description="Only what this traveller is on; empty for all.", max_length=40)
    ] = "",
) -> Itinerary:
    """What happens when: departures, arrivals, check-ins and check-outs in order of time."""
    if traveler_id:
        world.need(Traveler, traveler_id, message=f"there is no traveller {traveler_id!r}; use list_travelers")
    flights, stays = list(world.rows(FlightBooking)), list(world.rows(HotelBooking))
    if booking_id:
        flights = [one for one in flights if one.id == booking_id]
        stays = [one for one in stays if one.id == booking_id]
        if not flights and not stays:
            raise ToolError("NOT_FOUND", f"there is no booking {booking_id!r}; use list_bookings")
    entries: list[Entry] = []
    for flight in flights:
        entries += _flight_entries(world, flight, all_states=bool(booking_id))
    for stay in stays:
        entries += _stay_entries(world, stay, all_states=bool(booking_id))
    if traveler_id:
        entries = [entry for entry in entries if traveler_id in entry["traveler_ids"]]
    entries.sort(key=lambda entry: (entry["at"], entry["booking_id"], entry["kind"] == "departure"))
    return {"entries": entries, "booking_ids": list(dict.fromkeys(entry["booking_id"] for entry in entries))}


@tool(read_only=True)
def get_loyalty_balance(
    world: World,
    /,
    history: Annotated[int, Field(ge=0, le=50, description="How many of the latest entries to show.")] = 10,
) -> LoyaltyView:
    """The customer's points: what can be spent now (a cent each), what is pending until journeys begin, the tier."""
    entries = sorted(world.rows(LoyaltyEntry), key=lambda entry: (entry.at, entry.id), reverse=True)
    name, earned, _ = tier(world)
    above = [least for _, least, _ in TIERS if least > earned]
    return {
        "available_points": points_available(world),
        "pending_points": sum(entry.points for entry in entries if entry.available_at > world.now),
        "tier": name,
        "points_earned_in_a_year": earned,
        "next_tier_at": min(above, default=None),
        "history": [
            {
                "at": iso(entry.at),
                "available_at": iso(entry.available_at),
                "points": entry.points,
                "reason": entry.reason,
                "booking_id": entry.booking_id or None,
            }
            for entry in entries[:history]
        ],
    }


def _traveler_view(world: World, traveler: Traveler) -> TravelerView:
    return {
        "traveler_id": traveler.id,
        "first_name": traveler.first_name,
        "last_name": traveler.last_name,
        "birth_date": traveler.birth_date,
        "age": age_on(traveler.birth_date, iso_date(world.now)),
        "has_passport": bool(traveler.passport_no),
        "passport_expires": traveler.passport_expires or None,
    }


def _flight_summary(world: World, booking: FlightBooking) -> BookingSummary:
    view = booking_view(world, booking)
    return {
        "booking_id": booking.id,
        "kind": "flight",
        "status": view["status"],
        "title": f"{view['number']} {view['origin']}-{view['destination']}, {view['fare_class']}",
        "begins": view["departs_at"],
        "ends": view["arrives_at"],
        "people": len(booking.traveler_ids),
        "total_cents": booking.fare_cents + booking.fees_cents,
    }


def _hotel_summary(world: World, booking: HotelBooking) -> BookingSummary:
    view = hotel_booking_view(world, booking)
    return {
        "booking_id": booking.id,
        "kind": "hotel",
        "status": view["status"],
        "title": f"{view['hotel_name']}, {view['city']}: {view['room_name']}",
        "begins": view["check_in"],
        "ends": view["check_out"],
        "people": len(booking.guest_ids),
        "total_cents": view["total_cents"],
    }


def _flight_entries(world: World, booking: FlightBooking, *, all_states: bool) -> list[Entry]:
    view = booking_view(world, booking)
    if not all_states and view["status"] != "confirmed":
        return []
    people = list(booking.traveler_ids)
    seats = ", ".join(one["seat"] for one in view["travelers"] if one["seat"])
    what = f"flight {view['number']}, {view['fare_class']}" + (f", seats {seats}" if seats else "")
    steps: list[tuple[Literal["departure", "arrival"], str, str]] = [
        ("departure", view["departs_at"], view["origin"]),
        ("arrival", view["arrives_at"], view["destination"]),
    ]
    return [
        {"at": at, "kind": kind, "booking_id": booking.id, "where": where, "what": what, "traveler_ids": list(people)}
        for kind, at, where in steps
    ]


def _stay_entries(world: World, booking: HotelBooking, *, all_states: bool) -> list[Entry]:
    view = hotel_booking_view(world, booking)
    if not all_states and view["status"] not in ("confirmed", "checked_in"):
        return []
    where = f"{view['hotel_name']}, {view['city']}"
    steps: list[tuple[Literal["check_in", "check_out"], str]] = [
        ("check_in", f"{view['check_in']}T15:00:00Z"),
        ("check_out", f"{view['check_out']}T11:00:00Z"),
    ]
    return [
        {
            "at": at,
            "kind": kind,
            "booking_id": booking.id,
            "where": where,
            "what": view["room_name"],
            "traveler_ids": list(booking.guest_ids),
        }
        for kind, at in steps
    ]


JOURNEYS: Final[list[FunctionTool]] = [
    list_travelers,
    list_bookings,
    get_itinerary,
    get_loyalty_balance,
    add_traveler,
]
