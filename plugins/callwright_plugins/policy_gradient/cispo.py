"""Clipped importance sampling policy optimisation (CISPO; MiniMax-M1, arXiv 2506.13585, section 3.1, equations 4, 5).

PPO's clipping takes the gradient of a token away whose ratio has left its range: rare tokens, at which reasoning turns,
go first. CISPO clips the weight and not the gradient. With the ratio as a constant (sg: no gradient flows)

    L = -1 / (sum_i |o_i|)  sum_i sum_t sg( clip(rho_it, 1-epsilon_low, 1+epsilon_high) ) A_i log pi_theta(o_it)

so every token learns. The paper sets no bound below, and so does the default here; advantages are GRPO's, and there is
no KL term (a weight above 0 adds the k3 estimate).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from callwright.training.algorithm import LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.kl_placement import KLIn, KLInReward, PlacesKL, estimator, weight_in_loss
from callwright_plugins.policy_gradient.option_tables import CISPOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    from torch import Tensor

#: As ``epsilon_low`` this bounds nothing: no ratio is below 0.
_NO_BOUND: Final = 1.0


@frozen(kw_only=True)
class CISPO(PlacesKL):
    """CISPO. TRL calls it ``loss_type="cispo"``; its ``epsilon_high`` is the bound itself, ours what is added to 1.

    ``epsilon_low`` in (0, 1) bounds the weight below, left out nothing does; ``epsilon_high`` > 0 bounds it above, at
    1 + epsilon_high (the default is TRL's 5, from "The art of scaling reinforcement learning compute"; the paper names
    none). ``kl_weight`` >= 0, ``kl_in``, ``kl_estimator``, ``std``, ``std_epsilon`` and ``entropy_weight`` are those
    of GRPO. Raises :class:`callwright.UsageError` for an option out of its range, or for those of the KL term that
    contradict one another.
    """

    epsilon_low: float | None = taken(CISPOOptions, "epsilon_low")
    epsilon_high: float = taken(CISPOOptions, "epsilon_high")
    kl_weight: float = taken(CISPOOptions, "kl_weight")
    kl_in: KLIn = taken(CISPOOptions, "kl_in")
    kl_estimator: loss_terms.KL | None = taken(CISPOOptions, "kl_estimator")
    std: loss_terms.Std = taken(CISPOOptions, "std")
    std_epsilon: float = taken(CISPOOptions, "std_epsilon")
    entropy_weight: float = taken(CISPOOptions, "entropy_weight")
    name: str = field(default="cispo", init=False)

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
        """A_i, ``[B, G]``; masked samples and groups of equal rewards get 0."""
        return loss_terms.normalised_rewards(rewards, valid, self.std, self.std_epsilon)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: every group with a valid sample. There is no dynamic sampling."""
        return valid.bool().any(1)

    def normaliser(self, mask: Tensor) -> float:
        """``sum_i |o_i|``: the active tokens of ``mask`` ``[B*G, L]``; at least 1."""
        return float((mask != 0).sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss over the active tokens ``[B*G, L]`` of a batch."""
        low = _NO_BOUND if self.epsilon_low is None else self.epsilon_low
        term = loss_terms.policy_term(  # -sg(clip(rho)) A log pi + kl_weight KL, [N, L]
            batch,
            self.name,
            low=low,
            high=self.epsilon_high,
            kl_weight=weight_in_loss(self),
            kl_estimator=estimator(self),
            entropy_weight=self.entropy_weight,
            surrogate=loss_terms.clipped_weight,
        )
        tokens = term.active.sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # sum_i |o_i|
        loss = term.loss.sum() / tokens
        return LossOutput(loss, loss_terms.diagnostics(batch, term.active, term.ratio, low, self.epsilon_high))


@frozen(kw_only=True)
class CISPOWithKLInReward(KLInReward, CISPO):
    """What ``CISPO(kl_in="reward")`` makes: the same for rewards that have paid for their divergence."""
