"""Group relative policy optimisation (Shao et al. 2024, "DeepSeekMath", section 4.1, equations 3 and 4).

For each prompt, G completions are sampled from the old policy and rewarded. The advantage of completion i is

    A_i = (R_i - mean(R)) / (std(R) + eps)                        mean and std over the prompt's group

and is the same for all its tokens. With the ratio and the k3 estimate of the KL divergence from a frozen reference

    rho_it = pi_theta(o_it) / pi_old(o_it)
    KL_it  = exp(r_it) - r_it - 1,      r_it = log pi_ref(o_it) - log pi_theta(o_it)

the loss is a mean over the tokens of each sequence, then a mean over sequences, so that every sequence weighs the
same and the tokens of a short one weigh more:

    L = -1/N sum_i 1/|o_i| sum_t [ min(rho_it A_i, clip(rho_it, 1-epsilon, 1+epsilon_high) A_i) - kl_weight KL_it ]

ToolRL (arXiv 2504.13958, section 3.4) prints another objective under the name, with the ratio of whole responses, which
no length divides:

    L = -1/N sum_i min(rho_i A_i, clip(rho_i, 1-epsilon, 1+epsilon_high) A_i),      rho_i = prod_t rho_it

Its mean and deviation are those of a population: the divisor is n, where the deviation of others divides by n - 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from callwright.training.algorithm import LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.kl_placement import KLIn, KLInReward, PlacesKL, estimator, weight_in_loss
from callwright_plugins.policy_gradient.option_tables import GRPOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True)
class GRPO(PlacesKL):
    """GRPO with the loss of its paper. TRL calls the loss ``loss_type="grpo"``.

    ``epsilon`` in (0, 1) and ``epsilon_high`` > 0 bound the ratio below and above; left out, ``epsilon_high`` is
    ``epsilon``. ``ratio`` is that of each ``"token"`` (the paper) or of the whole ``"response"`` (ToolRL, 3.4).
    ``kl_weight`` >= 0 is the paper's beta; ``kl_in`` says whether the divergence stands in the ``"loss"`` (the paper)
    or in the ``"reward"`` (verl and ToolRL's released code: :mod:`.kl_placement`), ``kl_estimator`` how it is
    estimated: ``"k1"`` (the default in the reward, and only there), ``"k2"`` or ``"k3"`` (the default in the loss).
    ``unbiased_kl`` multiplies the KL term by the ratio, which makes its gradient that of the divergence itself
    (DeepSeek-V3.2; the default of TRL 1.16, and not of the paper).
    ``std`` says what the deviation of rewards is taken over: ``"group"`` (divisor n - 1, as all released code),
    ``"population"`` (the group with the divisor n; ToolRL, 3.4), ``"batch"`` (all rewards of the batch, so that nearly
    equal groups are not blown up) or ``"none"`` (no division, so that a group's weight does not depend on how hard its
    prompt is). ``std_epsilon`` >= 0 is added to the deviation.
    ``entropy_weight`` >= 0 rewards the entropy of each token (0 in the paper). ``credit_share`` in [0, 1] of a
    penalty lands on the tokens that its evidence is about (:class:`callwright.training.algorithm.PlacesCredit`; 0 in
    the paper). Raises :class:`callwright.UsageError`
    for an option out of its range, or for those of the KL term that contradict one another.
    """

    epsilon: float = taken(GRPOOptions, "epsilon")
    epsilon_high: float | None = taken(GRPOOptions, "epsilon_high")
    ratio: Literal["token", "response"] = taken(GRPOOptions, "ratio")
    kl_weight: float = taken(GRPOOptions, "kl_weight")
    kl_in: KLIn = taken(GRPOOptions, "kl_in")
    kl_estimator: loss_terms.KL | None = taken(GRPOOptions, "kl_estimator")
    unbiased_kl: bool = taken(GRPOOptions, "unbiased_kl")
    std: loss_terms.Std = taken(GRPOOptions, "std")
    std_epsilon: float = taken(GRPOOptions, "std_epsilon")
    entropy_weight: float = taken(GRPOOptions, "entropy_weight")
    credit_share: float = taken(GRPOOptions, "credit_share")
    name: str = field(default="grpo", init=False)

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
        """``[B]`` bool: every group with a valid sample. GRPO has no dynamic sampling."""
        return valid.bool().any(1)

    def placed(self, advantages: Tensor, blame: Tensor, mask: Tensor) -> Tensor:
        """``credit_share`` of each penalty on the blamed tokens, the rest on all; ``[N, L]``."""
        return loss_terms.placed_penalty(advantages, blame, mask, self.credit_share)

    def normaliser(self, mask: Tensor) -> float:
        """N: the sequences of the batch with at least one active token in ``mask`` ``[B*G, L]``; at least 1."""
        return float((mask != 0).any(1).sum().clamp(min=1))

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
            unbiased_kl=self.unbiased_kl,
            entropy_weight=self.entropy_weight,
            ratio_of=self.ratio,
        )
        lengths = term.active.sum(1)  # |o_i|, [N]
        sequence_loss = term.loss.sum(1) / lengths.clamp(min=1)
        sequences = (lengths > 0).sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # N
        loss = sequence_loss.sum() / sequences
        return LossOutput(loss, loss_terms.diagnostics(batch, term.active, term.ratio, self.epsilon, high))


@frozen(kw_only=True)
class GRPOWithKLInReward(KLInReward, GRPO):
    """What ``GRPO(kl_in="reward")`` makes: the same for rewards that have paid for their divergence."""
