"""REINFORCE++ and REINFORCE++-baseline (Hu et al. 2025, arXiv 2501.03262): advantages normalised over the batch.

REINFORCE++ needs no group: the return of a token is what the sequence earned, less the divergence from the frozen
reference from there on,

    A_it = R_i - kl_weight sum_(s >= t) KL_is,      KL_is = log pi_old(o_is) - log pi_ref(o_is)          (k1)

and the batch is the baseline of every token:

    A'_it = (A_it - mean(A)) / std(A)               mean and deviation over all active tokens of the batch

The baseline variant, for several completions a prompt, first subtracts the mean of the group, R_i - mean_G(R), and
weighs the divergence in the loss (k2, whose gradient is that of the divergence) instead of in the reward. Both have the
clipped loss of PPO, as one mean over the tokens of the batch:

    L = -1 / (sum_i |o_i|)  sum_i sum_t min(rho_it A'_it, clip(rho_it, 1-epsilon, 1+epsilon_high) A'_it)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from callwright.errors import UsageError
from callwright.training.algorithm import Experience, LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.option_tables import ReinforcePlusPlusBaselineOptions, ReinforcePlusPlusOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from callwright_plugins.policy_gradient.lazy_torch import torch


@frozen(kw_only=True)
class ReinforcePlusPlus:
    """REINFORCE++: OpenRLHF's estimator ``reinforce``, verl's ``reinforce_plus_plus``.

    ``kl_weight`` >= 0 weighs the divergence, estimated by ``kl_estimator`` (``"k1"``, ``"k2"`` or ``"k3"``), in the
    ``"reward"`` or the ``"loss"`` (``kl_in``; in the loss k1 means nothing: the mean of its gradient is 0). ``gamma``
    in (0, 1] discounts what follows. ``unbiased_std`` divides the variance by ``n - 1``, as verl does, else by ``n``,
    as OpenRLHF does. ``epsilon`` in (0, 1) and ``epsilon_high`` > 0 bound the ratio below and above; left out,
    ``epsilon_high`` is ``epsilon``. ``entropy_weight`` >= 0 rewards the entropy of each token. Raises
    :class:`callwright.UsageError` for an option out of its range.
    """

    kl_weight: float = taken(ReinforcePlusPlusOptions, "kl_weight")
    kl_estimator: loss_terms.KL = taken(ReinforcePlusPlusOptions, "kl_estimator")
    kl_in: Literal["reward", "loss"] = taken(ReinforcePlusPlusOptions, "kl_in")
    gamma: float = taken(ReinforcePlusPlusOptions, "gamma")
    unbiased_std: bool = taken(ReinforcePlusPlusOptions, "unbiased_std")
    epsilon: float = taken(ReinforcePlusPlusOptions, "epsilon")
    epsilon_high: float | None = taken(ReinforcePlusPlusOptions, "epsilon_high")
    entropy_weight: float = taken(ReinforcePlusPlusOptions, "entropy_weight")
    name: str = field(default="reinforce++", init=False)

    def __attrs_post_init__(self) -> None:
        if self.kl_in == "loss" and self.kl_estimator == "k1":
            raise UsageError(
                f'{self.name}: kl_estimator = "k1" has no gradient on average in the loss; take "k2" or "k3" there'
            )

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """The rewards ``[B, G]`` as they are: lengths do not matter."""
        return rewards

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]``: R_i, what each sequence earned; masked samples get 0. The baseline comes with the tokens."""
        rewards, valid = loss_terms.readable_rewards(rewards, valid)
        return torch.where(valid, rewards, 0)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: every group with a valid sample. There is no dynamic sampling."""
        return valid.bool().any(1)

    def token_advantages(self, experience: Experience) -> tuple[Tensor, Tensor]:
        """``A'_it`` and ``A_it`` of a whole batch, both ``[N, L]``; tokens of the environment take no time."""
        active, scores = loss_terms.experienced(experience)
        rewards = loss_terms.inside(scores.unsqueeze(1), loss_terms.last_token(active))
        if self.kl_in == "reward":
            weight = self.kl_weight if experience.kl_weight is None else experience.kl_weight
            rewards = rewards - loss_terms.kl_penalty(experience, active, self.kl_estimator, self.name, weight)
        returns = loss_terms.discounted_returns(rewards, active, self.gamma)  # A_it
        return loss_terms.whiten(returns, active, unbiased=self.unbiased_std), returns

    def normaliser(self, mask: Tensor) -> float:
        """``sum_i |o_i|``: the active tokens of ``mask`` ``[B*G, L]``; at least 1."""
        return float((mask != 0).sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss over the active tokens ``[B*G, L]`` of a batch."""
        active = loss_terms.active_tokens(batch)  # [N, L]
        logprobs = loss_terms.inside(batch.logprobs, active)  # log pi_theta(o_it)
        old_logprobs = loss_terms.inside(batch.old_logprobs.detach(), active)  # log pi_old(o_it)
        advantages = loss_terms.token_advantages(batch, active)  # A'_it, [N, L]

        ratio = torch.exp(logprobs - old_logprobs)  # rho_it
        high = self.epsilon if self.epsilon_high is None else self.epsilon_high
        token_loss = -loss_terms.clipped_surrogate(ratio, advantages, self.epsilon, high)
        if self.kl_in == "loss" and self.kl_weight > 0:
            ref_logprobs = loss_terms.inside(loss_terms.reference(batch, self.name, self.kl_weight), active)
            token_loss = token_loss + self.kl_weight * loss_terms.kl_estimate(self.kl_estimator, logprobs, ref_logprobs)
        token_loss = loss_terms.with_entropy(token_loss, batch, active, self.name, self.entropy_weight)

        tokens = active.sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # sum_i |o_i|
        loss = loss_terms.inside(token_loss, active).sum() / tokens
        return LossOutput(loss, loss_terms.diagnostics(batch, active, ratio.detach(), self.epsilon, high))


@frozen(kw_only=True)
class ReinforcePlusPlusBaseline(ReinforcePlusPlus):
    """REINFORCE++-baseline: OpenRLHF's estimator ``reinforce_baseline``, verl's ``reinforce_plus_plus_baseline``.

    The options are those of :class:`ReinforcePlusPlus`; the divergence is weighed in the loss, by k2.
    """

    kl_estimator: loss_terms.KL = taken(ReinforcePlusPlusBaselineOptions, "kl_estimator")
    kl_in: Literal["reward", "loss"] = taken(ReinforcePlusPlusBaselineOptions, "kl_in")
    name: str = field(default="reinforce++-baseline", init=False)

    @property
    def smallest_group(self) -> int:
        """2: a completion is compared with the others (:class:`callwright.training.algorithm.GroupBaseline`)."""
        return 2

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]``: R_i minus the mean of its group; masked samples and groups of equal rewards get 0."""
        rewards, valid = loss_terms.readable_rewards(rewards, valid)
        teaches = valid & loss_terms.varied_groups(rewards, valid).unsqueeze(1)
        return torch.where(teaches, rewards - loss_terms.mean_reward(rewards, valid), 0)
