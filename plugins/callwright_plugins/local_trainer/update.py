"""The policy update: log-probabilities of the sampled ids, the algorithm's loss, one or more optimiser steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from attrs import frozen
from torch import Tensor

from callwright.algorithm import Algorithm, TokenBatch
from callwright_plugins.local_trainer.likelihood import FullSequences, Likelihood, Prefix, prefix_of
from callwright_plugins.local_trainer.optimisation import clipped_step
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.policy import Policy
from callwright_plugins.local_trainer.rollouts import Group


@frozen(eq=False)
class Batch:
    """What is trained on: ``N`` sampled completions, the index of each one's prompt, and their advantages ``[N]``."""

    prompts: Sequence[tuple[int, ...]]
    owners: Sequence[int]
    completions: Sequence[tuple[int, ...]]
    advantages: Tensor


def make_batch(groups: Sequence[Group], advantages: Tensor, valid: Tensor) -> Batch:
    """The valid rollouts of ``groups``. A masked one is left out altogether: not even its KL is trained on."""
    kept = [(row, column) for row, column in valid.nonzero().tolist()]
    return Batch(
        [group.prompt for group in groups],
        [row for row, _ in kept],
        [groups[row].rollouts[column].sampled.ids for row, column in kept],
        torch.tensor([float(advantages[row, column]) for row, column in kept]),
    )


def micro_batches(batch: Batch, count: int) -> list[list[int]]:
    """Row indices in ``count`` parts, sorted by length, so that little of each part is padding."""
    order = sorted(range(len(batch.completions)), key=lambda row: (len(batch.completions[row]), row))
    size = -(-len(order) // count)
    return [order[start : start + size] for start in range(0, len(order), size)]


def update(
    policy: Policy,
    reference: Policy | None,
    algorithm: Algorithm,
    optimiser: torch.optim.AdamW,
    batch: Batch,
    options: Options,
    rate: float,
) -> dict[str, float]:
    """``options.iterations`` optimiser steps on a batch; returns the diagnostics, averaged over tokens and iterations.

    The loss of each micro-batch is divided by the normaliser of the whole batch, so that the accumulated gradient is
    that of the whole. Old log-probabilities are computed here once, by the arithmetic of the new ones: the ratio begins
    at exactly 1.
    """
    parts = micro_batches(batch, options.micro_batches)
    lengths = [len(completion) for completion in batch.completions]
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).float()
    normaliser = algorithm.normaliser(mask)
    referred = _frozen(reference, batch, parts, options) if reference is not None and algorithm.kl_weight > 0 else None
    old = _frozen(policy, batch, parts, options) if options.iterations > 1 else None
    totals: dict[str, float] = {}
    for _ in range(options.iterations):
        prefix = prefix_of(policy, batch.prompts, options.shared_prefix)
        loss = 0.0
        for number, part in enumerate(parts):
            likelihood = _likelihood(prefix, batch, part, options)
            result = algorithm.loss(
                TokenBatch(
                    logprobs=likelihood.logprobs,
                    old_logprobs=old[number].logprobs if old else likelihood.logprobs.detach(),
                    mask=likelihood.mask,
                    advantages=batch.advantages[part].to(policy.device),
                    ref_logprobs=referred[number].logprobs if referred else None,
                    entropy=likelihood.entropy,
                    normaliser=normaliser,
                )
            )
            result.loss.backward()  # type: ignore[no-untyped-call]
            loss += float(result.loss.detach())
            share = sum(lengths[row] for row in part) / sum(lengths) / options.iterations
            for name, value in result.diagnostics.items():
                if name.endswith("_max"):
                    totals[name] = max(totals.get(name, value), value)
                elif name != "active_tokens":
                    totals[name] = totals.get(name, 0.0) + share * value
        prefix.backward()
        norm = clipped_step(optimiser, policy.model, rate, options.clip_norm)
        totals["loss"] = totals.get("loss", 0.0) + loss / options.iterations
        totals["gradient_norm"] = totals.get("gradient_norm", 0.0) + norm / options.iterations
    return totals


def _likelihood(
    prefix: Prefix | FullSequences, batch: Batch, part: Sequence[int], options: Options, entropy: bool = True
) -> Likelihood:
    owners, completions = [batch.owners[row] for row in part], [batch.completions[row] for row in part]
    return prefix.likelihood(owners, completions, options.temperature, entropy)


@torch.no_grad()
def _frozen(policy: Policy, batch: Batch, parts: Sequence[Sequence[int]], options: Options) -> list[Likelihood]:
    prefix = prefix_of(policy, batch.prompts, options.shared_prefix)
    return [_likelihood(prefix, batch, part, options, entropy=False) for part in parts]
