"""What the person knows whose mailbox it is: what mails shall say, and addresses that no address book holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.email.rows import Mailbox
from callwright_plugins.mcp_environments.people import person
from callwright_plugins.mcp_environments.wishes import ME, day_ahead, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the person is, somebody new to write to, and what to tell: a phone number, a case, an absence."""
    mailbox = world.get(Mailbox, ME)
    if entity != ME or mailbox is None:
        return None
    rng = wishes(world, "email")
    first, last = person(rng)
    away = rng.randrange(5, 15)
    return {
        "name": mailbox.name,
        "address": mailbox.address,
        "new_contact_name": f"{first} {last}",
        "new_contact_address": f"{first}.{last}@private-mail.example".lower(),
        "callback_phone": f"+00 555 {rng.randrange(10**6):06d}",
        "case_number": f"CN-{rng.randrange(10_000, 100_000)}",
        "away_from": day_ahead(world, away),
        "away_until": day_ahead(world, away + rng.randrange(3, 12)),
        "signature": f"Best, {mailbox.name.split()[0]}",
    }
