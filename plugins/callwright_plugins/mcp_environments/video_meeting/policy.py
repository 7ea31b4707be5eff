"""The rules of video meetings, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.video_meeting.rows import Profile, User

POLICY: Final = Policy(
    "You look after video meetings for the person who is signed in.",
    (
        Rule("Only the host starts and ends a meeting; host and co-hosts admit and mute.", "NOT_HOST"),
        Rule("A meeting with a passcode is started with it; only the person knows it.", "BAD_PASSCODE"),
        Rule("Nobody is live in two meetings.", "HOST_BUSY"),
        Rule("People are admitted, muted and recorded in live meetings only.", "NOT_STARTED"),
        Rule("A meeting that ended is never live again.", "ALREADY_ENDED"),
        Rule("Only who waits is admitted.", "NOT_IN_WAITING_ROOM"),
        Rule("There are never more people inside than the capacity, which the host's plan limits.", "CAPACITY"),
        Rule("Meetings without recording, and plans without it, have none.", "RECORDING_DISABLED"),
        Rule("There is one recording at a time.", "ALREADY_RECORDING"),
        Rule("Meetings to which one is not invited stay closed.", "PERMISSION_DENIED"),
        Rule("Meetings are scheduled for times to come.", "PAST_TIME"),
        Rule("The host's plan limits how long a meeting lasts.", "DURATION_LIMIT"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    user = world.need(User, world.need(Profile, "me").user_id)
    return f"{user.name} ({user.email}), plan {user.plan}"
