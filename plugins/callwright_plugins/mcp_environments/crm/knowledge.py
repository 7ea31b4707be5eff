"""What somebody in sales knows: whom they met, and how deals stand, before any of it is entered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.crm.rows import Owner, Profile
from callwright_plugins.mcp_environments.people import company, person
from callwright_plugins.mcp_environments.wishes import ME, day_ahead, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the person is, somebody they met, and the facts of a deal that the books lack."""
    profile = world.get(Profile, ME)
    owner = None if profile is None else world.get(Owner, profile.owner_id)
    if entity != ME or owner is None:
        return None
    rng = wishes(world, "crm")
    first, last = person(rng)
    firm = company(rng)
    return {
        "name": owner.name,
        "email": owner.email,
        "met_name": f"{first} {last}",
        "met_email": f"{first}.{last}@{firm.split()[0]}-group.example".lower(),
        "met_phone": f"+00 555 {rng.randrange(10**6):06d}",
        "met_company": firm,
        "met_source": rng.choice(("referral", "event", "cold_call")),
        "deal_amount_cents": rng.randrange(20, 400) * 10_000,
        "close_date": day_ahead(world, rng.randrange(14, 90)),
        "next_step": rng.choice(("Send the contract", "Visit the site", "Talk to the board", "Agree on dates")),
        "lost_reason": rng.choice(("postponed to next year", "built it themselves", "merged with a supplier")),
        "call_notes": rng.choice(("Wants two weeks to think.", "Asked about support hours.", "Prefers a lease.")),
    }
