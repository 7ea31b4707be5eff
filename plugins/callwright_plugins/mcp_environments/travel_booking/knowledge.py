"""What the customer of the travel agency knows: passports, days, money, and who comes along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.people import person
from callwright_plugins.mcp_environments.times import iso_date
from callwright_plugins.mcp_environments.travel_booking.rows import Airport, Flight, Profile, Traveler
from callwright_plugins.mcp_environments.wishes import ME, day_ahead, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """When and where the customer wants to go, for how much, and somebody new with a passport; of a traveller, by id,
    what stands in theirs.
    """
    if entity != ME:
        traveler = world.get(Traveler, entity)
        if traveler is None:
            return None
        return {"passport_no": traveler.passport_no, "passport_expires": traveler.passport_expires}
    profile = world.get(Profile, ME)
    if profile is None:
        return None
    rng = wishes(world, "travel_booking")
    facts: dict[str, Any] = {"name": profile.name, "email": profile.email}
    flights = [one for one in world.base.rows(Flight).values() if not one.cancelled and one.departs_at > world.base.now]
    if flights:
        wanted = rng.choice(flights)
        place = world.base.rows(Airport).get(wanted.destination)
        facts |= {
            "travel_day": iso_date(wanted.departs_at),
            "origin": wanted.origin,
            "destination": wanted.destination,
            "destination_city": place.city if place is not None else wanted.destination,
        }
    first, last = person(rng)
    return facts | {
        "nights": rng.randrange(1, 5),
        "budget_cents": rng.randrange(15, 80) * 1000,
        "seat_wish": rng.choice(("window", "aisle")),
        "fare_wish": rng.choice(("basic", "standard", "flex")),
        "least_stars": rng.choice((3, 3, 4)),
        "companion_first_name": first,
        "companion_last_name": last,
        "companion_birth_date": f"{rng.randint(1960, 2004)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
        "companion_passport_no": f"{rng.choice('CFGHJK')}{rng.randrange(10**7, 10**8)}",
        "companion_passport_expires": day_ahead(world, rng.randrange(400, 2500)),
    }
