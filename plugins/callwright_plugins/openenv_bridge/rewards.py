"""The environment's own reward, as a component and a recipe of that component alone."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final, Literal, get_args

from callwright.environments.protocol import Outcome
from callwright.errors import DataError, UnknownName, UsageError
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, RewardRecipe, Score, Term
from callwright.walk.trace import CallRecord
from callwright_plugins.openenv_bridge.wire import Stepped

#: How the rewards of steps become one number.
Of = Literal["sum", "last", "best"]
_SLACK: Final = 1e-9


class OwnReward(RewardComponent):
    """In [``low``, ``high``]: what the environment itself gave for the steps of an attempt.

    ``of``: their ``sum`` (the return of the episode), the ``last`` that was given, or the ``best``. Steps without a
    reward, and calls that never reached the environment, give none; an attempt without any earns ``low``.

    Masks the sample where calls were made in another environment, or recorded without their rewards.
    Raises :class:`callwright.errors.DataError` for a reward outside of the range, which would enter a gradient at
    another scale than was said.
    """

    name: ClassVar[str] = "openenv"
    stage: ClassVar[str] = "answer"

    def __init__(self, low: float = 0.0, high: float = 1.0, of: Of = "sum") -> None:
        if of not in get_args(Of):
            raise UnknownName("way to read the environment's rewards", str(of), get_args(Of))
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UsageError(f"the range of the environment's reward is {low!r} to {high!r}; low must be below high")
        self.low, self.high, self.of = float(low), float(high), of

    def score(self, attempt: Attempt) -> Score:
        trace = attempt.whole_trace
        if trace.masked is not None:
            failed = Evidence("infrastructure", trace.masked)
            return Score(self.low, self.low, self.high, (failed,), masked=trace.masked)
        records = [trace.records[position] for position in trace.ran]
        given = [(record, reward) for record in records if (reward := _reward(record)) is not None]
        if not given:
            unknown = _not_known(records)
            if unknown is not None:
                return Score(self.low, self.low, self.high, (Evidence("not_known", unknown),), masked=unknown)
            nothing = Evidence("no_reward", "the environment gave no reward: no step of the attempt earned one")
            return Score(self.low, self.low, self.high, (nothing,))
        rewards = [reward for _, reward in given]
        value = {"sum": math.fsum(rewards), "last": rewards[-1], "best": max(rewards)}[self.of]
        if not self.low - _SLACK <= value <= self.high + _SLACK:
            raise DataError(
                f"the environment {attempt.task.environment.name!r} gave {value:g} (the {self.of} of its rewards), and "
                f"the range is said to be {self.low:g} to {self.high:g}; state its own with low=… and high=…"
            )
        value = min(max(value, self.low), self.high)
        if value >= self.high:
            return Score(value, self.low, self.high)
        told = tuple(
            Evidence(
                "own_reward", f"call {record.call} {record.tool} earned {reward:g}", record.call, found=str(reward)
            )
            for record, reward in given
        )
        return Score(value, self.low, self.high, told)


def _reward(record: CallRecord) -> float | None:
    outcome: Outcome = record.outcome
    return outcome.reward if isinstance(outcome, Stepped) else None


def _not_known(records: list[CallRecord]) -> str | None:
    """Why nobody knows what a step earned that executed: its record says nothing of a reward at all."""
    for record in records:
        if record.outcome.kind == "unknown" or (record.outcome.executed and not isinstance(record.outcome, Stepped)):
            return (
                f"what call {record.call} {record.tool} earned is not known: only live sessions of the environment "
                "'openenv' that give rewards say so"
            )
    return None


def own_reward(**options: Any) -> RewardRecipe:
    """The recipe of :class:`OwnReward` alone, on the environment's own scale; the options are the component's."""
    component = OwnReward(**options)
    return RewardRecipe("openenv", (Term(component),), normalise=False, summary="the OpenEnv environment's own reward")
