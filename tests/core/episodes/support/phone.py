"""A phone: the agent sees the line, and only its user can reach the switches. Workers import this module."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.errors import InfrastructureFailure
from callwright.plugins import Lazy, Registry
from callwright.walk.users.user import Looks


@cw.row("phones", prefix="P")
class Phone:
    """A phone."""

    id: str
    airplane: bool
    reset: int = 0


@cw.tool
def line(world: cw.World, /) -> dict[str, Any]:
    """Whether the line works, and how often it was reset."""
    phone = world.need(Phone, "P1")
    return {"works": not phone.airplane, "reset": phone.reset}


@cw.tool
def reset(world: cw.World, /) -> int:
    """Reset the line."""
    phone = world.need(Phone, "P1")
    return int(world.update(phone, reset=phone.reset + 1).reset)


@cw.tool
def flip(world: cw.World, /, on: bool) -> bool:
    """Switch airplane mode."""
    return bool(world.update(world.need(Phone, "P1"), airplane=on).airplane)


@cw.tool
def drop(world: cw.World, /, sign: str) -> str:
    """Drop the phone: the process ends, but only once."""
    if Path(sign).exists():
        return "it holds"
    Path(sign).touch()
    os._exit(7)


def phones(rng: random.Random, scale: float) -> Iterator[Phone]:
    yield Phone("P1", True)


PHONES = cw.StatefulEnvironment(
    "phones",
    rows=[Phone],
    tools=[line, reset],
    scenarios={"typical": cw.Scenario(phones)},
    user_tools=[flip, drop],
)
WORKS = {"holds": [{"table": "phones", "has": {"airplane": False}}], "nothing_else": False}
ASKS = {
    "does": [
        {
            "words": ["airplane mode"],
            "calls": [{"tool": "flip", "arguments": {"on": False}}],
            "say": "I have switched it off.",
        }
    ],
    "satisfied": WORKS,
    "patience": 2,
}


def task(number: int = 1, user: str = "scripted", **options: Any) -> cw.Task:
    """A phone that does not work; its user can mend that."""
    return cw.Task(
        id=f"p{number}",
        query="My phone does not work.",
        tools=PHONES.tools,
        environment=PHONES,
        scenario="typical",
        seed=number,
        answer=cw.Answer(),
        user=cw.UserSpec(user, options or (ASKS if user == "scripted" else {})),
    )


class Gambler:
    """Says numbers that it draws, and what it sees of the world; it rings off after ``turns``."""

    name = "gambler"

    def __init__(self, turns: int = 2) -> None:
        self.turns = turns

    def begin(self, task: cw.Task, seed: int) -> Gambling:
        return Gambling(self.turns, random.Random(seed))


class Gambling:
    def __init__(self, turns: int, drawn: random.Random) -> None:
        self.left, self.drawn = turns, drawn

    def reply(self, messages: Sequence[cw.Message], session: Looks) -> cw.Said:
        self.left -= 1
        works = session.check_goal(WORKS).equal
        said = f"{self.drawn.random()} at {session.now}, {works}, {dict(session.knowledge())}"
        return cw.Said(said, done=self.left < 0)


class Tinkerer:
    """Calls before it speaks, and says what came of it. ``calls`` are those of its first rounds."""

    name = "tinkerer"

    def __init__(self, calls: Sequence[Sequence[Any]] = ()) -> None:
        self.rounds = [[(tool, given) for tool, given in some] for some in calls]

    def begin(self, task: cw.Task, seed: int) -> Tinkering:
        return Tinkering(self.rounds)


class Tinkering:
    def __init__(self, rounds: Sequence[Sequence[tuple[str, Mapping[str, Any]]]]) -> None:
        self.rounds = [*rounds]

    def reply(self, messages: Sequence[cw.Message], session: Looks) -> cw.Said:
        if self.rounds:
            calls = [cw.Call(at, tool, given) for at, (tool, given) in enumerate(self.rounds.pop(0))]
            return cw.Said(calls=tuple(calls))
        heard = [message.text for message in messages if message.role == "tool"]
        return cw.Said(" ".join(heard) or "nothing", done=messages[-1].role == "assistant")


class Broken:
    """Does what it is told to do wrong."""

    name = "broken"

    def __init__(self, how: str = "raises") -> None:
        self.how = how

    def begin(self, task: cw.Task, seed: int) -> Broken:
        return self

    def reply(self, messages: Sequence[cw.Message], session: Looks) -> Any:
        if self.how == "fails":
            raise InfrastructureFailure("nobody answers the phone")
        if self.how == "calls on":
            return cw.Said(calls=(cw.Call(0, "flip", {"on": True}),))
        return {"raises": lambda: [][0], "is silent": cw.Said, "says 7": lambda: 7}[self.how]()


class UsersPlugin:
    """Registers them."""

    @cw.hookimpl
    def callwright_users(self) -> list[Lazy]:
        return [Lazy(kind.name, kind, "a test user") for kind in (Gambler, Tinkerer, Broken)]


def registry() -> Registry:
    """The usual plugins, and these users."""
    from callwright.plugins import load_plugins

    return load_plugins(extra={"test-users": UsersPlugin()})
