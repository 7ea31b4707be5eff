"""The rules of an issue tracker, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.issue_tracker.rows import Profile, User

POLICY: Final = Policy(
    "You work in the issue tracker for the person who is signed in.",
    (
        Rule("Only members of a project change its issues or are assigned to them.", "NOT_PROJECT_MEMBER"),
        Rule("Archived projects are read and not changed.", "PROJECT_ARCHIVED"),
        Rule("An issue moves along the edges of its project's workflow only.", "ILLEGAL_TRANSITION"),
        Rule("Some edges need the issue to be assigned first.", "ASSIGNEE_REQUIRED"),
        Rule("An issue that is closed gets a resolution.", "RESOLUTION_REQUIRED"),
        Rule("An issue is not resolved as done while one that blocks it is open.", "BLOCKED_BY_OPEN_LINK"),
        Rule("Issues that block, or duplicate, one another form no circle.", "LINK_CYCLE"),
        Rule("A project has at most one active sprint.", "SPRINT_ACTIVE"),
        Rule("Closed sprints stay as they are.", "SPRINT_CLOSED"),
        Rule("A sprint is started with issues in it.", "EMPTY_SPRINT"),
        Rule("Closed issues and epics go into no sprint.", "NOT_PLANNABLE"),
        Rule("Work is logged after it was done.", "FUTURE_TIME"),
        Rule("Nothing is assigned to somebody whose account is closed.", "USER_INACTIVE"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    user = world.need(User, world.need(Profile, "me").user)
    return f"{user.name} ({user.email}), user {user.id}"
