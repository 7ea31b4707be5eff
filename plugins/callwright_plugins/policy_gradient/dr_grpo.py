"""Dr. GRPO, "GRPO done right" (Liu et al. 2025, "Understanding R1-Zero-like training", arXiv 2503.20783, section 3.2).

Two divisions of GRPO are left out, since each turns the gradient away from that of the expected reward. Dividing by the
deviation of a group weighs prompts that are nearly solved or nearly hopeless more than others:

    A_i = R_i - mean(R)                                           mean over the prompt's group

and dividing by the length of each completion favours short right ones and long wrong ones. The loss divides by the
number of completions N and by a constant, the longest that a completion may be:

    L = -1 / (N L_max)  sum_i sum_t min(rho_it A_i, clip(rho_it, 1-epsilon, 1+epsilon_high) A_i)

There is no KL term; a weight above 0 adds the k3 estimate, as in GRPO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from callwright.training.algorithm import LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.kl_placement import KLIn, KLInReward, PlacesKL, estimator, weight_in_loss
from callwright_plugins.policy_gradient.option_tables import DrGRPOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True)
class DrGRPO(PlacesKL):
    """GRPO without its two biases. TRL calls the loss ``loss_type="dr_grpo"``, with ``scale_rewards="none"``.

    ``max_length`` is L_max in tokens; left out, it is the width of the mask that :meth:`normaliser` is given, which
    trainers make as wide as a completion may be long. ``epsilon`` in (0, 1) and ``epsilon_high`` > 0 bound the ratio
    below and above; left out, ``epsilon_high`` is ``epsilon``. ``kl_weight`` and ``entropy_weight`` >= 0 are 0 in the
    paper. ``kl_in`` says whether the divergence stands in the ``"loss"`` or in the ``"reward"``, where it comes off
    before the mean of the group (:mod:`.kl_placement`); ``kl_estimator`` how it is estimated: ``"k1"`` (the default in
    the reward, and only there), ``"k2"`` or ``"k3"`` (the default in the loss). Raises :class:`callwright.UsageError`
    for an option out of its range, or for those of the KL term that contradict one another.
    """

    max_length: int | None = taken(DrGRPOOptions, "max_length")
    epsilon: float = taken(DrGRPOOptions, "epsilon")
    epsilon_high: float | None = taken(DrGRPOOptions, "epsilon_high")
    kl_weight: float = taken(DrGRPOOptions, "kl_weight")
    kl_in: KLIn = taken(DrGRPOOptions, "kl_in")
    kl_estimator: loss_terms.KL | None = taken(DrGRPOOptions, "kl_estimator")
    entropy_weight: float = taken(DrGRPOOptions, "entropy_weight")
    name: str = field(default="dr-grpo", init=False)

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
        return loss_terms.normalised_rewards(rewards, valid, "none", 0.0)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: every group with a valid sample. There is no dynamic sampling."""
        return valid.bool().any(1)

    def normaliser(self, mask: Tensor) -> float:
        """``N L_max``: sequences with an active token in ``mask`` ``[B*G, L]`` times the constant; at least 1."""
        sequences = int((mask != 0).any(1).sum().clamp(min=1))
        return float(sequences * max(1, mask.shape[1] if self.max_length is None else self.max_length))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss over the active tokens ``[B*G, L]`` of a batch. A sequence without one is as if never sampled."""
        high = self.epsilon if self.epsilon_high is None else self.epsilon_high
        term = loss_terms.policy_term(  # -min(rho A, clip(rho) A) + kl_weight KL, [N, L]
            batch,
            self.name,
            low=self.epsilon,
            high=high,
            kl_weight=weight_in_loss(self),
            kl_estimator=estimator(self),
            entropy_weight=self.entropy_weight,
        )
        longest = max(1, term.active.shape[1] if self.max_length is None else self.max_length)  # L_max
        sequences = term.active.any(1).sum().clamp(min=1)  # N
        whole = sequences * longest if batch.normaliser is None else batch.normaliser
        loss = term.loss.sum() / whole
        return LossOutput(loss, loss_terms.diagnostics(batch, term.active, term.ratio, self.epsilon, high))


@frozen(kw_only=True)
class DrGRPOWithKLInReward(KLInReward, DrGRPO):
    """What ``DrGRPO(kl_in="reward")`` makes: the same for rewards that have paid for their divergence."""
