"""Rewards that wait, registered like any plugin."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import callwright as cw

#: Four rows are scored at a time, or none.
FOUR = threading.Barrier(4)


def judged(attempt: cw.Attempt) -> cw.Score:
    """What all of them say: how long a completion is, and of some that nobody knows."""
    length = len(attempt.completion.text)
    if length % 7 == 0:
        raise cw.InfrastructureFailure("the judge is down")
    value = (length % 5) / 4
    return cw.Score(value, evidence=() if value == 1 else (cw.Evidence("short", f"{length} characters"),))


class AtOnce(cw.RewardComponent):
    """The oracle."""

    name = "judged"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return judged(attempt)


class Waits(cw.AsyncRewardComponent):
    """Says into ``$WAITS_SAY`` when it is set up and closed, and holds how many waited at once."""

    name = "judged"
    concurrency = 8
    at_once = most_at_once = 0
    meet = 0  # so many wait for each other first, so that what is counted hangs on no clock

    async def setup(self) -> None:
        say("setup")

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        kind = type(self)
        kind.at_once += 1
        kind.most_at_once = max(kind.most_at_once, kind.at_once)
        for _ in range(6000):
            if kind.most_at_once >= kind.meet:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.001 * (len(attempt.completion.text) % 3))
        kind.at_once -= 1
        return judged(attempt)

    async def close(self) -> None:
        say("close")


class Batches(cw.BatchRewardComponent):
    """A batch at a time."""

    name = "judged"
    batch_size = 5

    def score_many(self, attempts: Sequence[cw.Attempt]) -> list[cw.Score | Exception]:
        found: list[cw.Score | Exception] = []
        for attempt in attempts:
            try:
                found.append(judged(attempt))
            except cw.InfrastructureFailure as error:
                found.append(error)
        return found


class FourAtOnce(AtOnce):
    """Not asynchronous, and each row waits until four are scored at the same time."""

    def score(self, attempt: cw.Attempt) -> cw.Score:
        FOUR.wait(30)
        return super().score(attempt)


def say(what: str) -> None:
    """Add a line to a file."""
    if path := os.environ.get("WAITS_SAY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{what} {os.getpid()}\n")


def recipe(component: cw.RewardComponent) -> cw.RewardRecipe:
    """One term."""
    return cw.RewardRecipe("judged", (cw.Term(component),))


@cw.hookimpl
def callwright_reward_recipes() -> Iterator[cw.Lazy]:
    yield cw.Lazy("at-once", at_once, "scores at once")
    yield cw.Lazy("waits", waits, "waits for each")
    yield cw.Lazy("batches", batches, "takes batches")
    yield cw.Lazy("four", four, "four at once")


def at_once() -> cw.RewardRecipe:
    """Without waiting."""
    return recipe(AtOnce())


def waits() -> cw.RewardRecipe:
    """Each for itself."""
    return recipe(Waits())


def batches() -> cw.RewardRecipe:
    """Five at a time."""
    return recipe(Batches())


def four() -> cw.RewardRecipe:
    """Four threads, or it fails."""
    return recipe(FourAtOnce())
