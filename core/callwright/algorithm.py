"""Algorithms: advantages and losses as pure functions of tensors.

Shapes: ``B`` prompts, ``G`` completions a prompt, ``L`` completion tokens. This module never imports torch; the
implementations do, when they are first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import field, frozen

if TYPE_CHECKING:
    from torch import Tensor


@frozen(eq=False)
class TokenBatch:
    """Everything a loss may read. Log-probabilities are in nats, masks are 1 for tokens that are trained on.

    ``normaliser`` replaces the number of active tokens (or of sequences) of this batch where the batch is one
    micro-batch of a larger one, so that accumulated gradients equal those of the whole.
    """

    logprobs: Tensor  # [B*G, L], with gradient
    old_logprobs: Tensor  # [B*G, L], under the sampling policy
    mask: Tensor  # [B*G, L]
    advantages: Tensor  # [B*G]
    ref_logprobs: Tensor | None = None  # [B*G, L], under the frozen reference
    entropy: Tensor | None = None  # [B*G, L], of the next-token distribution, for diagnostics only
    normaliser: float | None = None


@frozen(eq=False)
class LossOutput:
    """The scalar to minimise and what a person wants to see of it (all plain floats)."""

    loss: Tensor
    diagnostics: Mapping[str, float] = field(factory=dict)


@runtime_checkable
class Algorithm(Protocol):
    """One policy-gradient algorithm."""

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def kl_weight(self) -> float:
        """Weight of the KL term; 0 spares the trainer the reference model."""

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """Rewards ``[B, G]`` after length shaping; most algorithms return them unchanged."""

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]`` from rewards ``[B, G]``; ``valid`` ``[B, G]`` is False for masked samples, which get 0."""

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: groups worth training on. A trainer with dynamic sampling draws others for the rest."""

    def normaliser(self, mask: Tensor) -> float:
        """What the loss of a whole batch with this mask ``[B*G, L]`` divides by."""

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss to minimise, and its diagnostics."""
