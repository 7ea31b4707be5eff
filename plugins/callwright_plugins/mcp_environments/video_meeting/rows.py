"""The tables of video meetings, and what plans allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from callwright.environments.rows import row


@frozen
class Plan:
    """What a host's plan allows; ``capacity`` counts the host."""

    capacity: int
    minutes: int
    recording: bool


PLANS: Final[Mapping[str, Plan]] = {
    "free": Plan(capacity=5, minutes=40, recording=False),
    "pro": Plan(capacity=25, minutes=480, recording=True),
    "business": Plan(capacity=100, minutes=1440, recording=True),
}


@row("users", prefix="U", index=("email",))
class User:
    """Somebody with an account; ``plan`` is one of :data:`PLANS`."""

    id: str
    name: str
    email: str
    plan: str


@row("profile")
class Profile:
    """The signed-in person: one row, ``me``."""

    id: str
    user_id: str


@row(
    "meetings",
    prefix="V",
    index=("host_id", "status"),
    stamps=("started_at", "ended_at"),
    unordered=("cohost_ids", "invited_ids"),
)
class Meeting:
    """A meeting: scheduled, live or ended. ``recording`` says who may record: nobody, host, cohosts or anyone."""

    id: str
    host_id: str
    cohost_ids: tuple[str, ...]
    invited_ids: tuple[str, ...]
    topic: str
    starts_at: int
    minutes: int
    passcode: str
    waiting_room: bool
    capacity: int
    recording: str
    share_recordings: bool
    status: str = "scheduled"
    started_at: int | None = None
    ended_at: int | None = None


@row("participants", key=("meeting_id", "user_id"), index=("meeting_id", "user_id"), stamps=("joined_at", "left_at"))
class Participant:
    """Somebody who is (``left_at`` is ``None``) or was in a meeting."""

    meeting_id: str
    user_id: str
    muted: bool
    joined_at: int
    left_at: int | None = None


@row("waiting_room", key=("meeting_id", "user_id"), index=("meeting_id",), stamps=("arrived_at",))
class Waiting:
    """Somebody who waits to be let in."""

    meeting_id: str
    user_id: str
    arrived_at: int


@row("recordings", prefix="R", index=("meeting_id",), stamps=("started_at", "stopped_at"))
class Recording:
    """A recording; it runs while ``stopped_at`` is ``None``."""

    id: str
    meeting_id: str
    started_by: str
    started_at: int
    stopped_at: int | None = None


ROWS: Final[tuple[type[Any], ...]] = (User, Profile, Meeting, Participant, Waiting, Recording)
