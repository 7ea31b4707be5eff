"""Batch-normalised GRPO (TIER, arXiv 2605.16790, section 2.3): the algorithm that the TIER paper trains with.

What is batch-normalised is the token loss; advantages are normalised by group, as in GRPO:

    A(x, y) = (R(x, y) - mean_G(x)) / (std_G(x) + eps),           eps = 1e-4

With rho_t = pi_theta(y_t) / pi_old(y_t), T_y the active tokens of completion y, and

    KL_t = exp(r_t) - r_t - 1,      r_t = log pi_ref(y_t) - log pi_theta(y_t)

the loss is one sum over all tokens of the batch, divided by their number, so that every token weighs the same:

    L = 1 / (sum_i T_i)  sum_(x,y) sum_t [ -min(rho_t A, clip(rho_t, 1-epsilon, 1+epsilon_high) A) + lambda KL_t ]

with lambda = 0.04. "Batch" is the paper's local batch: the whole batch if the normaliser of the whole batch is given
to each micro-batch, else each micro-batch by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from callwright.training.algorithm import LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.kl_placement import KLIn, KLInReward, PlacesKL, estimator, weight_in_loss
from callwright_plugins.policy_gradient.option_tables import BatchNormalisedGRPOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True)
class BatchNormalisedGRPO(PlacesKL):
    """GRPO with a token-level loss over the batch. TRL calls the loss ``loss_type="bnpo"``.

    ``epsilon`` in (0, 1) and ``epsilon_high`` > 0 bound the ratio below and above; left out, ``epsilon_high`` is
    ``epsilon``. ``kl_weight`` >= 0 is the paper's lambda. ``kl_in`` says whether the divergence stands in the
    ``"loss"`` (the paper) or in the ``"reward"``, where it comes off before the group is normalised
    (:mod:`.kl_placement`); ``kl_estimator`` how it is estimated: ``"k1"`` (the default in the reward, and only there),
    ``"k2"`` or ``"k3"`` (the default in the loss). ``unbiased_kl`` multiplies the KL term by the ratio, as TRL 1.16
    does by default and the paper does not. ``std`` says what the deviation of rewards is taken over: ``"group"``
    (divisor n - 1, as TRL), ``"population"`` (the group with the divisor n), ``"batch"`` (all rewards of the batch) or
    ``"none"`` (no division). ``std_epsilon`` >= 0 is added to the deviation. ``entropy_weight`` >= 0 rewards the
    entropy of each token (0 in the paper). ``credit_share`` in [0, 1] of a penalty lands on the tokens that its
    evidence is about (:class:`callwright.training.algorithm.PlacesCredit`; 0 in the paper). Raises
    :class:`callwright.UsageError` for an option out of its range, or for those of the KL term that contradict one
    another.
    """

    epsilon: float = taken(BatchNormalisedGRPOOptions, "epsilon")
    epsilon_high: float | None = taken(BatchNormalisedGRPOOptions, "epsilon_high")
    kl_weight: float = taken(BatchNormalisedGRPOOptions, "kl_weight")
    kl_in: KLIn = taken(BatchNormalisedGRPOOptions, "kl_in")
    kl_estimator: loss_terms.KL | None = taken(BatchNormalisedGRPOOptions, "kl_estimator")
    unbiased_kl: bool = taken(BatchNormalisedGRPOOptions, "unbiased_kl")
    std: loss_terms.Std = taken(BatchNormalisedGRPOOptions, "std")
    std_epsilon: float = taken(BatchNormalisedGRPOOptions, "std_epsilon")
    entropy_weight: float = taken(BatchNormalisedGRPOOptions, "entropy_weight")
    credit_share: float = taken(BatchNormalisedGRPOOptions, "credit_share")
    name: str = field(default="bn-grpo", init=False)

    @property
    def smallest_group(self) -> int:
        """2: a completion is compared with the others (:class:`callwright.training.algorithm.GroupBaseline`)."""
        return 2

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """The rewards ``[B, G]`` as they are: lengths do not matter."""
        return rewards

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]`` from rewards ``[B, G]``; masked samples and groups of equal rewards get 0."""
        return self.normalised(*loss_terms.readable_rewards(rewards, valid))

    def normalised(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """A, ``[B, G]``; masked samples and groups of equal rewards get 0."""
        return loss_terms.normalised_rewards(rewards, valid, self.std, self.std_epsilon)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: every group with a valid sample. There is no dynamic sampling."""
        return valid.bool().any(1)

    def placed(self, advantages: Tensor, blame: Tensor, mask: Tensor) -> Tensor:
        """``credit_share`` of each penalty on the blamed tokens, the rest on all; ``[N, L]``."""
        return loss_terms.placed_penalty(advantages, blame, mask, self.credit_share)

    def normaliser(self, mask: Tensor) -> float:
        """``sum_i T_i``: the active tokens of ``mask`` ``[B*G, L]``; at least 1."""
        return float((mask != 0).sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss over the active tokens ``[B*G, L]`` of a batch."""
        high = self.epsilon if self.epsilon_high is None else self.epsilon_high
        term = loss_terms.policy_term(  # -min(rho A, clip(rho) A) + kl_weight KL, [N, L]
            batch,
            self.name,
            low=self.epsilon,
            high=high,
            kl_weight=weight_in_loss(self),
            kl_estimator=estimator(self),
            unbiased_kl=self.unbiased_kl,
            entropy_weight=self.entropy_weight,
        )
        tokens = term.active.sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # sum_i T_i
        loss = term.loss.sum() / tokens
        return LossOutput(loss, loss_terms.diagnostics(batch, term.active, term.ratio, self.epsilon, high))


@frozen(kw_only=True)
class BatchNormalisedGRPOWithKLInReward(KLInReward, BatchNormalisedGRPO):
    """What ``BatchNormalisedGRPO(kl_in="reward")`` makes: the same for rewards that have paid for their divergence."""
