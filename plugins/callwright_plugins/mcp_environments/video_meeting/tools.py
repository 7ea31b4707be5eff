"""The ten tools of video meetings."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.times import iso, parse_time
from callwright_plugins.mcp_environments.video_meeting.rights import (
    inside,
    is_live_elsewhere,
    known_meeting,
    live_meeting,
    my_id,
    refuse_ended,
    require_host,
    role_of,
    running,
    user_named,
)
from callwright_plugins.mcp_environments.video_meeting.rows import PLANS, Meeting, Participant, Recording, User, Waiting
from callwright_plugins.mcp_environments.video_meeting.views import (
    MeetingSummary,
    MeetingView,
    PersonView,
    RecordingView,
    meeting_summary,
    meeting_view,
    person_view,
    recording_view,
)

#: Latest time at which a meeting may be planned: the year 2100.
_LATEST: Final = 4_102_444_800

MeetingId = Annotated[str, Field(description="Id of a meeting, such as V00003.", min_length=1, max_length=40)]
Who = Annotated[str, Field(description="Id or email address of somebody.", min_length=1, max_length=120)]
People = Annotated[list[Who], Field(description="Ids or email addresses of people.", max_length=100)]
_PASSCODE: Final = {"x-sensitive": True}


@tool(read_only=True, discovery=True)
def list_meetings(
    world: World,
    /,
    status: Annotated[
        Literal["any", "scheduled", "live", "ended"], Field(description="Only meetings in this state.")
    ] = "any",
    role: Annotated[
        Literal["any", "host", "cohost", "invited", "guest"], Field(description="Only where you are this.")
    ] = "any",
    topic: Annotated[str, Field(description="Part of the topic; empty: any.", max_length=80)] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MeetingSummary]:
    """List the meetings that you host or are invited to, in order of time."""
    own, text = my_id(world), topic.strip().lower()
    found = [
        one
        for one in (world.rows(Meeting) if status == "any" else world.find(Meeting, status=status))
        for mine in (role_of(world, one, own),)
        if mine and role in ("any", mine) and text in one.topic.lower()
    ]
    found.sort(key=lambda one: (one.starts_at, one.id))
    return page(found, lambda one: meeting_summary(world, one), limit, cursor)


@tool(read_only=True)
def get_meeting(world: World, /, meeting_id: MeetingId) -> MeetingView:
    """A meeting with its rules and who is invited, inside and (for hosts) waiting. Its passcode is never shown.

    PERMISSION_DENIED if you have nothing to do with it.
    """
    return meeting_view(world, known_meeting(world, meeting_id))


@tool(read_only=True, discovery=True)
def list_recordings(
    world: World,
    /,
    meeting_id: Annotated[str, Field(description="Only of this meeting; empty: all of yours.", max_length=40)] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[RecordingView]:
    """List the recordings of meetings that you host or co-host, or whose host shares them with those invited."""
    own = my_id(world)
    held = (
        world.find(Recording, meeting_id=known_meeting(world, meeting_id).id)
        if meeting_id
        else list(world.rows(Recording))
    )
    found = [
        one
        for one in held
        for meeting in (world.need(Meeting, one.meeting_id),)
        for mine in (role_of(world, meeting, own),)
        if mine in ("host", "cohost") or (mine and meeting.share_recordings)
    ]
    found.sort(key=lambda one: (-one.started_at, one.id))
    return page(found, lambda one: recording_view(world, one), limit, cursor)


@tool(irreversible=True)
def schedule_meeting(
    world: World,
    /,
    topic: Annotated[str, Field(description="What it is about.", min_length=1, max_length=120)],
    starts_at: Annotated[str, Field(description="ISO 8601 time, UTC unless it has an offset.", max_length=40)],
    minutes: Annotated[int, Field(description="How long it takes.", ge=5, le=1440)],
    invitees: People | None = None,
    cohosts: Annotated[People, Field(description="Who may admit, mute and perhaps record too.")] | None = None,
    passcode: Annotated[
        str,
        Field(
            description="Four to ten digits, or empty for none.",
            pattern=r"^([0-9]{4,10})?$",
            json_schema_extra=_PASSCODE,
        ),
    ] = "",
    waiting_room: Annotated[bool, Field(description="Whether people wait until they are let in.")] = True,
    capacity: Annotated[
        int | None, Field(description="Most people inside; left out: your plan's.", ge=2, le=500)
    ] = None,
    recording: Annotated[
        Literal["nobody", "host", "cohosts", "anyone"], Field(description="Who may record.")
    ] = "nobody",
    share_recordings: Annotated[bool, Field(description="Whether those invited see the recordings.")] = False,
) -> MeetingView:
    """Schedule a meeting that you host.

    PAST_TIME for a start that is over; CAPACITY, DURATION_LIMIT, RECORDING_DISABLED for what your plan lacks.
    """
    own = world.need(User, my_id(world))
    plan = PLANS[own.plan]
    start = parse_time(starts_at)
    if not world.now <= start < _LATEST:
        raise ToolError("PAST_TIME", f"{starts_at[:40]} is not a time between now ({iso(world.now)}) and 2100")
    if capacity is not None and capacity > plan.capacity:
        raise ToolError("CAPACITY", f"your plan {own.plan!r} lets {plan.capacity} people in, not {capacity}")
    if minutes > plan.minutes:
        raise ToolError("DURATION_LIMIT", f"your plan {own.plan!r} allows {plan.minutes} minutes, not {minutes}")
    if recording != "nobody" and not plan.recording:
        raise ToolError("RECORDING_DISABLED", f"your plan {own.plan!r} has no recording; use recording='nobody'")
    helping = tuple(one for one in dict.fromkeys(user_named(world, who).id for who in cohosts or ()) if one != own.id)
    invited = dict.fromkeys((*helping, *(user_named(world, who).id for who in invitees or ())))
    meeting = Meeting(
        world.new_id(Meeting),
        own.id,
        helping,
        tuple(one for one in invited if one != own.id),
        topic,
        start,
        minutes,
        passcode,
        waiting_room,
        capacity or plan.capacity,
        recording,
        share_recordings,
    )
    return meeting_view(world, world.put(meeting))


@tool(latency=5, irreversible=True)
def start_meeting(
    world: World,
    /,
    meeting_id: MeetingId,
    passcode: Annotated[
        str, Field(description="The meeting's passcode, if it has one.", max_length=10, json_schema_extra=_PASSCODE)
    ] = "",
) -> MeetingView:
    """Start a meeting that you host; those invited arrive in its waiting room, or inside if it has none.

    NOT_HOST, ALREADY_STARTED, ALREADY_ENDED, BAD_PASSCODE, HOST_BUSY while you are in another one. If not everybody
    finds room inside, the result is partial (CAPACITY).
    """
    meeting = known_meeting(world, meeting_id)
    require_host(world, meeting, cohosts=False)
    refuse_ended(meeting)
    if meeting.status == "live":
        raise ToolError("ALREADY_STARTED", f"{meeting.id} has been live since {iso(meeting.started_at or 0)}")
    if meeting.passcode and passcode != meeting.passcode:
        raise ToolError("BAD_PASSCODE", f"the passcode of {meeting.id} is missing or wrong; ask the person for it")
    if is_live_elsewhere(world, meeting.host_id):
        raise ToolError("HOST_BUSY", "you are in another live meeting; end that one first (list_meetings status=live)")
    meeting = world.update(meeting, status="live", started_at=world.now)
    world.put(Participant(meeting.id, meeting.host_id, False, world.now))
    for user_id in meeting.invited_ids:
        if is_live_elsewhere(world, user_id):
            continue
        if meeting.waiting_room or len(inside(world, meeting.id)) >= meeting.capacity:
            world.put(Waiting(meeting.id, user_id, world.now))
            if not meeting.waiting_room:
                world.warn("CAPACITY", f"{meeting.id} has room for {meeting.capacity} people; others wait outside")
        else:
            world.put(Participant(meeting.id, user_id, False, world.now))
    return meeting_view(world, meeting)


@tool
def admit_participant(world: World, /, meeting_id: MeetingId, user: Who) -> PersonView:
    """Let somebody in from the waiting room of a live meeting, as its host or co-host (NOT_HOST).

    NOT_IN_WAITING_ROOM if they do not wait there, CAPACITY if the meeting is full; NOT_STARTED, ALREADY_ENDED.
    """
    meeting = live_meeting(world, meeting_id)
    require_host(world, meeting, cohosts=True)
    person = user_named(world, user)
    waiting = world.get(Waiting, (meeting.id, person.id))
    if waiting is None:
        raise ToolError("NOT_IN_WAITING_ROOM", f"{person.name} ({person.email}) does not wait for {meeting.id}")
    if is_live_elsewhere(world, person.id):  # one may wait for two meetings, and goes into one
        raise ToolError("NOT_IN_WAITING_ROOM", f"{person.name} ({person.email}) is in another live meeting now")
    if len(inside(world, meeting.id)) >= meeting.capacity:
        raise ToolError("CAPACITY", f"{meeting.id} is full: {meeting.capacity} people are inside")
    world.drop(waiting)
    world.put(Participant(meeting.id, person.id, False, world.now))
    return person_view(world, meeting, person.id)


@tool(idempotent=True)
def mute_participant(world: World, /, meeting_id: MeetingId, user: Who) -> PersonView:
    """Mute somebody in a live meeting, as its host or co-host, or yourself. People unmute themselves.

    NOT_IN_MEETING if they are not inside (those who wait must be admitted first), NOT_HOST, NOT_STARTED, ALREADY_ENDED.
    """
    meeting = live_meeting(world, meeting_id)
    person = user_named(world, user)
    if person.id != my_id(world):
        require_host(world, meeting, cohosts=True)
    participant = world.get(Participant, (meeting.id, person.id))
    if participant is None or participant.left_at is not None:
        raise ToolError("NOT_IN_MEETING", f"{person.name} ({person.email}) is not in {meeting.id}")
    world.update(participant, muted=True)
    return person_view(world, meeting, person.id, muted=True)


@tool(latency=2)
def start_recording(world: World, /, meeting_id: MeetingId) -> RecordingView:
    """Record a live meeting in which you are, as far as its policy lets you.

    RECORDING_DISABLED if nobody may, NOT_HOST if others may, ALREADY_RECORDING; NOT_STARTED, ALREADY_ENDED.
    """
    meeting = live_meeting(world, meeting_id)
    own = my_id(world)
    if meeting.recording == "nobody":
        raise ToolError("RECORDING_DISABLED", f"{meeting.id} was scheduled without recording, which cannot be changed")
    if meeting.recording != "anyone":
        require_host(world, meeting, cohosts=meeting.recording == "cohosts")
    participant = world.get(Participant, (meeting.id, own))
    if participant is None or participant.left_at is not None:
        raise ToolError("NOT_IN_MEETING", f"you are not in {meeting.id}, and only people inside can record")
    current = running(world, meeting.id)
    if current is not None:
        raise ToolError("ALREADY_RECORDING", f"{meeting.id} is being recorded as {current.id}")
    return recording_view(world, world.put(Recording(world.new_id(Recording), meeting.id, own, world.now)))


@tool(latency=2)
def stop_recording(world: World, /, meeting_id: MeetingId) -> RecordingView:
    """Stop the recording of a live meeting, as its host or co-host or as whoever started it (NOT_HOST).

    NOT_RECORDING if none runs; NOT_STARTED, ALREADY_ENDED.
    """
    meeting = live_meeting(world, meeting_id)
    current = running(world, meeting.id)
    if current is None:
        raise ToolError("NOT_RECORDING", f"{meeting.id} is not being recorded")
    if current.started_by != my_id(world):
        require_host(world, meeting, cohosts=True)
    return recording_view(world, world.update(current, stopped_at=world.now))


@tool(destructive=True, latency=1, irreversible=True)
def end_meeting(world: World, /, meeting_id: MeetingId) -> MeetingView:
    """End a live meeting for everybody, as its host (NOT_HOST); a recording that runs is stopped and kept.

    NOT_STARTED, ALREADY_ENDED. It cannot be started again.
    """
    meeting = live_meeting(world, meeting_id)
    require_host(world, meeting, cohosts=False)
    current = running(world, meeting.id)
    if current is not None:
        world.update(current, stopped_at=world.now)
    for participant in inside(world, meeting.id):
        world.update(participant, left_at=world.now)
    for waiting in world.find(Waiting, meeting_id=meeting.id):
        world.drop(waiting)
    return meeting_view(world, world.update(meeting, status="ended", ended_at=world.now))


TOOLS: Final[list[FunctionTool]] = [
    list_meetings,
    get_meeting,
    list_recordings,
    schedule_meeting,
    start_meeting,
    admit_participant,
    mute_participant,
    start_recording,
    stop_recording,
    end_meeting,
]
