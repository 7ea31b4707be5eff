"""A world with a memory, a form and rewards for pools. Workers import this module."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.environments import EventKind, FunctionEnvironment, Notice
from callwright.errors import Abstention, InfrastructureFailure
from callwright.walk.reward import RewardComponent, RewardRecipe, Score, Term
from callwright.walk.waiting import AsyncRewardComponent


@cw.tool
def add(state: list[int], /, n: int) -> list[int]:
    """Add a number."""
    state.append(n)
    return state


@cw.tool
def die(state: list[int], /, sign: str = "") -> list[int]:
    """End the process; with a sign only the first time."""
    if sign and Path(sign).exists():
        return state
    if sign:
        Path(sign).touch()
    os._exit(7)


@cw.tool
def sign(state: list[int], /) -> list[int]:
    """Add which process this is, so that no other one comes to the same."""
    state.append(os.getpid())
    return state


@cw.tool
def sleep(state: list[int], /, seconds: float) -> list[int]:
    """Sleep."""
    time.sleep(seconds)
    return state


def empty(scenario: str, seed: int) -> list[int]:
    return [seed]


WORLD = FunctionEnvironment("numbers", [add, die, sign, sleep], state=empty)


class ListForm:
    """Reads ``[["tool", {"name": value}], …]``."""

    name = "list"

    def parse(self, text: str) -> cw.Program | cw.ParseFailure:
        try:
            return cw.Program(tuple(cw.Call(i, tool, given) for i, (tool, given) in enumerate(json.loads(text))))
        except (ValueError, TypeError):
            return cw.ParseFailure("syntax", "not_a_list", "the text is not a list of calls", (0, len(text)))

    def render(self, program: cw.Program) -> str:
        return json.dumps([[call.tool, dict(call.arguments)] for call in program.calls])

    def instructions(self) -> str:
        return "Write a list of calls, or an empty list for no call."


class Sum(RewardComponent):
    """The sum of the last result, of a hundred; an attempt with a 1013 cannot be judged."""

    name = "sum"

    def score(self, attempt: cw.Attempt) -> Score:
        records = attempt.whole_trace.records
        held = records[-1].outcome.value if records else []
        if not isinstance(held, list):
            return Score(0.0, 0.0, 1.0, (cw.Evidence("lost", "nothing is held"),))
        if 1013 in held:
            raise Abstention("nobody knows about 1013")
        if 1017 in held:
            os._exit(9)
        if 1019 in held:
            time.sleep(60)
        if 1023 in held:
            raise ValueError("a bug")
        value = min(1.0, max(0.0, sum(held) / 100))
        return Score(value, 0.0, 1.0, () if value == 1 else (cw.Evidence("small", f"{held}"),))


class Lives(Sum):
    """Is set up and closed, and writes where."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def setup(self) -> None:
        (Path(self.folder) / f"setup-{os.getpid()}").touch()

    def close(self) -> None:
        (Path(self.folder) / f"close-{os.getpid()}").touch()


class Waits(AsyncRewardComponent):
    """Says in which process it was asked."""

    name = "waits"

    async def score(self, attempt: cw.Attempt) -> Score:  # type: ignore[override]
        if not attempt.turns:
            raise InfrastructureFailure("nothing was written")
        return Score(float(os.getpid()), 0.0, 1e9, (cw.Evidence("where", "here"),))


SUMS = RewardRecipe("sums", (Term(Sum()),))


def lives(folder: str) -> RewardRecipe:
    return RewardRecipe("lives", (Term(Lives(folder)),))


WAITS = RewardRecipe("waits", (Term(Waits()),), normalise=False)


def task(number: int, **more: Any) -> cw.Task:
    return cw.Task(
        id=f"t{number}",
        query="Add.",
        tools=WORLD.tools,
        environment=WORLD,
        seed=number,
        answer=cw.Answer((number,)),
        **more,
    )


@cw.row("alarms", prefix="A")
class Alarm:
    """Rings every minute."""

    id: str
    at: int
    rang: int = 0


@cw.tool
def wait(world: cw.World, /) -> int:
    """How often it rang."""
    return sum(alarm.rang for alarm in world.rows(Alarm))


def alarms(rng: random.Random, scale: float) -> Iterator[Alarm]:
    yield Alarm("A1", 1_772_442_000 + rng.randint(1, 60))


def due(world: cw.World, since: object) -> tuple[int, str] | None:
    return min(((alarm.at, alarm.id) for alarm in world.rows(Alarm)), default=None)


def ring(world: cw.World, key: Any) -> None:
    alarm = world.need(Alarm, key)
    world.update(alarm, at=alarm.at + 60, rang=alarm.rang + 1)


def rings(world: cw.World, key: Any, came: object) -> Iterator[Notice]:
    yield Notice(f"alarm {key} rings")


LIVING = cw.StatefulEnvironment(
    "alarms",
    rows=[Alarm],
    tools=[wait],
    scenarios={"typical": cw.Scenario(alarms)},
    events=[EventKind("rang", "The person hears every alarm.", due, rings, ring)],
)


def living_task(number: int) -> cw.Task:
    """A task with two more messages of its user, in a world in which time can pass."""
    return cw.Task(
        id=f"l{number}",
        query="Wait.",
        tools=LIVING.tools,
        environment=LIVING,
        scenario="typical",
        seed=number,
        answer=cw.Answer((number,)),
        user=cw.UserSpec("replayed", {"says": ["And now?", "And then?"]}),
    )
