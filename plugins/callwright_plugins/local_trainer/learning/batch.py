"""What a step trains on: sampled completions with their prompts, advantages, and what is known of their tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from attrs import evolve, frozen
from torch import Tensor

from callwright.training.rollouts.credit import Text, blamed
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.sampling.rollouts import Group


@frozen(eq=False)
class Batch:
    """What is trained on: ``N`` sampled completions, the index of each one's prompt, and their advantages ``[N]``.

    ``sampled`` says of each token of the completions whether the policy wrote it (else the environment did); left out,
    it wrote all of them. ``limit`` is how long a completion may be. ``engine`` are the log-probabilities (nats) that
    they were sampled with, a row of no length where none were given; left out, none are known. ``blame`` is 1 for
    tokens that the evidence of a reward is about; left out, and in a row of no length, for none.
    """

    prompts: Sequence[tuple[int, ...]]
    owners: Sequence[int]
    completions: Sequence[tuple[int, ...]]
    advantages: Tensor
    sampled: Sequence[tuple[int, ...]] | None = None
    limit: int = 0
    engine: Sequence[Sequence[float]] | None = None
    blame: Sequence[Sequence[int]] | None = None

    @property
    def mask(self) -> Tensor:
        """``[N, L]``, on the CPU: 1 for the policy's tokens; as wide as a completion may be long."""
        lengths = [len(completion) for completion in self.completions]
        width = max([self.limit, *lengths])
        if self.sampled is None:
            return (torch.arange(width) < torch.tensor(lengths).unsqueeze(1)).float()
        return torch.tensor([[*row, *[0] * (width - len(row))] for row in self.sampled]).reshape(-1, width).float()

    def tokens(self, rows: Sequence[int]) -> int:
        """How many tokens of some rows the policy wrote."""
        return sum(len(self.completions[row]) if self.sampled is None else sum(self.sampled[row]) for row in rows)


def make_batch(
    groups: Sequence[Group], advantages: Tensor, valid: Tensor, limit: int = 0, blaming: Text | None = None
) -> Batch:
    """The valid rollouts of ``groups``. A masked one is left out altogether: not even its KL is trained on.

    Of an agent's rollout every branch is a row, with the advantage of the rollout and the prompt of its own.
    ``blaming`` gives the text of ids where the algorithm asks which tokens are blamed; of branches none are.
    """
    prompts: list[tuple[int, ...]] = []
    owners: list[int] = []
    sampled: list[Sampled] = []
    worth: list[float] = []
    blame: list[tuple[int, ...]] = []
    for row, group in enumerate(groups):
        places = {group.prompt: len(prompts)}
        prompts.append(group.prompt)
        for column, rollout in enumerate(group.rollouts):
            if not valid[row, column]:
                continue
            at = () if blaming is None or rollout.lines else blamed(rollout.episode, rollout.reward, blaming)
            for prompt, line in rollout.lines if rollout.lines is not None else ((group.prompt, rollout.sampled),):
                if rollout.lines is not None and not line.length:
                    continue  # a branch of which nothing carries loss
                if prompt not in places:
                    places[prompt] = len(prompts)
                    prompts.append(prompt)
                owners.append(places[prompt])
                sampled.append(line)
                worth.append(float(advantages[row, column]))
                blame.append(at)
    observed = any(one.mask is not None for one in sampled)
    return Batch(
        prompts,
        owners,
        [one.ids for one in sampled],
        torch.tensor(worth),
        [one.mask or (1,) * len(one.ids) for one in sampled] if observed else None,
        limit,
        [one.logprobs for one in sampled],
        None if blaming is None else blame,
    )


def mini_batches(batch: Batch, count: int) -> list[list[int]]:
    """Row indices in at most ``count`` parts of whole groups, in the order in which their tasks were drawn."""
    size = -(-len(batch.prompts) // count)
    parts: dict[int, list[int]] = {}
    for row, owner in enumerate(batch.owners):
        parts.setdefault(owner // size, []).append(row)
    return [parts[number] for number in sorted(parts)]


def some_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """Some rows as a batch of their own, with the prompts that they need."""
    owners = sorted({batch.owners[row] for row in rows})
    places = {owner: place for place, owner in enumerate(owners)}
    return evolve(
        batch,
        prompts=[batch.prompts[owner] for owner in owners],
        owners=[places[batch.owners[row]] for row in rows],
        completions=[batch.completions[row] for row in rows],
        advantages=batch.advantages[list(rows)],
        sampled=None if batch.sampled is None else [batch.sampled[row] for row in rows],
        engine=None if batch.engine is None else [batch.engine[row] for row in rows],
        blame=None if batch.blame is None else [batch.blame[row] for row in rows],
    )
