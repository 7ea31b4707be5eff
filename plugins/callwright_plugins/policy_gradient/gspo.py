"""Group sequence policy optimisation (GSPO; Zheng et al. 2025, arXiv 2507.18071, section 4, equations 5 to 7).

Rewards are of whole responses, so the ratio is, too: the geometric mean of the ratios of its tokens, that is the ratio
of the likelihoods of the response with its length taken out,

    s_i = (pi_theta(y_i) / pi_old(y_i)) ^ (1 / |y_i|) = exp( 1/|y_i| sum_t log rho_it )

and it is clipped, or not, for the response as a whole:

    L = -1/N sum_i min(s_i A_i, clip(s_i, 1-epsilon, 1+epsilon_high) A_i)

Advantages are GRPO's. The mean of many tokens moves little, so the range of the paper is 3e-4 below and 4e-4 above,
a thousandth of what bounds single tokens. Its objective has no KL term; a weight above 0 adds one, as in GRPO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from callwright.training.algorithm import LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.kl_placement import KLIn, KLInReward, PlacesKL, estimator, weight_in_loss
from callwright_plugins.policy_gradient.option_tables import GSPOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True)
class GSPO(PlacesKL):
    """GSPO. TRL calls it ``importance_sampling_level="sequence"`` with ``loss_type="grpo"``.

    ``epsilon`` in (0, 1) and ``epsilon_high`` > 0 bound the ratio of a response below and above. ``kl_weight`` >= 0,
    ``kl_in``, ``kl_estimator``, ``std``, ``std_epsilon`` and ``entropy_weight`` are those of GRPO; the paper's weights
    are 0. Raises :class:`callwright.UsageError` for an option out of its range, or for those of the KL term that
    contradict one another.
    """

    epsilon: float = taken(GSPOOptions, "epsilon")
    epsilon_high: float = taken(GSPOOptions, "epsilon_high")
    kl_weight: float = taken(GSPOOptions, "kl_weight")
    kl_in: KLIn = taken(GSPOOptions, "kl_in")
    kl_estimator: loss_terms.KL | None = taken(GSPOOptions, "kl_estimator")
    std: loss_terms.Std = taken(GSPOOptions, "std")
    std_epsilon: float = taken(GSPOOptions, "std_epsilon")
    entropy_weight: float = taken(GSPOOptions, "entropy_weight")
    name: str = field(default="gspo", init=False)

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
        """N: the sequences of the batch with at least one active token in ``mask`` ``[B*G, L]``; at least 1."""
        return float((mask != 0).any(1).sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss over the active tokens ``[B*G, L]`` of a batch. A sequence without one is as if never sampled."""
        term = (
            loss_terms.policy_term(  # -min(s A, clip(s) A) + kl_weight KL: of each token that of its response, [N, L]
                batch,
                self.name,
                low=self.epsilon,
                high=self.epsilon_high,
                kl_weight=weight_in_loss(self),
                kl_estimator=estimator(self),
                entropy_weight=self.entropy_weight,
                ratio_of="mean",
            )
        )
        lengths = term.active.sum(1)  # |y_i|, [N]
        sequence_loss = term.loss.sum(1) / lengths.clamp(min=1)
        sequences = (lengths > 0).sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # N
        loss = sequence_loss.sum() / sequences
        return LossOutput(loss, loss_terms.diagnostics(batch, term.active, term.ratio, self.epsilon, self.epsilon_high))


@frozen(kw_only=True)
class GSPOWithKLInReward(KLInReward, GSPO):
    """What ``GSPO(kl_in="reward")`` makes: the same for rewards that have paid for their divergence."""
