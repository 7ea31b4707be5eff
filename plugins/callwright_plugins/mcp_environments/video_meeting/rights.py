"""Who is who in a meeting, and what state it is in."""

from __future__ import annotations

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.video_meeting.rows import Meeting, Participant, Profile, Recording, User


def my_id(world: World) -> str:
    """The id of the signed-in person."""
    return world.need(Profile, "me").user_id


def role_of(world: World, meeting: Meeting, user_id: str) -> str:
    """``host``, ``cohost``, ``invited``, ``guest`` (came without an invitation), or empty."""
    if meeting.host_id == user_id:
        return "host"
    if user_id in meeting.cohost_ids:
        return "cohost"
    if user_id in meeting.invited_ids:
        return "invited"
    return "guest" if world.get(Participant, (meeting.id, user_id)) is not None else ""


def user_named(world: World, text: str) -> User:
    """The person with this id or address. Fails with ``NOT_FOUND``."""
    wanted = text.strip()
    user = world.get(User, wanted) or next(iter(world.find(User, email=wanted.lower())), None)
    if user is None:
        raise ToolError(
            "NOT_FOUND", f"there is nobody with the id or address {wanted[:60]!r}; get_meeting names people"
        )
    return user


def known_meeting(world: World, meeting_id: str) -> Meeting:
    """A meeting that the signed-in person has to do with. Fails with ``NOT_FOUND`` or ``PERMISSION_DENIED``."""
    meeting = world.need(
        Meeting, meeting_id, message=f"there is no meeting {meeting_id[:40]!r}; list_meetings gives ids"
    )
    if not role_of(world, meeting, my_id(world)):
        raise ToolError("PERMISSION_DENIED", f"you are not invited to {meeting.id}")
    return meeting


def live_meeting(world: World, meeting_id: str) -> Meeting:
    """A meeting that is live. Fails with ``NOT_STARTED`` or ``ALREADY_ENDED`` too."""
    meeting = known_meeting(world, meeting_id)
    if meeting.status == "scheduled":
        raise ToolError("NOT_STARTED", f"{meeting.id} has not been started; it is planned for {iso(meeting.starts_at)}")
    refuse_ended(meeting)
    return meeting


def refuse_ended(meeting: Meeting) -> None:
    """Fails with ``ALREADY_ENDED``."""
    if meeting.status == "ended":
        raise ToolError("ALREADY_ENDED", f"{meeting.id} ended at {iso(meeting.ended_at or 0)}; schedule another one")


def require_host(world: World, meeting: Meeting, *, cohosts: bool) -> None:
    """Fails with ``NOT_HOST`` unless the signed-in person is the host or, with ``cohosts``, a co-host."""
    role = role_of(world, meeting, my_id(world))
    if role != "host" and not (cohosts and role == "cohost"):
        host = world.need(User, meeting.host_id)
        also = " or a co-host" if cohosts else ""
        raise ToolError("NOT_HOST", f"only the host {host.name} ({host.email}){also} may do this in {meeting.id}")


def inside(world: World, meeting_id: str) -> list[Participant]:
    """Who is in a meeting now."""
    return world.find(Participant, meeting_id=meeting_id, left_at=None)


def is_live_elsewhere(world: World, user_id: str) -> bool:
    """Whether somebody is in any meeting now."""
    return bool(world.find(Participant, user_id=user_id, left_at=None))


def running(world: World, meeting_id: str) -> Recording | None:
    """The recording that runs now."""
    return next(iter(world.find(Recording, meeting_id=meeting_id, stopped_at=None)), None)
