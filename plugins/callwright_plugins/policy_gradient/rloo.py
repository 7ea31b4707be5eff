"""REINFORCE leave-one-out (RLOO; Ahmadian et al. 2024, "Back to basics", arXiv 2402.14740, sections 2.3 and 3).

A completion is one action: what is rewarded is the whole of it, and so is the divergence from the frozen reference,

    R'_i = R_i - kl_weight sum_t log(pi_old(o_it) / pi_ref(o_it))

and the baseline of each completion is the mean of the others of its prompt, which keeps the gradient unbiased:

    A_i = R'_i - 1 / (G-1)  sum_(j != i) R'_j

With the ratio of whole completions, rho_i = prod_t pi_theta(o_it) / pi_old(o_it), the loss is a mean over completions

    L = -1/N sum_i min(rho_i A_i, clip(rho_i, 1-epsilon, 1+epsilon_high) A_i)

whose gradient on policy is that of REINFORCE. Clipping is not in the paper, which takes one step on each batch; it
matters only with more. ``ratio="token"`` takes the ratios of tokens and their mean over the batch instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from callwright.training.algorithm import Experience, LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.option_tables import RLOOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from callwright_plugins.policy_gradient.lazy_torch import torch


@frozen(kw_only=True)
class RLOO:
    """RLOO with the loss of TRL's ``RLOOTrainer``; with ``ratio="token"``, that of OpenRLHF.

    ``kl_weight`` >= 0 weighs the divergence inside the reward (TRL's default; 0 needs no reference model). ``epsilon``
    in (0, 1) and ``epsilon_high`` > 0 bound the ratio below and above; left out, ``epsilon_high`` is ``epsilon``.
    ``entropy_weight`` >= 0 rewards the entropy of each token. Raises :class:`callwright.UsageError` for an option out
    of its range.
    """

    kl_weight: float = taken(RLOOOptions, "kl_weight")
    ratio: Literal["sequence", "token"] = taken(RLOOOptions, "ratio")
    epsilon: float = taken(RLOOOptions, "epsilon")
    epsilon_high: float | None = taken(RLOOOptions, "epsilon_high")
    entropy_weight: float = taken(RLOOOptions, "entropy_weight")
    name: str = field(default="rloo", init=False)

    @property
    def smallest_group(self) -> int:
        """2: a completion is compared with the others (:class:`callwright.training.algorithm.GroupBaseline`)."""
        return 2

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """The rewards ``[B, G]`` as they are: lengths do not matter."""
        return rewards

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]`` from rewards ``[B, G]``; masked samples, groups of equal rewards and a single sample get 0."""
        rewards, valid = loss_terms.readable_rewards(rewards, valid)
        others = (valid.sum(1, keepdim=True) - 1).clamp(min=1)  # G - 1
        baseline = (rewards.sum(1, keepdim=True) - rewards) / others
        teaches = valid & loss_terms.varied_groups(rewards, valid).unsqueeze(1)
        return torch.where(teaches, rewards - baseline, 0)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: every group with a valid sample. There is no dynamic sampling."""
        return valid.bool().any(1)

    def token_advantages(self, experience: Experience) -> tuple[Tensor, Tensor]:
        """The advantage of its sequence for each token ``[N, L]``, the divergence included; returns are the same.

        Leaving one out is linear: the divergences are left out by themselves, and added to the scores.
        """
        active, scores = loss_terms.experienced(experience)
        weight = self.kl_weight if experience.kl_weight is None else experience.kl_weight
        divergence = loss_terms.kl_penalty(experience, active, "k1", self.name, weight).sum(
            1
        )  # of whole sequences, [N]
        present = active.any(1)
        groups = torch.where(present, experience.groups, -1)
        mates = (groups.unsqueeze(1) == groups.unsqueeze(0)) & present.unsqueeze(0)  # [N, N], itself included
        others = (mates.sum(1) - 1).clamp(min=1)
        baseline = (torch.where(mates, divergence.unsqueeze(0), 0).sum(1) - divergence) / others
        alone = mates.sum(1) < 2
        advantages = scores - torch.where(alone, 0, divergence - baseline)
        spread = loss_terms.inside(advantages.unsqueeze(1).expand_as(active), active)
        return spread, spread

    def normaliser(self, mask: Tensor) -> float:
        """N: the sequences of ``mask`` ``[B*G, L]`` with an active token, or its active tokens; at least 1."""
        counted = (mask != 0).any(1) if self.ratio == "sequence" else mask != 0
        return float(counted.sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss over the active tokens ``[B*G, L]`` of a batch. A sequence without one is as if never sampled."""
        active = loss_terms.active_tokens(batch)  # [N, L]
        logprobs = loss_terms.inside(batch.logprobs, active)  # log pi_theta(o_it)
        old_logprobs = loss_terms.inside(batch.old_logprobs.detach(), active)  # log pi_old(o_it)
        advantages = loss_terms.token_advantages(batch, active)  # A_i, [N, 1] or [N, L]
        high = self.epsilon if self.epsilon_high is None else self.epsilon_high

        if self.ratio == "sequence":
            lengths = active.sum(1, keepdim=True).clamp(min=1)
            ratio = torch.exp((logprobs - old_logprobs).sum(1, keepdim=True)).expand_as(logprobs)  # rho_i
            token_loss = -loss_terms.clipped_surrogate(ratio, advantages, self.epsilon, high)
            token_loss = loss_terms.with_entropy(token_loss, batch, active, self.name, self.entropy_weight)
            token_loss = token_loss / lengths  # each sequence counts once
            counted = active.any(1)
        else:
            ratio = torch.exp(logprobs - old_logprobs)  # rho_it
            token_loss = -loss_terms.clipped_surrogate(ratio, advantages, self.epsilon, high)
            token_loss = loss_terms.with_entropy(token_loss, batch, active, self.name, self.entropy_weight)
            counted = active

        whole = counted.sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # N
        loss = loss_terms.inside(token_loss, active).sum() / whole
        return LossOutput(loss, loss_terms.diagnostics(batch, active, ratio.detach(), self.epsilon, high))
