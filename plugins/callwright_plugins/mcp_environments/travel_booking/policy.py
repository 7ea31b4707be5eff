"""The rules of a travel agency, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.travel_booking.rows import Profile

POLICY: Final = Policy(
    "You book travel for the customer who is signed in. Money is in cents; days and times are UTC; nothing is "
    "bought or cancelled unasked.",
    (
        Rule(
            "Flights and rooms are on sale for the days of the schedule only; searches outside of it say so.",
            "OUTSIDE_SCHEDULE",
        ),
        Rule(
            "Seats are held at the price that was quoted; one that is no longer true is asked for again.",
            "FARE_CHANGED",
        ),
        Rule("Nobody gets more seats or rooms than are left.", "SOLD_OUT"),
        Rule("A hold keeps seats and price for thirty minutes.", "HOLD_EXPIRED"),
        Rule("A booking names as many travellers as it has seats.", "TRAVELER_COUNT"),
        Rule("At least one traveller of a booking is an adult.", "ADULT_REQUIRED"),
        Rule("To another country everybody has a passport that is valid on arrival.", "TRAVELER_DOC_MISSING"),
        Rule("Nobody is on two flights at once.", "TRAVELER_CONFLICT"),
        Rule("The cheapest fare is neither changed nor refunded.", "NOT_CHANGEABLE"),
        Rule(
            "A cancellation names the fee that get_fare_rules tells for the booking, and the customer agreed to it.",
            "FEE_NOT_ACCEPTED",
        ),
        Rule("Exit rows are not for children.", "SEAT_RESTRICTED"),
        Rule("Seats are those of the fare's cabin.", "WRONG_CABIN"),
        Rule("A stay has at least as many nights as its first night asks for.", "MIN_STAY"),
        Rule("A room sleeps no more guests than it is made for.", "ROOM_TOO_SMALL"),
        Rule("Points are spent once they are earned, at most as many as there are.", "INSUFFICIENT_POINTS"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    profile = world.need(Profile, "me")
    return f"{profile.name} ({profile.email})"
