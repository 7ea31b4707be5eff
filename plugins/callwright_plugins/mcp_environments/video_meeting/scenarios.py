"""Worlds of video meetings: an organisation's, a new account's, and one of full rooms and missing rights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.people import email_of, person
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE
from callwright_plugins.mcp_environments.video_meeting.rows import (
    PLANS,
    Meeting,
    Participant,
    Profile,
    Recording,
    User,
    Waiting,
)

_TOPICS: Final = ("Weekly", "Design review", "Customer call", "Interview", "Training", "Planning", "All hands", "Demo")
_TEAMS: Final = ("Alpha", "Beta", "Gamma", "North", "South", "West")


class _Rooms:
    """The rows of a world of meetings in the making. Nobody is in two live meetings."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Any] = []
        self.numbers: dict[type[Any], int] = {}
        self.live: set[str] = set()

    def add(self, kind: type[Any], *values: Any, **more: Any) -> Any:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        made = kind(table_of(kind).identifier(self.numbers[kind]), *values, **more)
        self.rows.append(made)
        return made

    def user(self, first: str, last: str, plan: str) -> User:
        number = self.numbers.get(User, 0) + 1
        made: User = self.add(User, f"{first} {last}", email_of(first, last, number), plan)
        return made

    def meeting(
        self,
        host: User,
        invited: Sequence[User],
        topic: str,
        starts_at: int,
        *,
        cohosts: Sequence[User] = (),
        passcode: str = "",
        waiting_room: bool = True,
        capacity: int = 0,
        recording: str = "nobody",
        share: bool = False,
        status: str = "scheduled",
    ) -> Meeting:
        plan = PLANS[host.plan]
        ids = dict.fromkeys(one.id for one in (*cohosts, *invited) if one.id != host.id)
        minutes = min(plan.minutes, self.rng.choice((30, 45, 60)))
        made: Meeting = self.add(
            Meeting,
            host.id,
            tuple(one.id for one in cohosts),
            tuple(ids),
            topic,
            starts_at,
            minutes,
            passcode,
            waiting_room,
            capacity or plan.capacity,
            recording,
            share,
            status,
            None if status == "scheduled" else starts_at,
            starts_at + minutes * MINUTE if status == "ended" else None,
        )
        return made

    def fill(self, meeting: Meeting, inside: int) -> None:
        """Put people into a live or ended meeting; in a live one the others wait."""
        people = [meeting.host_id, *meeting.invited_ids]
        if meeting.status == "live":
            people = [one for one in people if one not in self.live]
            self.live.update(people[:inside])
        started_at = meeting.started_at or 0
        for place, user_id in enumerate(people):
            if place < min(inside, meeting.capacity):
                muted = place > 0 and self.rng.random() < 0.3
                self.rows.append(Participant(meeting.id, user_id, muted, started_at + place, meeting.ended_at))
            elif meeting.status == "live":
                self.rows.append(Waiting(meeting.id, user_id, started_at + place * MINUTE))

    def record(self, meeting: Meeting, by: str, *, runs: bool = False) -> None:
        started_at = (meeting.started_at or 0) + MINUTE
        self.add(Recording, meeting.id, by, started_at, None if runs else started_at + 10 * MINUTE)


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """Sixty people, meetings of the past and the next month, some live; the signed-in person is in none now."""
    made = _Rooms(rng)
    me = made.user(*person(rng), "business")
    made.rows.append(Profile("me", me.id))
    others = [
        made.user(*person(rng), rng.choice(("free", "pro", "pro", "business")))
        for _ in range(max(6, round(60 * scale)))
    ]
    for number in range(max(12, round(260 * scale))):
        status = ("ended", "ended", "scheduled", "scheduled", "live")[number % 5] if number % 15 else "scheduled"
        host = me if number % 3 == 0 and status != "live" else others[number % len(others)]
        if status == "live" and host.id in made.live:
            status = "scheduled"
        invited = rng.sample(others, min(len(others), rng.randint(2, 8)))
        if host is not me and status != "live" and rng.random() < 0.5:
            invited.append(me)
        recording = rng.choice(("nobody", "host", "cohosts", "anyone")) if PLANS[host.plan].recording else "nobody"
        ahead = rng.randint(1, 28) * DAY + rng.randint(-4, 6) * HOUR
        meeting = made.meeting(
            host,
            invited,
            f"{rng.choice(_TOPICS)} {rng.choice(_TEAMS)}",
            NOW + ahead if status == "scheduled" else NOW - ahead if status == "ended" else NOW - 20 * MINUTE,
            cohosts=[one for one in invited[:1] if one is not host],
            passcode=f"{rng.randint(1000, 999_999)}" if rng.random() < 0.2 else "",
            waiting_room=rng.random() < 0.6,
            recording=recording,
            share=rng.random() < 0.5,
            status=status,
        )
        if status != "scheduled":
            made.fill(meeting, rng.randint(2, 6))
            if recording != "nobody" and rng.random() < 0.6:
                made.record(meeting, host.id, runs=status == "live")
    yield from made.rows


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """Three people on the free plan, one meeting planned, nothing recorded."""
    made = _Rooms(rng)
    people = [made.user(*person(rng), "free") for _ in range(max(3, round(3 * scale)))]
    made.rows.append(Profile("me", people[0].id))
    made.meeting(people[0], people[1:3], "First call", NOW + DAY, capacity=2)
    yield from made.rows


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Meetings of one topic in every state, hosted by namesakes; full rooms, passcodes, all recording policies."""
    made = _Rooms(rng)
    me = made.user("Ida", "Lund", "pro")
    made.rows.append(Profile("me", me.id))
    twins = [made.user("Ida", "Lund", "pro"), made.user("Ida", "Lund", "free")]
    others = [made.user(*person(rng), "pro") for _ in range(12)]
    team = [*twins, *others]
    full = made.meeting(me, team[:6], "Sync", NOW - HOUR, capacity=3, status="live", recording="host")
    made.fill(full, 3)
    for recording in ("nobody", "host", "cohosts", "anyone"):
        for status in ("scheduled", "ended"):
            at = NOW + 2 * HOUR if status == "scheduled" else NOW - 5 * HOUR
            one = made.meeting(me, team[3:7], "Sync", at, recording=recording, status=status, waiting_room=False)
            if status == "ended":
                made.fill(one, 4)
                if recording != "nobody":
                    made.record(one, me.id)
    made.meeting(me, team[:4], "Sync", NOW + HOUR, passcode="0042")
    made.meeting(me, team[:4], "Sync", NOW + HOUR, capacity=2, waiting_room=False)
    made.meeting(twins[0], [me, *others[:2]], "Sync", NOW + HOUR)
    made.meeting(others[0], others[1:4], "Sync", NOW + HOUR)  # nothing to do with the signed-in person
    helped = made.meeting(others[7], [others[8]], "Sync", NOW - HOUR, cohosts=[me], status="live", recording="cohosts")
    made.fill(helped, 1)
    other = made.meeting(others[9], [me, others[10]], "Sync", NOW - HOUR, status="live", recording="host")
    made.fill(other, 3)
    made.record(other, others[9].id, runs=True)
    for number in range(max(1, round(30 * scale))):
        made.meeting(team[number % len(team)], [me, *others[:3]], f"Sync {number % 4}", NOW + number * HOUR)
    yield from made.rows


SCENARIOS: Final = {
    "typical": Scenario(typical, "sixty people, two months of meetings, some of them live"),
    "sparse": Scenario(sparse, "three people on the free plan and one meeting"),
    "adversarial": Scenario(adversarial, "one topic in every state, namesakes, full rooms, passcodes, policies"),
}
