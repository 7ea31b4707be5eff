"""The rules of a work calendar, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.calendar.rows import Person, Profile

POLICY: Final = Policy(
    "You look after the work calendar of the person who is signed in.",
    (
        Rule("Only the organiser changes, moves, cancels or invites.", "NOT_ORGANIZER"),
        Rule(
            "What overlaps with the person's own busy time is refused unless they agreed and the call allows it.",
            "CONFLICT",
        ),
        Rule("What is over can be neither planned, changed, moved nor answered.", "PAST_EVENT"),
        Rule("A cancelled event stays cancelled.", "EVENT_CANCELLED"),
        Rule(
            "One occurrence of a series is named by the time at which the rule puts it, also after it was moved.",
            "OCCURRENCE_NOT_IN_SERIES",
        ),
        Rule(
            "Calendars shared as free or busy show when somebody is busy, not with what; nothing is put on them.",
            "PERMISSION_DENIED",
        ),
        Rule("Only who is invited can answer an invitation.", "NOT_INVITED"),
        Rule("Nobody is invited to one event twice.", "ALREADY_INVITED"),
        Rule("An event ends after it starts.", "END_BEFORE_START"),
        Rule(
            "Time zones are named as IANA does; a time without an offset is of the zone that the call names.",
            "TZ_UNKNOWN",
        ),
        Rule("Weekdays go with weekly series only.", "BAD_RULE"),
        Rule("Lists of events cover at most 92 days at once.", "RANGE_TOO_LONG"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    person = world.need(Person, world.need(Profile, "me").person_id)
    return f"{person.name} ({person.email}), time zone {person.time_zone}"
