"""Decoupled clip and dynamic sampling policy optimisation (DAPO; Yu et al. 2025, arXiv 2503.14476, section 3).

Four changes to GRPO:

1. Clip-higher (equation 10). The ratio is bounded by 1 - epsilon_low and 1 + epsilon_high, the second being larger, so
   that an unlikely token has room to become likely.
2. Dynamic sampling (equation 11). A group whose completions all fare the same has advantages 0; others are drawn in
   its place until the batch is full. The paper's test is 0 < correct < G; with graded rewards it is: not all equal.
3. Token-level loss (equation 12). One sum over all tokens divided by their number:

       L = -1 / (sum_i |o_i|)  sum_i sum_t min(rho_it A_i, clip(rho_it, 1-epsilon_low, 1+epsilon_high) A_i)

4. Overlong shaping (equation 13). In the last L_cache tokens before the limit L_max a punishment is added:

       0                                      |y| <= L_max - L_cache
       ((L_max - L_cache) - |y|) / L_cache    L_max - L_cache < |y| <= L_max
       -1                                     L_max < |y|

There is no KL term; a weight above 0 adds the k3 estimate, as in GRPO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from callwright.errors import UsageError
from callwright.training.algorithm import LossOutput, TokenBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.kl_placement import KLIn, KLInReward, PlacesKL, estimator, weight_in_loss
from callwright_plugins.policy_gradient.option_tables import DAPOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True)
class DAPO(PlacesKL):
    """DAPO with all four of its parts. TRL's ``loss_type="dapo"`` is the third, and with ``epsilon_high`` the first.

    ``epsilon_low`` in (0, 1) and ``epsilon_high`` > 0 bound the ratio. ``kl_weight`` >= 0, ``kl_in``,
    ``kl_estimator``, ``unbiased_kl`` and ``std`` are those of GRPO; a divergence in the ``"reward"`` comes off after
    the overlong shaping, and dynamic sampling does not look at it. ``std_epsilon`` >= 0 is added to the deviation (the
    paper adds nothing, TRL 1e-4). ``dynamic_sampling`` leaves groups of equal rewards out. ``overlong_buffer`` is
    L_cache in tokens: left out, a fifth of the limit (the paper's 4,096 of 20,480); 0 for no shaping.
    ``overlong_penalty`` >= 0 scales the punishment (the paper's rewards are -1 and 1: for rewards in [0, 1] a penalty
    of 0.5 weighs as much). ``entropy_weight`` >= 0 rewards the entropy of each token (0 in the paper). Raises
    :class:`callwright.UsageError` for an option out of its range, or for those of the KL term that contradict one
    another.
    """

    epsilon_low: float = taken(DAPOOptions, "epsilon_low")
    epsilon_high: float = taken(DAPOOptions, "epsilon_high")
    kl_weight: float = taken(DAPOOptions, "kl_weight")
    kl_in: KLIn = taken(DAPOOptions, "kl_in")
    kl_estimator: loss_terms.KL | None = taken(DAPOOptions, "kl_estimator")
    unbiased_kl: bool = taken(DAPOOptions, "unbiased_kl")
    std: loss_terms.Std = taken(DAPOOptions, "std")
    std_epsilon: float = taken(DAPOOptions, "std_epsilon")
    entropy_weight: float = taken(DAPOOptions, "entropy_weight")
    dynamic_sampling: bool = taken(DAPOOptions, "dynamic_sampling")
    overlong_buffer: int | None = taken(DAPOOptions, "overlong_buffer")
    overlong_penalty: float = taken(DAPOOptions, "overlong_penalty")
    name: str = field(default="dapo", init=False)

    @property
    def shapes_overlong(self) -> bool:
        """Whether there is a buffer, and a punishment in it: :class:`callwright.training.algorithm.ShapesOverlong`."""
        return self.overlong_buffer != 0 and self.overlong_penalty > 0

    @property
    def smallest_group(self) -> int:
        """2: a completion is compared with the others (:class:`callwright.training.algorithm.GroupBaseline`)."""
        return 2

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """Rewards ``[B, G]`` plus the overlong punishment of completions of ``lengths`` ``[B, G]`` tokens.

        Raises :class:`callwright.UsageError` if the buffer is longer than the limit: everything would be punished.
        """
        buffer = max_length // 5 if self.overlong_buffer is None else self.overlong_buffer  # L_cache
        if buffer > max_length:
            raise UsageError(
                f"{self.name}: overlong_buffer is {buffer} tokens, but a completion may only have {max_length}; "
                "every completion would be punished for its length"
            )
        if buffer == 0:
            return rewards
        rewards = rewards if rewards.is_floating_point() else rewards.float()
        soft = ((max_length - buffer) - lengths.to(rewards)) / buffer
        return rewards + self.overlong_penalty * soft.clamp(-1, 0)

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]`` from (shaped) rewards ``[B, G]``; masked samples and groups of equal rewards get 0."""
        return self.normalised(*loss_terms.readable_rewards(rewards, valid))

    def normalised(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """A_i, ``[B, G]``; masked samples and groups of equal rewards get 0."""
        return loss_terms.normalised_rewards(rewards, valid, self.std, self.std_epsilon)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: the groups whose valid rewards ``[B, G]`` are not all equal.

        Give it the rewards before shaping: a group that fails throughout, at different lengths, has nothing to teach
        but brevity.
        """
        rewards, valid = loss_terms.readable_rewards(rewards, valid)
        return loss_terms.varied_groups(rewards, valid) if self.dynamic_sampling else valid.any(1)

    def normaliser(self, mask: Tensor) -> float:
        """``sum_i |o_i|``: the active tokens of ``mask`` ``[B*G, L]``; at least 1."""
        return float((mask != 0).sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss over the active tokens ``[B*G, L]`` of a batch."""
        term = loss_terms.policy_term(  # -min(rho A, clip(rho) A) + kl_weight KL, [N, L]
            batch,
            self.name,
            low=self.epsilon_low,
            high=self.epsilon_high,
            kl_weight=weight_in_loss(self),
            kl_estimator=estimator(self),
            unbiased_kl=self.unbiased_kl,
            entropy_weight=self.entropy_weight,
        )
        tokens = term.active.sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # sum_i |o_i|
        loss = term.loss.sum() / tokens
        return LossOutput(
            loss, loss_terms.diagnostics(batch, term.active, term.ratio, self.epsilon_low, self.epsilon_high)
        )


@frozen(kw_only=True)
class DAPOWithKLInReward(KLInReward, DAPO):
    """What ``DAPO(kl_in="reward")`` makes: the same for rewards that have paid for their divergence."""
