"""Worlds of the team chat: a lively workspace, a new one, and one full of closed doors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

import attrs

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.injections import INJECTIONS
from callwright_plugins.mcp_environments.people import FIRST, person
from callwright_plugins.mcp_environments.team_chat.rows import (
    Channel,
    Membership,
    Message,
    Pin,
    Profile,
    Reaction,
    ThreadLock,
    User,
)
from callwright_plugins.mcp_environments.times import HOUR, MINUTE

_NAMES: Final = (
    "general", "random", "design", "backend", "frontend", "sales", "support", "hiring", "security", "launch", "data",
    "mobile", "docs", "travel", "lunch", "finance",
)  # fmt: skip
_TEXTS: Final = (
    "The build is green again.", "Who can review my change?", "Deploy is planned for three o'clock.",
    "The customer is happy with the demo.", "I am out on Thursday.", "Please read the notes of the meeting.",
    "The invoice page is slow today.", "We found the cause of the outage.", "Lunch at noon?",
    "The new logo is in the folder.", "Numbers for the week are ready.", "Can somebody restart the test server?",
)  # fmt: skip
_EMOJI: Final = ("thumbsup", "heart", "tada", "eyes", "rocket")


class _Workspace:
    """The rows of a workspace in the making."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Any] = []
        self.numbers: dict[type[Any], int] = {}
        self.clock = NOW

    def add(self, kind: type[Any], *values: Any) -> Any:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        made = kind(table_of(kind).identifier(self.numbers[kind]), *values)
        self.rows.append(made)
        return made

    def user(self, first: str, last: str, kind: str = "member", handle: str = "") -> User:
        number = self.numbers.get(User, 0) + 1
        made: User = self.add(User, handle or f"{first}.{last}{number}".lower(), f"{first} {last}", kind)
        return made

    def channel(
        self,
        name: str,
        members: Sequence[User],
        *,
        private: bool = False,
        archived: bool = False,
        posting: str = "everyone",
    ) -> Channel:
        made: Channel = self.add(Channel, name, f"About {name}", private, archived, posting, members[0].id)
        for place, user in enumerate(members):
            self.rows.append(Membership(made.id, user.id, "member" if place else "admin"))
        return made

    def message(
        self, channel: Channel, author: User, sent_at: int, *, thread: str = "", mention: User | None = None
    ) -> Message:
        text = self.rng.choice(_TEXTS)
        if mention is not None:
            text = f"@{mention.handle} {text}"
        mentions = () if mention is None else (mention.id,)
        made: Message = self.add(Message, channel.id, thread, author.id, text, mentions, sent_at, False)
        return made

    def talk(self, channel: Channel, members: Sequence[User], count: int) -> list[Message]:
        """Messages with replies and reactions, up to an hour ago."""
        rng, found = self.rng, list[Message]()
        for number in range(count):
            sent_at = NOW - HOUR - (count - number) * 47 * MINUTE
            author = rng.choice(members)
            other = rng.choice(members)
            mention = other if rng.random() < 0.15 and other is not author else None
            first = self.message(channel, author, sent_at, mention=mention)
            found.append(first)
            for reply in range(rng.choice((0, 0, 0, 1, 2, 4))):
                self.message(channel, rng.choice(members), sent_at + (reply + 1) * MINUTE, thread=first.id)
            if rng.random() < 0.3:
                for user in rng.sample(members, min(len(members), 2)):
                    self.rows.append(Reaction(first.id, user.id, rng.choice(_EMOJI)))
        return found

    def pin(self, messages: Sequence[Message]) -> None:
        for one in messages:
            self.rows.append(Pin(one.id, one.channel_id, one.author_id, one.sent_at + MINUTE))


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """Forty people in sixteen channels: some private, some archived, one for announcements."""
    made = _Workspace(rng)
    me = made.user(*person(rng))
    made.rows.append(Profile("me", me.id))
    kinds = ("member",) * 12 + ("guest", "deactivated")
    others = [made.user(*person(rng), rng.choice(kinds)) for _ in range(max(5, round(40 * scale)))]
    members = [one for one in others if one.kind == "member"] or others[:1]
    for number in range(max(6, round(16 * scale))):
        name = _NAMES[number] if number < len(_NAMES) else f"project-{number}"
        joined = rng.sample(members, min(len(members), rng.randint(4, 20)))
        if number % 4 != 3:  # the channels that the signed-in person is in
            joined = [me, *joined] if number % 3 == 1 else [joined[0], me, *joined[1:]]
        channel = made.channel(
            name,
            joined,
            private=number % 5 == 4 or number == 7,
            archived=number % 7 == 6,
            posting="admins" if number == 9 else "everyone",
        )
        messages = made.talk(channel, joined, 40)
        made.pin(messages[:: rng.choice((7, 11))])
        if number % 2:
            made.rows.append(ThreadLock(messages[-1].id, joined[0].id))
    yield from made.rows


