"""Rollouts that are ahead of training: sampled by weights that are some updates old, while newer ones are made.

With a staleness of S the batch of step t is sampled by the weights after ``max(0, t - S)`` updates. In a thread of its
own this goes on while the updates before t are made, so that tools, servers and rewards that wait cost nothing as long
as they take no longer than an update. Which weights sample which step is a matter of t and S alone, never of time: the
same seed ends in the same bytes.

Copies of the weights are kept by the number of updates that made them: those that batches are still to be sampled by,
and those of batches that are not trained on yet, since a run that goes on from a checkpoint samples them again.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Self

import torch
from attrs import evolve

from callwright.episodes.crew import Crew
from callwright.errors import RunError
from callwright.machines.job import Job
from callwright_plugins.local_trainer.models.policy import Policy, set_weights
from callwright_plugins.local_trainer.sampling.collecting import Clock, Collected

#: Seconds that a run which ends early waits for the batch that is being sampled.
_PATIENCE: Final = 30.0


class Rollouts:
    """What each step trains on, asked for in the order of the steps."""

    def __init__(self, collect: Callable[[int, Policy], Collected], policy: Policy, staleness: int, steps: int) -> None:
        """``collect`` makes the batch of a step (from 0, below ``steps``) by a policy; ``policy`` is trained."""
        self._collect, self._policy, self._staleness, self._steps = collect, policy, staleness, steps
        self._at_work = threading.Lock()
        self._ended = False
        self._crew: Crew | None = None
        self._jobs: dict[int, Job] = {}
        #: By the number of updates. Their models are copies.
        self._versions: dict[int, Policy] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self, done: int, earlier: Callable[[int], Mapping[str, Any]]) -> None:
        """From here, after ``done`` updates. ``earlier`` gives the weights after as many as it is asked for."""
        if not self._staleness or done >= self._steps:
            return
        self._crew = Crew(1)
        for version in self._owed(done):
            self._versions[version] = self._copied(self._policy.model)
            set_weights(self._versions[version].model, earlier(version))
        self._versions[done] = self._copied(self._policy.model)
        for step in range(done, min(done + self._staleness + 1, self._steps)):
            self._submit(step)

    def take(self, step: int) -> tuple[Collected, Clock]:
        """What ``step`` trains on, and the clock of the step. Raises what collecting it raised."""
        if not self._staleness:
            found = self._collect(step, self._policy)
            return found, found.clock
        clock = Clock()
        found = self._jobs.pop(step).result()
        clock.lap("waiting")
        clock.beside(found.clock)
        return found, clock

    def updated(self, done: int) -> None:
        """The policy has its weights after ``done`` updates."""
        if not self._staleness:
            return
        free = [self._versions.pop(version) for version in sorted(self._versions) if version < done - self._staleness]
        following = done + self._staleness
        if following < self._steps:
            self._versions[done] = self._written(free[0]) if free else self._copied(self._policy.model)
            self._submit(following)

    def age(self, step: int) -> dict[str, int]:
        """How many updates old the weights are that ``step`` was sampled by, for its row; empty without staleness."""
        return {"staleness": step - self._version(step)} if self._staleness else {}

    def kept(self, done: int) -> dict[int, Any]:
        """The models that sample what is to be trained on after ``done`` updates, but for the policy's own."""
        return {version: self._versions[version].model for version in self._owed(done)}

    def alone(self) -> AbstractContextManager[object]:
        """In this block nothing is sampled here: workers, rewards and their figures are those of one at a time."""
        return self._at_work

    def end(self) -> None:
        """What is not sampled yet never is. A batch in the making is waited for, some time."""
        self._ended = True
        if self._crew is not None:
            self._crew.close()
            if self._at_work.acquire(timeout=_PATIENCE):
                self._at_work.release()

    def _version(self, step: int) -> int:
        return max(0, step - self._staleness)

    def _owed(self, done: int) -> list[int]:
        steps = range(done, min(done + self._staleness, self._steps))
        return sorted({self._version(step) for step in steps} - {done})

    def _submit(self, step: int) -> None:
        assert self._crew is not None
        policy = self._versions[self._version(step)]
        self._jobs[step] = self._crew.submit(lambda _: self._made(step, policy), home=0)

    def _made(self, step: int, policy: Policy) -> Collected:
        with self._at_work:
            if self._ended:
                raise RunError("the run has ended")
            return self._collect(step, policy)

    def _copied(self, model: Any) -> Policy:
        made = copy.deepcopy(model)  # its weights want gradients still: torch folds products of those that do otherwise
        return evolve(self._policy, model=made, tokenizer=copy.deepcopy(self._policy.tokenizer))

    @torch.no_grad()
    def _written(self, policy: Policy) -> Policy:
        """A copy that is not needed any more, with the weights of now."""
        now = dict(self._policy.model.named_parameters())
        for name, parameter in policy.model.named_parameters():
            parameter.copy_(now[name])
        return policy
