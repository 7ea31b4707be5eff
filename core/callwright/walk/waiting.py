"""Reward components that wait: for a judge's answer, for another machine, for a model that takes a batch.

    class Judge(AsyncRewardComponent):
        name = "judge"

        async def setup(self): self.client = AsyncClient()

        async def score(self, attempt):
            return Score(await self.client.ask(attempt.completion.text))

        async def close(self): await self.client.aclose()

A recipe asks them about many attempts at once (:meth:`callwright.RewardRecipe.score_attempts`); the rewards are those
of one attempt after the other. An ordinary component whose ``score`` is a coroutine function waits, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from callwright.walk.components.component import RewardComponent, score_of
from callwright.walk.components.scores import Score

if TYPE_CHECKING:
    from callwright.machines.questions import Asked
    from callwright.walk.attempt import Attempt


class AsyncRewardComponent(RewardComponent):
    """A component whose ``score`` is awaited, in the background event loop of the process.

    ``concurrency``: how many attempts wait at once, in the whole process; by default as many as a model server is asked
    at once (:class:`callwright.machines.model_server.Server`). ``time_limit`` (seconds): an answer that
    takes longer is cancelled and the sample masked; ``None`` waits for ever.

    ``setup`` and ``close``, where a subclass defines them, are called once each in a process: before the first attempt
    and when the recipe is closed (:meth:`callwright.RewardRecipe.__enter__`), at the latest when the process ends.

    One that asks servers may count that in ``usage``, the figures of :mod:`callwright.training.spending` so far:
    commands say them, and they are kept with metrics and summaries.

    ``score`` raises :class:`callwright.InfrastructureFailure` where the machinery failed: that masks the sample, as
    :class:`callwright.errors.Abstention` does. Anything else is a bug of the component.
    """

    concurrency: int = 16
    time_limit: float | None = 600.0

    @abstractmethod
    async def score(self, attempt: Attempt) -> Score:  # type: ignore[override]  # recipes await it
        """The score of an attempt, with evidence for every point that is lost."""


class BatchRewardComponent(RewardComponent):
    """A component that is given up to ``batch_size`` attempts at once.

    ``score_many`` is an ordinary method, which runs in a thread, or an ``async`` one. How attempts come together in a
    batch is not specified, and a score must not hang on it. ``concurrency`` is how many batches are under way at once;
    ``time_limit`` (seconds), ``setup`` and ``close`` are those of :class:`AsyncRewardComponent`.
    """

    batch_size: int = 32
    concurrency: int = 1
    time_limit: float | None = 600.0

    @abstractmethod
    def score_many(
        self, attempts: Sequence[Attempt]
    ) -> Sequence[Score | Exception] | Awaitable[Sequence[Score | Exception]]:
        """A score for each attempt, in their order.

        An exception in place of a score is that attempt's alone: what :meth:`score` would raise. One that is raised is
        everybody's.
        """

    def score(self, attempt: Attempt) -> Score:
        """The score of one attempt: a batch of one. Raises what stands in place of it."""
        return score_of(self, attempt)

    def waiting(self) -> Asked:
        """How it is asked."""
        from callwright.machines.questions import Asked

        return Asked(self, self.score_many, self.concurrency, self.batch_size, self.time_limit)

    @property
    def waits(self) -> bool:
        return True
