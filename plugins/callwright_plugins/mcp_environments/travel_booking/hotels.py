"""Tools about hotels: searching by city and nights, booking, modifying, cancelling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.times import DAY, HOUR, iso, iso_date, parse_day
from callwright_plugins.mcp_environments.travel_booking.party import (
    ADULT,
    age_on,
    check_points,
    earn,
    give_back,
    lose,
    need_travelers,
    spend,
)
from callwright_plugins.mcp_environments.travel_booking.rows import Hotel, HotelBooking, RoomNight, RoomType, Traveler
from callwright_plugins.mcp_environments.travel_booking.schedule import check_city, explain_no_nights, explain_no_rooms
from callwright_plugins.mcp_environments.travel_booking.trips import Points

#: Hour of the day (UTC) at which stays begin.
CHECK_IN: Final = 15
LONGEST: Final = 30

HotelStatus = Literal["confirmed", "checked_in", "completed", "cancelled"]
CheckIn = Annotated[str, Field(description="Day of arrival, such as 2026-03-10.", max_length=10)]
CheckOut = Annotated[str, Field(description="Day of departure, after the day of arrival.", max_length=10)]
BookingId = Annotated[str, Field(description="Hotel booking id, such as BH00001, from list_bookings.", max_length=40)]
Guests = Annotated[
    list[str], Field(min_length=1, max_length=9, description="Different travellers; one of them is an adult.")
]


class Offer(TypedDict):
    """A kind of room for the whole stay."""

    room_type_id: str
    name: str
    sleeps: int
    refundable: Annotated[bool, Field(description="Can be cancelled for nothing until the deadline.")]
    rooms_left: int
    total_cents: Annotated[int, Field(description="For all nights.")]


class HotelSummary(TypedDict):
    """A hotel in a list, with the rooms for the stay where one was given."""

    hotel_id: str
    name: str
    city: str
    stars: int
    rooms: list[Offer]


class NightView(TypedDict):
    """A night in a kind of room."""

    day: str
    rate_cents: Annotated[int, Field(description="For the room.")]
    rooms_left: int
    min_stay: Annotated[int, Field(description="Nights that a stay must have which begins here.")]


class RoomView(TypedDict):
    """A kind of room with its nights."""

    room_type_id: str
    name: str
    sleeps: int
    refundable: Annotated[bool, Field(description="Can be cancelled for nothing until the deadline.")]
    nights: list[NightView]


class HotelView(TypedDict):
    """A hotel in full."""

    hotel_id: str
    name: str
    city: str
    stars: int
    free_cancellation_days: Annotated[int, Field(description="Before arrival.")]
    rooms: list[RoomView]


class HotelBookingView(TypedDict):
    """A booked room; it can be cancelled for nothing until ``free_until`` if it is refundable."""

    booking_id: str
    kind: Literal["hotel"]
    status: HotelStatus
    hotel_id: str
    hotel_name: str
    city: str
    room_type_id: str
    room_name: str
    check_in: str
    check_out: Annotated[str, Field(description="Day of departure; no night.")]
    nights: int
    guest_ids: list[str]
    total_cents: Annotated[int, Field(description="For all nights, points counted.")]
    points_used: Annotated[int, Field(description="Paid with, a cent each.")]
    refunded_cents: Annotated[int, Field(description="So far.")]
    points_returned: Annotated[int, Field(description="Of those that were paid with.")]
    refundable: bool
    free_until: Annotated[
        str | None, Field(description="Until when cancelling costs nothing; null: it is not refundable.")
    ]


class Modified(TypedDict):
    """A modified stay and what was charged or paid back."""

    booking: HotelBookingView
    charged_cents: Annotated[int, Field(description="Now.")]
    refunded_cents: Annotated[int, Field(description="Now.")]
    points_returned: Annotated[int, Field(description="Now.")]


class Cancelled(TypedDict):
    """What a cancelled stay gives back; the fee is the first night after the deadline."""

    booking_id: str
    fee_cents: Annotated[int, Field(description="What is kept: the first night after the deadline, else 0.")]
    refund_cents: Annotated[int, Field(description="In money.")]
    points_returned: Annotated[int, Field(description="Of those that were paid with.")]


@tool(read_only=True, discovery=True, latency=3)
def search_hotels(
    world: World,
    /,
    city: Annotated[str, Field(description="City, as search_airports writes it; empty for all.", max_length=60)] = "",
    check_in: Annotated[str, Field(description="Day of arrival; empty to list hotels without rooms.")] = "",
    check_out: Annotated[str, Field(description="Day of departure; goes with check_in.")] = "",
    guests: Annotated[int, Field(ge=1, le=9, description="How many the room must sleep.")] = 1,
    min_stars: Annotated[int, Field(ge=1, le=5, description="Fewest stars.")] = 1,
    max_total_cents: Annotated[int | None, Field(ge=0, description="Highest price of the stay; null for any.")] = None,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[HotelSummary]:
    """Find hotels in a city. With check_in and check_out only those with a room for all nights, and what it costs;
    fails with DATE_ORDER if the days are in the wrong order or past. Warns with OUTSIDE_SCHEDULE if there is no room
    because the nights are not on sale yet.
    """
    days = stay_days(world, check_in, check_out) if check_in or check_out else None
    wanted = city.strip().lower()
    if wanted:
        check_city(world, wanted)
    found: list[HotelSummary] = []
    for hotel in world.rows(Hotel):
        if hotel.stars < min_stars or (wanted and wanted != hotel.city.lower()):
            continue
        offers = [] if days is None else _offers(world, hotel, days, guests)
        if max_total_cents is not None:
            offers = [offer for offer in offers if offer["total_cents"] <= max_total_cents]
        if days is None or offers:
            found.append(
                {"hotel_id": hotel.id, "name": hotel.name, "city": hotel.city, "stars": hotel.stars, "rooms": offers}
            )
    if not found:
        explain_no_rooms(world, days or ())
    return page(found, lambda view: view, limit, cursor)


@tool(read_only=True)
def get_hotel(
    world: World,
    /,
    hotel_id: Annotated[str, Field(description="Hotel id, such as H00004, from search_hotels.", max_length=40)],
    from_day: Annotated[str, Field(description="First night to show; empty for today.", max_length=10)] = "",
    nights: Annotated[int, Field(ge=1, le=LONGEST, description="How many nights to show.")] = 7,
) -> HotelView:
    """A hotel with its rooms, and for each night the rate, rooms left and the shortest stay that may begin on it. Warns
    with OUTSIDE_SCHEDULE if there is none because the nights are not on sale.
    """
    hotel = world.need(Hotel, hotel_id, message=f"there is no hotel {hotel_id!r}; use search_hotels")
    start = parse_day(from_day) if from_day else world.now
    days = [iso_date(start + number * DAY) for number in range(nights)]
    explain_no_nights(world, days)
    return {
        "hotel_id": hotel.id,
        "name": hotel.name,
        "city": hotel.city,
        "stars": hotel.stars,
        "free_cancellation_days": hotel.free_days,
        "rooms": [
            {
                "room_type_id": room.id,
                "name": room.name,
                "sleeps": room.sleeps,
                "refundable": room.refundable,
                "nights": [
                    {
                        "day": night.day,
                        "rate_cents": night.rate_cents,
                        "rooms_left": night.rooms_left,
                        "min_stay": night.min_stay,
                    }
                    for day in days
                    if (night := world.get(RoomNight, (room.id, day))) is not None
                ],
            }
            for room in world.find(RoomType, hotel_id=hotel.id)
        ],
    }


@tool(latency=4, irreversible=True)
def book_hotel(
    world: World,
    /,
    room_type_id: Annotated[
        str, Field(description="Kind of room, such as RM00007, from search_hotels.", max_length=40)
    ],
    check_in: CheckIn,
    check_out: CheckOut,
    guest_ids: Guests,
    points_to_use: Points = 0,
) -> HotelBookingView:
    """Book a room for all nights from check_in to check_out. Fails with DATE_ORDER, MIN_STAY, SOLD_OUT, NOT_ON_SALE,
    ROOM_TOO_SMALL, ADULT_REQUIRED or INSUFFICIENT_POINTS.
    """
    room = world.need(RoomType, room_type_id, message=f"there is no room {room_type_id!r}; use search_hotels")
    days = stay_days(world, check_in, check_out)
    _check_guests(world, room, guest_ids, days[0])
    nights = _check_nights(world, room, days, kept=())
    price = sum(night.rate_cents for night in nights)
    check_points(world, points_to_use, price)
    for night in nights:
        world.update(night, rooms_left=night.rooms_left - 1)
    booking = world.put(
        HotelBooking(
            id=world.new_id(HotelBooking),
            room_type_id=room.id,
            guest_ids=tuple(guest_ids),
            nights=tuple((night.day, night.rate_cents) for night in nights),
            booked_at=world.now,
            cancelled_at=None,
            points_used=points_to_use,
            refunded_cents=0,
            points_returned=0,
        )
    )
    spend(world, points_to_use, price, booking.id)
    earn(world, price - points_to_use, _ends(booking), booking.id)
    return hotel_booking_view(world, booking)


@tool(latency=3)
def modify_hotel(
    world: World,
    /,
    booking_id: BookingId,
    check_in: Annotated[str, Field(description="New day of arrival; empty to keep it.", max_length=10)] = "",
    check_out: Annotated[str, Field(description="New day of departure; empty to keep it.", max_length=10)] = "",
    guest_ids: Annotated[
        list[str] | None, Field(min_length=1, max_length=9, description="New guests; null to keep them.")
    ] = None,
) -> Modified:
    """Change the nights or guests of a stay that has not begun. Kept nights keep their rate, new ones cost today's.
    Nights can be given up only in a refundable room before its deadline (NON_REFUNDABLE, DEADLINE_PASSED). Fails also
    like book_hotel.
    """
    booking = _coming(world, booking_id)
    room = world.need(RoomType, booking.room_type_id)
    days = stay_days(world, check_in or booking.nights[0][0], check_out or iso_date(_ends(booking)))
    guests = list(booking.guest_ids) if guest_ids is None else guest_ids
    _check_guests(world, room, guests, days[0])
    before = dict(booking.nights)
    given_up = [day for day in before if day not in days]
    if given_up and not room.refundable:
        raise ToolError(
            "NON_REFUNDABLE", f"the nights of booking {booking.id} cannot be given up: {', '.join(given_up)}"
        )
    if given_up and world.now >= free_until(world, booking):
        raise ToolError(
            "DEADLINE_PASSED",
            f"nights of booking {booking.id} could be given up until {iso(free_until(world, booking))}",
        )
    nights = _check_nights(world, room, days, kept=tuple(before))
    for day in given_up:
        night = world.need(RoomNight, (room.id, day))
        world.update(night, rooms_left=night.rooms_left + 1)
    for night in nights:
        if night.day not in before:
            world.update(night, rooms_left=night.rooms_left - 1)
    rates = tuple((night.day, before.get(night.day, night.rate_cents)) for night in nights)
    difference = sum(rate for _, rate in rates) - sum(before.values())
    back = min(max(-difference, 0), sum(before.values()) - booking.points_used)
    points = max(-difference, 0) - back
    changed = world.update(booking, nights=rates, guest_ids=tuple(guests), points_used=booking.points_used - points)
    give_back(world, points, booking.id)
    lose(world, booking.id)
    earn(world, sum(rate for _, rate in rates) - changed.points_used, _ends(changed), booking.id)
    return {
        "booking": hotel_booking_view(world, changed),
        "charged_cents": max(difference, 0),
        "refunded_cents": back,
        "points_returned": points,
    }


@tool(destructive=True, cost="fee_cents", latency=3, irreversible=True)
def cancel_hotel(world: World, /, booking_id: BookingId) -> Cancelled:
    """Cancel a stay that has not begun. Free until the hotel's deadline; then the first night is kept. Fails with
    NON_REFUNDABLE for rooms that are sold so, and with INVALID_STATE once the stay has begun or is cancelled.
    """
    booking = _coming(world, booking_id)
    room = world.need(RoomType, booking.room_type_id)
    if not room.refundable:
        raise ToolError("NON_REFUNDABLE", f"the {room.name} of booking {booking.id} is not refundable")
    fee = booking.nights[0][1] if world.now >= free_until(world, booking) else 0
    money = sum(rate for _, rate in booking.nights) - booking.points_used
    back, points = max(money - fee, 0), max(booking.points_used - max(fee - money, 0), 0)
    for day, _ in booking.nights:
        night = world.need(RoomNight, (room.id, day))
        world.update(night, rooms_left=night.rooms_left + 1)
    world.update(booking, cancelled_at=world.now, refunded_cents=back, points_returned=points)
    lose(world, booking.id)
    give_back(world, points, booking.id)
    return {"booking_id": booking.id, "fee_cents": fee, "refund_cents": back, "points_returned": points}


def stay_days(world: World, check_in: str, check_out: str) -> list[str]:
    """The nights of a stay as days; fails with ``DATE_ORDER``, or ``STAY_TOO_LONG`` above thirty."""
    start, end = parse_day(check_in), parse_day(check_out)
    if end <= start:
        raise ToolError("DATE_ORDER", f"check_out {check_out} must be after check_in {check_in}")
    if start < world.now - world.now % DAY:
        raise ToolError("DATE_ORDER", f"check_in {check_in} is past; it is {iso(world.now)} now")
    if end - start > LONGEST * DAY:
        raise ToolError("STAY_TOO_LONG", f"a stay has at most {LONGEST} nights, not {(end - start) // DAY}")
    return [iso_date(day) for day in range(start, end, DAY)]


def free_until(world: World, booking: HotelBooking) -> int:
    """Until when a stay can be cancelled for nothing if the room is refundable."""
    hotel = world.need(Hotel, world.need(RoomType, booking.room_type_id).hotel_id)
    return _begins(booking) - hotel.free_days * DAY


def hotel_booking_view(world: World, booking: HotelBooking) -> HotelBookingView:
    """A booked room."""
    room = world.need(RoomType, booking.room_type_id)
    hotel = world.need(Hotel, room.hotel_id)
    return {
        "booking_id": booking.id,
        "kind": "hotel",
        "status": hotel_status(world, booking),
        "hotel_id": hotel.id,
        "hotel_name": hotel.name,
        "city": hotel.city,
        "room_type_id": room.id,
        "room_name": room.name,
        "check_in": booking.nights[0][0],
        "check_out": iso_date(_ends(booking)),
        "nights": len(booking.nights),
        "guest_ids": list(booking.guest_ids),
        "total_cents": sum(rate for _, rate in booking.nights),
        "points_used": booking.points_used,
        "refunded_cents": booking.refunded_cents,
        "points_returned": booking.points_returned,
        "refundable": room.refundable,
        "free_until": iso(free_until(world, booking)) if room.refundable else None,
    }


def hotel_status(world: World, booking: HotelBooking) -> HotelStatus:
    """Where a stay is now."""
    if booking.cancelled_at is not None:
        return "cancelled"
    if world.now >= _ends(booking):
        return "completed"
    return "checked_in" if world.now >= _begins(booking) else "confirmed"


def _begins(booking: HotelBooking) -> int:
    return parse_day(booking.nights[0][0]) + CHECK_IN * HOUR


def _ends(booking: HotelBooking) -> int:
    """The midnight with which the day of departure begins."""
    return parse_day(booking.nights[-1][0]) + DAY


def _coming(world: World, booking_id: str) -> HotelBooking:
    """The booking, if its stay is still to come; fails with ``INVALID_STATE``."""
    booking = world.need(
        HotelBooking, booking_id, message=f"there is no hotel booking {booking_id!r}; use list_bookings"
    )
    status = hotel_status(world, booking)
    if status != "confirmed":
        raise ToolError("INVALID_STATE", f"booking {booking.id} is {status.replace('_', ' ')}")
    return booking


def _check_guests(world: World, room: RoomType, guest_ids: Sequence[str], day: str) -> None:
    guests: list[Traveler] = need_travelers(world, guest_ids)
    if len(guests) > room.sleeps:
        raise ToolError("ROOM_TOO_SMALL", f"{room.name} ({room.id}) sleeps {room.sleeps}, not {len(guests)}")
    if not any(age_on(guest.birth_date, day) >= ADULT for guest in guests):
        raise ToolError("ADULT_REQUIRED", f"none of the guests is {ADULT} on {day}")


def _check_nights(world: World, room: RoomType, days: Sequence[str], kept: Sequence[str]) -> list[RoomNight]:
    """The nights of a stay, if all can be had; those in ``kept`` are the customer's already."""
    nights = []
    for day in days:
        night = world.get(RoomNight, (room.id, day))
        if night is None:
            raise ToolError("NOT_ON_SALE", f"{room.name} ({room.id}) is not sold for the night of {day}")
        if night.rooms_left < 1 and day not in kept:
            raise ToolError("SOLD_OUT", f"no {room.name} ({room.id}) is left for the night of {day}")
        nights.append(night)
    if len(nights) < nights[0].min_stay:
        raise ToolError(
            "MIN_STAY", f"a stay from {nights[0].day} has at least {nights[0].min_stay} nights, not {len(nights)}"
        )
    return nights


def _offers(world: World, hotel: Hotel, days: Sequence[str], guests: int) -> list[Offer]:
    offers: list[Offer] = []
    for room in world.find(RoomType, hotel_id=hotel.id):
        nights = [night for day in days if (night := world.get(RoomNight, (room.id, day))) is not None]
        left = min((night.rooms_left for night in nights), default=0)
        if room.sleeps < guests or len(nights) < len(days) or left < 1 or len(days) < nights[0].min_stay:
            continue
        offers.append(
            {
                "room_type_id": room.id,
                "name": room.name,
                "sleeps": room.sleeps,
                "refundable": room.refundable,
                "rooms_left": left,
                "total_cents": sum(night.rate_cents for night in nights),
            }
        )
    return offers


HOTELS: Final[list[FunctionTool]] = [search_hotels, get_hotel, book_hotel, modify_hotel, cancel_hotel]
