"""What a step is trained on: groups of newly drawn tasks, until enough of them are fit for the algorithm."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from attrs import frozen

from callwright.training.algorithm import Algorithm
from callwright.training.rollouts.task_stream import TaskStream
from callwright.training.spending import Meter
from callwright.walk.conditions import Progress
from callwright.walk.limits import TurnLimits
from callwright.walk.sampling import Sampler
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.sampling.agents import agent_groups
from callwright_plugins.local_trainer.sampling.episodes import sample_groups
from callwright_plugins.local_trainer.sampling.prompts import PromptBound
from callwright_plugins.local_trainer.sampling.rollouts import Group, rewards_of

if TYPE_CHECKING:
    from callwright.episodes.pool import EpisodePool
    from callwright.pipeline import Pipeline


class Clock:
    """Seconds of the parts of a step."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._parts: dict[str, float] = {}

    def lap(self, part: str) -> None:
        """What has passed since the last lap was this part."""
        now = time.perf_counter()
        self._parts[part] = self._parts.get(part, 0.0) + now - self._last
        self._last = now

    def beside(self, other: Clock) -> None:
        """Take the parts of what went on at the same time. They are in nobody's sum."""
        self._parts |= other._parts

    def read(self) -> dict[str, float]:
        """``seconds`` up to the last lap, and each part."""
        return {
            "seconds": round(self._last - self._began, 6),
            **{part: round(seconds, 6) for part, seconds in self._parts.items()},
        }


@frozen(eq=False)
class Collected:
    """``groups`` to train on and all that were ``seen``; in how many ``rounds`` others were drawn for the unfit; how
    many prompts were ``too_long`` and had others drawn; the ``usage`` of servers that rewards asked."""

    groups: list[Group]
    seen: list[Group]
    rounds: int
    too_long: int
    usage: Mapping[str, float]
    clock: Clock


def collect(
    pipeline: Pipeline,
    policy: Policy,
    algorithm: Algorithm,
    stream: TaskStream,
    step: int,
    options: Options,
    limits: TurnLimits,
    prompts: PromptBound,
    pool: EpisodePool,
    agents: Sampler | None,
    meter: Meter,
) -> Collected:
    """The rollouts of ``step`` (from 0), sampled by ``policy``: what they are hangs on these two and the recipe."""
    clock = Clock()
    meter.take()  # an evaluation's, which has rows of its own
    progress = Progress(step, options.steps)
    kept: list[Group] = []
    seen: list[Group] = []
    rounds = too_long = 0
    for round_ in range(options.resampling_rounds + 1):
        rounds = round_
        tasks, replaced = prompts.draw(partial(stream.draw, options.prompts, step), round_)
        too_long += replaced
        purpose = (pipeline.conditions.seed, "sampling", step, round_)
        asked = pipeline, policy, tasks, options, limits, purpose, progress, clock.lap
        groups = sample_groups(*asked, pool) if options.agent is None else agent_groups(*asked, agents)
        clock.lap("scoring")
        rewards, valid, _ = rewards_of(groups)
        fit = algorithm.keep_groups(rewards, valid).tolist()
        kept += [group for group, good in zip(groups, fit, strict=True) if good]
        seen += groups
        if len(kept) >= options.prompts:
            break
    return Collected(kept[: options.prompts], seen, rounds, too_long, meter.take(), clock)
