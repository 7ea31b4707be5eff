"""Proximal policy optimisation (PPO; Schulman et al. 2017, arXiv 1707.06347, equations 7 to 12), for token sequences.

Every token is an action. A critic V, a model of its own, says before each token what it expects the rest to earn. The
sequence earns its reward at its last token, and pays for leaving the frozen reference at each:

    r_t = [t is the last token] R - beta KL_t,        KL_t = log pi_old(o_t) - log pi_ref(o_t)            (k1)

Generalised advantage estimates and returns follow (Schulman et al. 2016), V being 0 after the last token:

    delta_t = r_t + gamma V_(t+1) - V_t,     A_t = delta_t + gamma lam A_(t+1),     G_t = A_t + V_t

Tokens of the environment in the middle of a sequence are skipped as verl skips them: "t + 1" is the next token of the
policy, so that value and advantage flow across an observation undiscounted, and what the critic says inside of it is
never read. Advantages are whitened over the tokens of the batch. The policy descends

    L = -1/T sum_t [ min(rho_t A_t, clip(rho_t, 1-epsilon, 1+epsilon_high) A_t) + entropy_weight H_t ]

and the critic, with the values V_old of before the first step,

    L_V = 1/(2T) sum_t max( (V_t - G_t)^2, (clip(V_t, V_old_t - value_clip, V_old_t + value_clip) - G_t)^2 )

T being the active tokens of the batch. The weight beta may follow the divergence (Ziegler et al. 2019, section 2.2):

    beta <- beta (1 + clip(KL / kl_target - 1, -0.2, 0.2) N / kl_horizon)      KL: mean over tokens, then sequences
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from callwright.errors import UsageError
from callwright.training.algorithm import Experience, LossOutput, TokenBatch, ValueBatch
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.option_tables import PPOOptions
from callwright_plugins.policy_gradient.options import taken

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from callwright_plugins.policy_gradient.lazy_torch import torch


@frozen(kw_only=True)
class PPO:
    """PPO with a critic, as ToolRL trains with it through verl (its table 9; OpenRLHF's estimator ``gae``).

    ``gamma`` and ``lam`` in [0, 1] are those of the advantages (both 1 in verl). ``epsilon`` in (0, 1) and
    ``epsilon_high`` > 0 bound the ratio below and above; left out, ``epsilon_high`` is ``epsilon``. ``value_clip`` > 0
    bounds the step of a value; none for no bound. ``kl_weight`` >= 0 is beta (0 needs no reference model),
    ``kl_estimator`` ``"k1"``, ``"k2"`` or ``"k3"``; with ``kl_target`` > 0 in nats, beta follows it over ``kl_horizon``
    sequences. ``entropy_weight`` >= 0 rewards the entropy of each token (0.001 in ToolRL's code). ``whiten`` normalises
    advantages over the batch; ``unbiased_std`` divides their variance by ``n - 1``, as verl does, else by ``n``, as
    OpenRLHF does. Raises :class:`callwright.UsageError` for an option out of its range.
    """

    gamma: float = taken(PPOOptions, "gamma")
    lam: float = taken(PPOOptions, "lam")
    epsilon: float = taken(PPOOptions, "epsilon")
    epsilon_high: float | None = taken(PPOOptions, "epsilon_high")
    value_clip: float | None = taken(PPOOptions, "value_clip")
    kl_weight: float = taken(PPOOptions, "kl_weight")
    kl_estimator: loss_terms.KL = taken(PPOOptions, "kl_estimator")
    kl_target: float | None = taken(PPOOptions, "kl_target")
    kl_horizon: float = taken(PPOOptions, "kl_horizon")
    entropy_weight: float = taken(PPOOptions, "entropy_weight")
    whiten: bool = taken(PPOOptions, "whiten")
    unbiased_std: bool = taken(PPOOptions, "unbiased_std")
    name: str = field(default="ppo", init=False)

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """The rewards ``[B, G]`` as they are: lengths do not matter."""
        return rewards

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]``: R, what each sequence earns at its last token; masked samples get 0. No group is looked at."""
        rewards, valid = loss_terms.readable_rewards(rewards, valid)
        return torch.where(valid, rewards, 0)

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: every group with a valid sample. There is no dynamic sampling."""
        return valid.bool().any(1)

    def token_advantages(self, experience: Experience) -> tuple[Tensor, Tensor]:
        """``A_t`` and ``G_t`` of a whole batch, both ``[N, L]``.

        Raises :class:`callwright.UsageError` if there are no values of a critic.
        """
        active, scores = loss_terms.experienced(experience)
        if experience.values is None:
            raise UsageError(f"{self.name}: there are no values; the trainer must keep a critic")
        weight = self.kl_weight if experience.kl_weight is None else experience.kl_weight
        rewards = loss_terms.inside(scores.unsqueeze(1), loss_terms.last_token(active))
        rewards = rewards - loss_terms.kl_penalty(experience, active, self.kl_estimator, self.name, weight)  # r_t
        values = experience.values.detach().to(rewards)  # V_t
        advantages, returns = loss_terms.generalised_advantages(rewards, values, active, self.gamma, self.lam)
        if self.whiten:
            advantages = loss_terms.whiten(advantages, active, unbiased=self.unbiased_std)
        return advantages, returns

    def next_kl_weight(self, experience: Experience) -> float:
        """The weight of the next step; the same without ``kl_target``, or where nothing was sampled."""
        active, _ = loss_terms.experienced(experience)
        weight = self.kl_weight if experience.kl_weight is None else experience.kl_weight
        lengths = active.sum(1)
        sequences = int((lengths > 0).sum())
        if self.kl_target is None or not sequences or not weight:
            return weight
        divergence = loss_terms.kl_penalty(experience, active, self.kl_estimator, self.name, 1.0)
        mean = float((divergence.sum(1) / lengths.clamp(min=1)).sum() / sequences)
        error = min(0.2, max(-0.2, mean / self.kl_target - 1))
        return weight * (1 + error * sequences / self.kl_horizon)

    def normaliser(self, mask: Tensor) -> float:
        """T: the active tokens of ``mask`` ``[B*G, L]``; at least 1."""
        return float((mask != 0).sum().clamp(min=1))

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss L of the policy over the active tokens ``[B*G, L]`` of a batch."""
        active = loss_terms.active_tokens(batch)  # [N, L]
        logprobs = loss_terms.inside(batch.logprobs, active)  # log pi_theta(o_t)
        old_logprobs = loss_terms.inside(batch.old_logprobs.detach(), active)  # log pi_old(o_t)
        advantages = loss_terms.token_advantages(batch, active)  # A_t, [N, L]

        ratio = torch.exp(logprobs - old_logprobs)  # rho_t
        high = self.epsilon if self.epsilon_high is None else self.epsilon_high
        token_loss = -loss_terms.clipped_surrogate(ratio, advantages, self.epsilon, high)
        token_loss = loss_terms.with_entropy(token_loss, batch, active, self.name, self.entropy_weight)

        tokens = active.sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # T
        loss = loss_terms.inside(token_loss, active).sum() / tokens
        return LossOutput(loss, loss_terms.diagnostics(batch, active, ratio.detach(), self.epsilon, high))

    def value_loss(self, batch: ValueBatch) -> LossOutput:
        """The loss L_V of the critic over the active tokens ``[N, L]`` of a batch."""
        active = loss_terms.active_values(batch)  # [N, L]
        values = loss_terms.inside(batch.values, active)  # V_t
        old_values = loss_terms.inside(batch.old_values.detach(), active)  # V_old_t
        returns = loss_terms.inside(batch.returns.detach(), active)  # G_t

        error = (values - returns).square()
        clipped = torch.zeros_like(active)
        if self.value_clip is not None:
            bounded = old_values + (values - old_values).clamp(-self.value_clip, self.value_clip)
            bounded_error = (bounded - returns).square()
            clipped = bounded_error > error
            error = torch.maximum(error, bounded_error)

        tokens = active.sum().clamp(min=1) if batch.normaliser is None else batch.normaliser  # T
        loss = loss_terms.inside(error, active).sum() / (2 * tokens)
        return LossOutput(loss, loss_terms.value_diagnostics(values.detach(), returns, clipped, active))
