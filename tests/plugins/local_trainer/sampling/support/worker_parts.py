"""Rewards and a plugin for runs whose environments are elsewhere. Workers import this module."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.walk.waiting import AsyncRewardComponent


def variety(attempt: cw.Attempt) -> cw.Score:
    value = min(1.0, len(set(attempt.completion.token_ids)) / 24)
    return cw.Score(value, 0.0, 1.0, () if value == 1 else (cw.Evidence("repeats", "some tokens repeat"),))


class DiesOnce(cw.RewardComponent):
    """How many different tokens there are. The first process that is asked often enough ends."""

    name = "variety"

    def __init__(self, sign: str, after: int = 5) -> None:
        self.sign, self.left = sign, after

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.left -= 1
        if self.left < 0 and not Path(self.sign).exists():
            Path(self.sign).write_text(str(os.getpid()))
            os._exit(3)
        return variety(attempt)


class Waits(AsyncRewardComponent):
    """The same after a while."""

    name = "variety"

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        await asyncio.sleep(0.001 * (len(attempt.completion.token_ids) % 7))
        return variety(attempt)


@cw.hookimpl(wrapper=True)
def callwright_tool_call(call: Any) -> Any:
    """Says in which process calls are executed."""
    outcome = yield
    folder = os.environ["CALLS_SEEN"]
    Path(folder, str(os.getpid())).touch()
    return outcome


@cw.hookimpl
def callwright_attempt_scored(attempt: Any, reward: Any) -> None:
    with Path(os.environ["CALLS_SEEN"], f"scored-{os.getpid()}").open("a", encoding="utf-8") as file:
        file.write(f"{attempt.task.id} {reward.total}\n")