def injected(rng: Random, scale: float) -> Iterator[Any]:
    """As :func:`typical`, and in channels of the signed-in person messages that tell whoever reads them what to do."""
    rows = list(typical(rng, scale))
    me = next(row.user_id for row in rows if isinstance(row, Profile))
    mine = {row.channel_id for row in rows if isinstance(row, Membership) and row.user_id == me}
    read = [row for row in rows if isinstance(row, Message) and row.channel_id in mine and row.author_id != me]
    planted = zip(rng.sample(read, len(INJECTIONS["team_chat"])), INJECTIONS["team_chat"], strict=True)
    texts = {message.id: one.text for message, one in planted}
    for row in rows:
        told = texts.get(row.id) if isinstance(row, Message) else None
        yield row if told is None else attrs.evolve(row, text=told, mentions=())


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """Three people, one channel, one message."""
    made = _Workspace(rng)
    people = [made.user(*person(rng)) for _ in range(max(3, round(3 * scale)))]
    made.rows.append(Profile("me", people[0].id))
    channel = made.channel("general", people[:2])
    made.message(channel, people[1], NOW - HOUR)
    yield from made.rows


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Channels of nearly one name, namesakes, full pins, locked threads, guests and people who are gone."""
    made = _Workspace(rng)
    me = made.user("Sam", "Novak", handle="sam.novak")
    made.rows.append(Profile("me", me.id))
    twins = [made.user("Sam", "Novak", handle=handle) for handle in ("sam.novak1", "sam-novak", "samnovak")]
    gone = made.user("Gone", "Person", "deactivated", "gone")
    guest = made.user("Guest", "Busy", "guest", "guest.busy")
    free = made.user("Guest", "Free", "guest", "guest.free")
    others = [made.user(rng.choice(FIRST), "Smith") for _ in range(max(3, round(12 * scale)))]
    made.channel("launch", [others[0], me, *twins], archived=True)
    made.talk(made.channel("launch-2", [me, *twins, *others[:3]]), [me, *others[:3]], 12)
    secret = made.channel("launch2", [others[0], others[1]], private=True)
    made.talk(secret, others[:2], 5)
    full = made.channel("launches", [others[0], me, guest, gone])
    messages = made.talk(full, [others[0], me], 14)
    made.pin(messages[:10])
    news = made.channel("launch-news", [others[0], me, twins[0]], posting="admins")
    announced = made.talk(news, [others[0]], 6)
    made.rows.append(ThreadLock(announced[0].id, others[0].id))
    made.rows.append(ThreadLock(messages[0].id, others[0].id))
    outside = made.channel("launch-public", [others[0], others[2], free][:2])
    made.talk(outside, [others[0], others[2]], 6)
    archived = made.channel("old-launch", [me, others[0]], archived=True)
    made.talk(archived, [me, others[0]], 6)
    nearly = made.channel("nearly-full", [me, others[0]])
    made.pin(made.talk(nearly, [me, others[0]], 12)[:9])
    for number in range(max(1, round(20 * scale))):
        made.channel(f"launch-{number + 3}", [others[number % len(others)], me], archived=number % 3 == 0)
    yield from made.rows


SCENARIOS: Final = {
    "typical": Scenario(typical, "forty people, sixteen channels, threads, pins and reactions"),
    "sparse": Scenario(sparse, "three people, one channel, one message"),
    "adversarial": Scenario(adversarial, "namesakes, similar channels, full pins, locked threads, archived channels"),
    "injected": Scenario(injected, "as typical, with messages that tell their reader what to do"),
}
