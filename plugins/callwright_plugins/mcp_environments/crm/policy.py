"""The rules of customer relations, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.crm.rows import Owner, Profile

POLICY: Final = Policy(
    "You keep the records of a sales team for the member who is signed in.",
    (
        Rule(
            "An email address belongs to at most one contact, whatever its case, and to at most one open lead.",
            "DUPLICATE_EMAIL",
        ),
        Rule("A lead is converted once; after that one goes on with its contact.", "LEAD_ALREADY_CONVERTED"),
        Rule("Leads that were found unqualified are not converted.", "INVALID_STATE"),
        Rule(
            "Deals move through the open stages of their pipeline one at a time, and back as far as one likes.",
            "STAGE_SKIP_FORBIDDEN",
        ),
        Rule(
            "A stage may require facts of the deal, or that a call or a meeting was logged.",
            "MISSING_REQUIRED_FIELD",
        ),
        Rule("A deal that was won or lost does not move.", "DEAL_CLOSED"),
        Rule("Sales people convert and move what is theirs, or nobody's; managers everything.", "PERMISSION_DENIED"),
        Rule("Activities are logged after they took place.", "FUTURE_TIME"),
        Rule("An activity belongs to exactly one lead, contact or deal.", "BAD_TARGET"),
        Rule("Two different contacts are merged; there is no way back.", "SELF_MERGE"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    owner = world.need(Owner, world.need(Profile, "me").owner_id)
    return f"{owner.name} ({owner.email}), {owner.role}"
