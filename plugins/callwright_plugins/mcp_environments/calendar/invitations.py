"""Tools about who takes part."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.calendar.agenda import (
    busy,
    changeable_event,
    occurrences,
    person_named,
    profile,
    refuse_over,
    visible_event,
)
from callwright_plugins.mcp_environments.calendar.parameters import EventId, PersonName
from callwright_plugins.mcp_environments.calendar.recurrence import LATEST
from callwright_plugins.mcp_environments.calendar.rows import Event, Invitee
from callwright_plugins.mcp_environments.calendar.views import InviteeView, invitee_view
from callwright_plugins.mcp_environments.times import DAY


class InvitationView(InviteeView):
    """An invitation, and which of the person's events overlap with the next occurrence."""

    event_id: str
    overlapping_event_ids: Annotated[list[str], Field(description="That person's other events at this time.")]


def _overlapping(world: World, event: Event, person_id: str) -> list[str]:
    ahead = occurrences(world, event, world.now, min(world.now + 62 * DAY, LATEST))
    first = min(ahead, key=lambda one: one.start, default=None)
    if first is None or event.show_as == "free":
        return []
    return [one.event.id for one in busy(world, person_id, first.start, first.end, event.id)]


@tool
def add_invitee(
    world: World,
    /,
    event_id: EventId,
    person: PersonName,
    optional: Annotated[bool, Field(description="Whether they may as well stay away.")] = False,
) -> InvitationView:
    """Invite somebody to an event that the signed-in person organises, and say which of their events overlap.

    ALREADY_INVITED if they are, or if they are the organiser; NOT_ORGANIZER, EVENT_CANCELLED, PAST_EVENT too.
    """
    event = changeable_event(world, event_id)
    who = person_named(world, person)
    if who.id == event.organizer_id or world.get(Invitee, (event.id, who.id)) is not None:
        raise ToolError("ALREADY_INVITED", f"{who.name} ({who.email}) already takes part in {event.id}")
    invitee = world.put(Invitee(event.id, who.id, "needs_action", optional))
    overlapping = _overlapping(world, event, who.id)
    return {**invitee_view(world, invitee), "event_id": event.id, "overlapping_event_ids": overlapping}


@tool(destructive=True)
def remove_invitee(world: World, /, event_id: EventId, person: PersonName) -> InviteeView:
    """Take back somebody's invitation to an event that the signed-in person organises. NOT_INVITED if there is none."""
    event = changeable_event(world, event_id)
    who = person_named(world, person)
    invitee = world.get(Invitee, (event.id, who.id))
    if invitee is None:
        raise ToolError("NOT_INVITED", f"{who.name} ({who.email}) is not invited to {event.id}; see list_invitees")
    view = invitee_view(world, invitee)
    world.drop(invitee)
    return view


@tool(idempotent=True)
def respond_to_invite(
    world: World,
    /,
    event_id: EventId,
    response: Annotated[Literal["accepted", "tentative", "declined"], Field(description="The answer.")],
) -> InvitationView:
    """Answer an invitation of the signed-in person, and say which of their other events overlap.

    Declining frees the time. NOT_INVITED without an invitation (organisers have none), EVENT_CANCELLED, PAST_EVENT.
    """
    event = visible_event(world, event_id)
    me = profile(world).person_id
    invitee = world.get(Invitee, (event.id, me))
    if invitee is None:
        why = "you organise it" if event.organizer_id == me else "you are not invited"
        raise ToolError("NOT_INVITED", f"there is no invitation to {event.id} to answer: {why}")
    refuse_over(world, event)
    invitee = world.update(invitee, response=response)
    overlapping = [] if response == "declined" else _overlapping(world, event, me)
    return {**invitee_view(world, invitee), "event_id": event.id, "overlapping_event_ids": overlapping}


INVITATIONS = [add_invitee, remove_invitee, respond_to_invite]
