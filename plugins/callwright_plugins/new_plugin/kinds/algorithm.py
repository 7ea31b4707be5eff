"""The algorithm ``zebra``: REINFORCE with the mean of the group as the baseline, as pure functions of tensors.

Shapes: ``B`` prompts, ``G`` completions of each, ``L`` tokens, ``N = B*G`` sequences. What stands where the mask is 0
is never read: it may be NaN, and no gradient flows into it. Everything is imported by the trainer, with torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from callwright.training.algorithm import LossOutput, TokenBatch

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True)
class Zebra:
    """``kl_weight`` is 0: no reference model is needed."""

    kl_weight: float = field(default=0.0, init=False)
    name: str = field(default="zebra", init=False)

    @property
    def smallest_group(self) -> int:
        """Completions of one prompt are compared with one another, so there have to be two."""
        return 2

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """The rewards ``[B, G]`` as they are: lengths do not matter."""
        return rewards

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]``: how much better a completion is than the others of its prompt; masked ones get 0."""
        valid = valid.bool()
        known = rewards.masked_fill(~valid, 0)
        count = valid.sum(1, keepdim=True)
        found = (known - known.sum(1, keepdim=True) / count.clamp(min=1)).masked_fill(~valid, 0)
        differ = (found.abs() > 1e-6).any(1, keepdim=True)  # else it is rounding that would be learnt
        return found.masked_fill(~differ, 0)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: every group with a valid sample."""
        return valid.bool().any(1)

    def normaliser(self, mask: Tensor) -> float:
        """The number of active tokens of ``mask`` ``[N, L]``, at least 1."""
        return float((mask != 0).sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """Minus the advantage-weighted ratio, averaged over active tokens; its gradient is that of REINFORCE."""
        active = batch.mask != 0
        logprobs = batch.logprobs.masked_fill(~active, 0)
        ratio = (logprobs - batch.old_logprobs.detach().masked_fill(~active, 0)).exp()
        advantages = batch.advantages.detach().to(logprobs)
        spread = advantages.unsqueeze(1) if advantages.dim() == 1 else advantages.masked_fill(~active, 0)
        whole = self.normaliser(batch.mask) if batch.normaliser is None else batch.normaliser
        loss = -(ratio * spread).masked_fill(~active, 0).sum() / whole
        mean = ratio.detach().masked_fill(~active, 0).sum() / active.sum().clamp(min=1)
        return LossOutput(loss, {"ratio": float(mean)})
