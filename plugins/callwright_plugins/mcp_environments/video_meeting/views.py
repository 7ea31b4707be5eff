"""What tools of video meetings return."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.video_meeting.rights import inside, my_id, role_of, running
from callwright_plugins.mcp_environments.video_meeting.rows import Meeting, Recording, User, Waiting


class MeetingSummary(TypedDict):
    """A meeting in a list."""

    meeting_id: str
    topic: str
    host_email: str
    my_role: Annotated[str, Field(description="What you are in it.")]
    status: str
    starts_at: Annotated[str, Field(description="UTC.")]
    minutes: Annotated[int, Field(description="Planned.")]


class PersonView(TypedDict):
    """Somebody who is in a meeting, waits or is invited."""

    user_id: str
    name: str
    email: str
    role: str
    muted: Annotated[bool, Field(description="Cannot be heard.")]


class MeetingView(MeetingSummary):
    """A meeting. Who waits is shown to hosts only, and to others as an empty list."""

    has_passcode: bool
    waiting_room: bool
    capacity: int
    recording: str
    share_recordings: bool
    recording_id: str
    started_at: str | None
    ended_at: str | None
    invited: list[PersonView]
    participants: list[PersonView]
    waiting: list[PersonView]


class RecordingView(TypedDict):
    """A recording; ``minutes`` counts up to now while it runs."""

    recording_id: str
    meeting_id: str
    topic: str
    started_by: Annotated[str, Field(description="Id of a user.")]
    started_at: str
    stopped_at: Annotated[str | None, Field(description="null: it runs.")]
    minutes: Annotated[int, Field(description="Up to now while it runs.")]


def meeting_summary(world: World, meeting: Meeting) -> MeetingSummary:
    """A meeting in a list."""
    return {
        "meeting_id": meeting.id,
        "topic": meeting.topic,
        "host_email": world.need(User, meeting.host_id).email,
        "my_role": role_of(world, meeting, my_id(world)),
        "status": meeting.status,
        "starts_at": iso(meeting.starts_at),
        "minutes": meeting.minutes,
    }


def person_view(world: World, meeting: Meeting, user_id: str, muted: bool = False) -> PersonView:
    """Somebody in a meeting."""
    user = world.need(User, user_id)
    return {
        "user_id": user.id,
        "name": user.name,
        "email": user.email,
        "role": role_of(world, meeting, user_id) or "guest",
        "muted": muted,
    }


def meeting_view(world: World, meeting: Meeting) -> MeetingView:
    """A meeting with its people."""
    recording = running(world, meeting.id)
    waiting: list[Waiting] = []
    if role_of(world, meeting, my_id(world)) in ("host", "cohost"):
        waiting = sorted(world.find(Waiting, meeting_id=meeting.id), key=lambda one: (one.arrived_at, one.user_id))
    return {
        **meeting_summary(world, meeting),
        "has_passcode": bool(meeting.passcode),
        "waiting_room": meeting.waiting_room,
        "capacity": meeting.capacity,
        "recording": meeting.recording,
        "share_recordings": meeting.share_recordings,
        "recording_id": "" if recording is None else recording.id,
        "started_at": None if meeting.started_at is None else iso(meeting.started_at),
        "ended_at": None if meeting.ended_at is None else iso(meeting.ended_at),
        "invited": [person_view(world, meeting, one) for one in meeting.invited_ids],
        "participants": [person_view(world, meeting, one.user_id, one.muted) for one in inside(world, meeting.id)],
        "waiting": [person_view(world, meeting, one.user_id) for one in waiting],
    }


def recording_view(world: World, recording: Recording) -> RecordingView:
    """A recording."""
    end = world.now if recording.stopped_at is None else recording.stopped_at
    return {
        "recording_id": recording.id,
        "meeting_id": recording.meeting_id,
        "topic": world.need(Meeting, recording.meeting_id).topic,
        "started_by": recording.started_by,
        "started_at": iso(recording.started_at),
        "stopped_at": None if recording.stopped_at is None else iso(recording.stopped_at),
        "minutes": (end - recording.started_at) // 60,
    }
