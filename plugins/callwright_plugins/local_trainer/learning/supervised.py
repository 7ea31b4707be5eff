"""One supervised step: the gradient of the mean log-likelihood of what the policy is to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from callwright.training.alarms import not_finite, written
from callwright_plugins.local_trainer.forward.batches import pad_right
from callwright_plugins.local_trainer.forward.likelihood import FullSequences
from callwright_plugins.local_trainer.learning.demonstrations import Example
from callwright_plugins.local_trainer.learning.micro_batches import by_tokens
from callwright_plugins.local_trainer.learning.steps import clipped_step
from callwright_plugins.local_trainer.models.policy import Policy


def supervised_step(
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    batch: Sequence[Example],
    micro_batches: int,
    rate: float,
    clip_norm: float,
    tokens_per_micro_batch: int | None = None,
) -> dict[str, Any]:
    """One step on a batch: ``loss`` (nats a token), ``learning_rate``, ``gradient_norm`` (before clipping), ``tokens``.

    The loss is the cross-entropy over tokens that the policy writes, divided by their number in the whole batch, so
    that the gradient accumulated over micro-batches is that of the whole. No step is taken if it is not finite: the
    row then says so (``not_finite``), and its figures are ``None``.
    """
    tokens = sum(example.tokens for example in batch)
    total = 0.0
    for part in parts(batch, -(-len(batch) // micro_batches), tokens_per_micro_batch):
        loss = negative_log_likelihood(policy, part) / tokens
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    norm, fault = clipped_step(optimiser, policy.model, rate, clip_norm, total)
    figures: dict[str, Any] = {"loss": total, "learning_rate": rate, "gradient_norm": norm, "tokens": tokens}
    if fault is not None:
        tasks = list(dict.fromkeys(example.task for example in batch if example.task))
        figures["not_finite"] = not_finite(1, 1, tasks, [fault])
    return written(figures)


@torch.no_grad()
def mean_loss(
    policy: Policy, shown: Sequence[Example], rows_at_once: int, tokens_at_once: int | None = None
) -> float | None:
    """The loss of all demonstrations, nats a token; ``None`` if there is nothing to measure."""
    tokens = sum(example.tokens for example in shown)
    summed = sum(float(negative_log_likelihood(policy, part)) for part in parts(shown, rows_at_once, tokens_at_once))
    return summed / tokens if tokens else None


def parts(shown: Sequence[Example], size: int, tokens: int | None = None) -> Iterator[list[Example]]:
    """Demonstrations, at most ``size`` (or so many ``tokens``) at a time, sorted by length: little is padding."""
    ordered = sorted(shown, key=lambda example: (len(example.completion), len(example.prompt)))
    if tokens is not None:
        sizes = [(row, len(example.prompt), len(example.completion)) for row, example in enumerate(ordered)]
        yield from ([ordered[row] for row in part] for part in by_tokens(sizes, tokens))
        return
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def negative_log_likelihood(policy: Policy, part: Sequence[Example]) -> Tensor:
    """The sum over the policy's tokens of some demonstrations, in nats."""
    sequences = FullSequences(policy, [example.prompt for example in part])
    likelihood = sequences.likelihood(
        range(len(part)), [example.completion for example in part], temperature=1, entropy="none"
    )
    mask = likelihood.mask
    if any(example.mask is not None for example in part):
        written, _ = pad_right([example.mask or (1,) * example.tokens for example in part], 0, policy.device)
        mask = mask * written
    return -(likelihood.logprobs * mask).sum()
