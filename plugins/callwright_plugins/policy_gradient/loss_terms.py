"""The terms that the losses are made of: small pure functions of tensors, without options or state.

Shapes: ``B`` prompts, ``G`` completions a prompt, ``L`` completion tokens, ``N = B*G`` rows. Log-probabilities are in
nats. What stands in inactive positions is never read: it may be NaN or infinite, and no gradient flows into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from attrs import frozen

from callwright.errors import UsageError
from callwright.training.algorithm import Experience, TokenBatch, ValueBatch
from callwright_plugins.policy_gradient.lazy_torch import without_gradient

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from callwright_plugins.policy_gradient.lazy_torch import torch

#: What the deviation of rewards is taken over: each prompt's group with the divisor ``n - 1`` or, as that of a whole
#: ``"population"``, with ``n``; all rewards of the batch (``n - 1``); or none (no division).
Std = Literal["group", "population", "batch", "none"]

#: Estimators of the KL divergence of the policy from its reference, from one sampled token (Schulman 2020).
KL = Literal["k1", "k2", "k3"]

#: Of what the ratio is: of each token, of a whole response (the product over its tokens), or their geometric mean.
RatioOf = Literal["token", "response", "mean"]

#: A surrogate ``[N, L]`` of ratios, advantages, log-probabilities, and the bounds below and above.
Surrogate = Callable[["Tensor", "Tensor", "Tensor", float, float], "Tensor"]

#: Rewards of a group that lie within this of one another count as equal: they differ by rounding, and dividing the
#: differences by their own deviation would make a gradient of it.
EQUAL_REWARDS: Final = 1e-6


# Rewards ------------------------------------------------------------------------------------------------------------


def readable_rewards(rewards: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Rewards ``[B, G]`` with 0 in place of masked samples, and ``valid`` ``[B, G]`` as bool.

    Raises :class:`callwright.UsageError` for other shapes, and for a valid sample whose reward is not a finite number:
    it would spread over its whole group, and from there into the weights.
    """
    if rewards.dim() != 2 or rewards.shape != valid.shape:
        raise UsageError(
            "rewards and valid must both have the shape [prompts, completions per prompt], but have "
            f"{list(rewards.shape)} and {list(valid.shape)}"
        )
    valid = valid.bool()
    rewards = torch.where(valid, rewards if rewards.is_floating_point() else rewards.float(), 0)
    if not bool(rewards.isfinite().all()):
        prompt, completion = (~rewards.isfinite()).nonzero()[0].tolist()
        raise UsageError(
            f"the reward of prompt {prompt}, completion {completion} is {rewards[prompt, completion].item()}, although "
            "the sample is marked valid; a sample without a reward must be masked"
        )
    return rewards, valid


def mean_reward(rewards: Tensor, valid: Tensor) -> Tensor:
    """``[B, 1]``: the mean of each group over its valid samples; 0 where there is none."""
    return torch.where(valid, rewards, 0).sum(1, keepdim=True) / valid.sum(1, keepdim=True).clamp(min=1)


def deviation(rewards: Tensor, valid: Tensor, over: Literal["group", "population", "batch"]) -> Tensor:
    """The standard deviation over valid samples: unbiased (divisor ``n - 1``, as ``torch.std``, TRL and verl), or with
    the divisor ``n`` for ``"population"`` (ToolRL, section 3.4).

    ``[B, 1]`` over groups, ``[1, 1]`` over the batch; 0 for fewer than two valid samples.
    """
    if over == "batch":
        return deviation(rewards.reshape(1, -1), valid.reshape(1, -1), "group")
    squares = torch.where(valid, rewards - mean_reward(rewards, valid), 0).square()
    count = valid.sum(1, keepdim=True) - (0 if over == "population" else 1)
    return (squares.sum(1, keepdim=True) / count.clamp(min=1)).sqrt()


def normalised_rewards(rewards: Tensor, valid: Tensor, std: Std, std_epsilon: float) -> Tensor:
    """``(R - mean) / (std + eps)`` ``[B, G]``, the mean being that of each group; masked samples and groups of equal
    rewards get exactly 0. ``rewards`` and ``valid`` are those of :func:`readable_rewards`."""
    advantages = rewards - mean_reward(rewards, valid)
    if std != "none":
        advantages = advantages / (deviation(rewards, valid, std) + std_epsilon)
    return torch.where(valid & varied_groups(rewards, valid).unsqueeze(1), advantages, 0)


def varied_groups(rewards: Tensor, valid: Tensor) -> Tensor:
    """``[B]`` bool: whether the valid rewards of a group differ. Fewer than two valid samples cannot."""
    highest = torch.where(valid, rewards, -torch.inf).amax(1)
    lowest = torch.where(valid, rewards, torch.inf).amin(1)
    return highest - lowest > EQUAL_REWARDS  # -inf for a group without a valid sample


def zero_variance_fraction(rewards: Tensor, valid: Tensor) -> float:
    """The share, in ``[0, 1]``, of groups whose valid rewards ``[B, G]`` are all equal: they teach nothing.

    Groups without a valid sample are not counted, since they say nothing about the rewards. 0 where no group is left.
    """
    rewards, valid = readable_rewards(rewards, valid)
    seen = valid.any(1)
    equal = seen & ~varied_groups(rewards, valid)
    return float(equal.sum() / seen.sum().clamp(min=1))


# Tokens -------------------------------------------------------------------------------------------------------------


def active_tokens(batch: TokenBatch) -> Tensor:
    """``[N, L]`` bool: the tokens that are trained on.

    Raises :class:`callwright.UsageError` where shapes do not fit: torch would broadcast most such mistakes silently.
    """
    shape = batch.logprobs.shape
    if len(shape) != 2:
        raise UsageError(f"logprobs must have the shape [sequences, tokens], but has {list(shape)}")
    for field in ("old_logprobs", "mask", "ref_logprobs", "entropy"):
        values = getattr(batch, field)
        if values is not None and values.shape != shape:
            raise UsageError(f"{field} has the shape {list(values.shape)}, but logprobs has {list(shape)}")
    if batch.advantages.shape not in (shape[:1], shape):
        raise UsageError(
            f"advantages has the shape {list(batch.advantages.shape)}, but must have one value for each of the "
            f"{shape[0]} sequences (flatten [B, G] to [B*G]), or one for each token: {list(shape)}"
        )
    if batch.normaliser is not None and not batch.normaliser > 0:
        raise UsageError(f"normaliser must be greater than 0, but is {batch.normaliser!r}")
    return batch.mask != 0


def inside(values: Tensor, active: Tensor) -> Tensor:
    """``values`` where ``active``, else 0. A product with the mask would let NaN and infinity in padding through."""
    return torch.where(active, values, 0)


def token_advantages(batch: TokenBatch, active: Tensor) -> Tensor:
    """The advantages without gradient: ``[N, 1]`` of sequences, or ``[N, L]`` of tokens, 0 where they are inactive."""
    advantages = batch.advantages.detach().to(batch.logprobs)
    return advantages.unsqueeze(1) if advantages.dim() == 1 else inside(advantages, active)


def placed_penalty(advantages: Tensor, blame: Tensor, mask: Tensor, share: float) -> Tensor:
    """Negative advantages, of which ``share`` lands on the tokens that are blamed and the rest on all: ``[N, L]``.

    With ``b_t`` 1 for a blamed active token and T active tokens: ``A_t = A (1 - share + share T b_t / sum b)``, whose
    sum over the tokens stays ``T A``. Rows without a blamed token, and advantages of 0 and above, stay as they are.
    """
    active = mask != 0
    blamed = active & (blame != 0)
    tokens, at_fault = (marked.sum(1, keepdim=True).to(advantages) for marked in (active, blamed))
    weight = 1 - share + share * tokens * blamed / at_fault.clamp(min=1)
    moved = (advantages < 0) & blamed.any(1, keepdim=True)
    return inside(torch.where(moved, advantages * weight, advantages), active)


def clipped_surrogate(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """``min(rho A, clip(rho, 1 - low, 1 + high) A)``: ``[N, L]`` from ratios ``[N, L]`` and advantages ``[N, 1]``, or
    ``[N, L]``."""
    return torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def clipped_weight(ratio: Tensor, advantages: Tensor, logprobs: Tensor, low: float, high: float) -> Tensor:
    """``sg(clip(rho, 1 - low, 1 + high)) A log pi``: the weight is clipped, and the gradient stays (CISPO).

    ``[N, L]`` from ratios and log-probabilities ``[N, L]`` and advantages ``[N, 1]``, or ``[N, L]``.
    """
    return ratio.detach().clamp(1 - low, 1 + high) * advantages * logprobs


def k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """``exp(r) - r - 1`` with ``r = log pi_ref - log pi_theta``: nats, never negative (Schulman 2017). ``[N, L]``."""
    r = ref_logprobs - logprobs
    return torch.expm1(r) - r  # exp(r) - 1 loses every digit of a small r


def kl_estimate(estimator: KL, logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """Nats for each token ``[N, L]``, with ``r = log pi_ref - log pi_theta``: k1 is ``-r`` (of either sign), k2
    ``r^2 / 2``, k3 ``exp(r) - r - 1``."""
    if estimator == "k3":
        return k3(logprobs, ref_logprobs)
    r = ref_logprobs - logprobs
    return -r if estimator == "k1" else r.square() / 2


def with_entropy(token_loss: Tensor, batch: TokenBatch, active: Tensor, algorithm: str, weight: float) -> Tensor:
    """The loss of each token ``[N, L]`` minus ``weight`` times the entropy there (nats, with gradient).

    Raises :class:`callwright.UsageError` where there is a weight, but the batch has no entropies.
    """
    if weight == 0:
        return token_loss
    if batch.entropy is None:
        raise UsageError(
            f"{algorithm}: entropy_weight is {weight:g}, but the batch holds no entropy; compute it with gradient, or "
            "set entropy_weight = 0"
        )
    return token_loss - weight * inside(batch.entropy, active)


def reference(batch: TokenBatch | Experience, algorithm: str, kl_weight: float) -> Tensor:
    """The reference log-probabilities ``[N, L]``. Raises :class:`callwright.UsageError` where the batch has none."""
    if batch.ref_logprobs is None:
        raise UsageError(
            f"{algorithm}: kl_weight is {kl_weight:g}, but the batch holds no ref_logprobs; compute them with the "
            "frozen reference model, or set kl_weight = 0"
        )
    return batch.ref_logprobs.detach()


@frozen(eq=False)
class PolicyTerm:
    """What the losses of GRPO and its kin add up, before each divides it in its own way."""

    #: ``-min(rho A, clip(rho, 1 - low, 1 + high) A) + kl_weight KL - entropy_weight H``, ``[N, L]``; 0 where inactive.
    loss: Tensor
    #: ``rho = pi_theta / pi_old`` ``[N, L]``, of each token or of its whole response, without gradient.
    ratio: Tensor
    #: ``[N, L]`` bool.
    active: Tensor


def policy_term(
    batch: TokenBatch,
    algorithm: str,
    *,
    low: float,
    high: float,
    kl_weight: float,
    kl_estimator: KL = "k3",
    unbiased_kl: bool = False,
    entropy_weight: float,
    ratio_of: RatioOf = "token",
    surrogate: Surrogate | None = None,
) -> PolicyTerm:
    """The clipped surrogate of each token, turned into a loss, with a KL term and an entropy bonus where they weigh.

    ``rho`` is clipped to ``[1 - low, 1 + high]``. It is that of each ``"token"``, of the ``"response"``, the product
    over its active tokens, or their geometric ``"mean"``; of the last two all tokens of a response have the same
    surrogate, so that their mean is that of the response. ``surrogate`` takes ratios, advantages, log-probabilities,
    ``low`` and ``high``; without one it is PPO's (:func:`clipped_surrogate`). ``KL`` is an estimate in nats;
    ``unbiased_kl`` multiplies it by the ``rho`` of the token. ``algorithm`` is named in errors. Raises
    :class:`callwright.UsageError` where the batch's shapes do not fit, or a weight needs what the batch has not.
    """
    active = active_tokens(batch)  # [N, L]
    logprobs = inside(batch.logprobs, active)  # log pi_theta
    old_logprobs = inside(batch.old_logprobs.detach(), active)  # log pi_old
    advantages = token_advantages(batch, active)  # A, [N, 1] or [N, L]
    change = logprobs - old_logprobs
    if ratio_of == "token":
        ratio = torch.exp(change)  # rho
    else:
        lengths = active.sum(1, keepdim=True).clamp(min=1) if ratio_of == "mean" else 1
        ratio = torch.exp(change.sum(1, keepdim=True) / lengths).expand_as(change)
    if surrogate is None:
        token_loss = -clipped_surrogate(ratio, advantages, low, high)
    else:
        token_loss = -surrogate(ratio, advantages, logprobs, low, high)
    if kl_weight > 0:
        ref_logprobs = inside(reference(batch, algorithm, kl_weight), active)
        divergence = kl_estimate(kl_estimator, logprobs, ref_logprobs)  # KL
        if unbiased_kl:
            divergence = torch.exp(change) * divergence
        token_loss = token_loss + kl_weight * divergence
    token_loss = with_entropy(token_loss, batch, active, algorithm, entropy_weight)
    return PolicyTerm(inside(token_loss, active), ratio.detach(), active)


# Tokens of a whole batch ---------------------------------------------------------------------------------------------


def experienced(experience: Experience) -> tuple[Tensor, Tensor]:
    """The active tokens ``[N, L]`` as bool, and the scores ``[N]``.

    Raises :class:`callwright.UsageError` where shapes do not fit.
    """
    shape = experience.logprobs.shape
    if len(shape) != 2:
        raise UsageError(f"logprobs must have the shape [sequences, tokens], but has {list(shape)}")
    for field, wanted in (("mask", shape), ("ref_logprobs", shape), ("values", shape)):
        found = getattr(experience, field)
        if found is not None and found.shape != wanted:
            raise UsageError(f"{field} has the shape {list(found.shape)}, but logprobs has {list(shape)}")
    for field in ("scores", "groups"):
        if getattr(experience, field).shape != shape[:1]:
            raise UsageError(
                f"{field} has the shape {list(getattr(experience, field).shape)}, but there are {shape[0]} sequences"
            )
    return experience.mask != 0, experience.scores.detach().to(experience.logprobs)


def active_values(batch: ValueBatch) -> Tensor:
    """``[N, L]`` bool: the tokens before which the critic learns. Raises :class:`callwright.UsageError` as above."""
    shape = batch.values.shape
    for field in ("old_values", "returns", "mask"):
        found = getattr(batch, field)
        if len(shape) != 2 or found.shape != shape:
            raise UsageError(f"{field} has the shape {list(found.shape)}, but values has {list(shape)}")
    if batch.normaliser is not None and not batch.normaliser > 0:
        raise UsageError(f"normaliser must be greater than 0, but is {batch.normaliser!r}")
    return batch.mask != 0


def last_token(active: Tensor) -> Tensor:
    """``[N, L]`` bool: the last active token of each sequence, where its reward falls due."""
    return active & (active.flip(1).cumsum(1).flip(1) == 1)


def kl_penalty(experience: Experience, active: Tensor, estimator: KL, algorithm: str, weight: float) -> Tensor:
    """``weight`` times the KL estimate of each active token ``[N, L]``; zeros where the weight is 0."""
    logprobs = inside(experience.logprobs.detach(), active)
    if weight == 0:
        return torch.zeros_like(logprobs)
    ref_logprobs = inside(reference(experience, algorithm, weight), active)
    return weight * kl_estimate(estimator, logprobs, ref_logprobs)


def discounted_returns(rewards: Tensor, active: Tensor, gamma: float) -> Tensor:
    """``G_t = r_t + gamma G_{t'}`` ``[N, L]``, ``t'`` being the next *active* token: inactive ones take no time."""
    returns = torch.zeros_like(rewards)
    following = rewards.new_zeros(len(rewards))
    for t in reversed(range(rewards.shape[1])):
        following = torch.where(active[:, t], rewards[:, t] + gamma * following, following)
        returns[:, t] = following
    return inside(returns, active)


def generalised_advantages(
    rewards: Tensor, values: Tensor, active: Tensor, gamma: float, decay: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimates and returns, ``[N, L]`` both (Schulman et al. 2016, equations 11 to 16).

    With ``t'`` the next *active* token, whose value is 0 after the last: ``delta_t = r_t + gamma V_{t'} - V_t`` and
    ``A_t = delta_t + gamma decay A_{t'}``; returns are ``A_t + V_t``. Tokens of the environment are skipped: neither
    their values are read, nor is anything discounted over them.
    """
    values = inside(values, active)
    advantages = torch.zeros_like(values)
    following, value = values.new_zeros(len(values)), values.new_zeros(len(values))
    for t in reversed(range(values.shape[1])):
        delta = rewards[:, t] + gamma * value - values[:, t]
        following = torch.where(active[:, t], delta + gamma * decay * following, following)
        value = torch.where(active[:, t], values[:, t], value)
        advantages[:, t] = following
    return inside(advantages, active), inside(advantages + values, active)


def whiten(values: Tensor, active: Tensor, *, unbiased: bool) -> Tensor:
    """``values`` ``[N, L]`` with mean 0 and deviation 1 over the active tokens of the batch, each weighing the same.

    ``unbiased`` divides the variance by ``n - 1``, as verl does, else by ``n``, as OpenRLHF does; 1e-8 is added to it.
    Values that are all equal (to 1e-6) become exactly 0.
    """
    count = active.sum()
    mean = inside(values, active).sum() / count.clamp(min=1)
    centred = inside(values - mean, active)
    variance = centred.square().sum() / (count - 1 if unbiased else count).clamp(min=1)
    varied = centred.abs().amax() > EQUAL_REWARDS if centred.numel() else count > 0
    return torch.where(varied, centred * (variance + 1e-8).rsqrt(), 0)


# What is seen ---------------------------------------------------------------------------------------------------------


@without_gradient
def diagnostics(batch: TokenBatch, active: Tensor, ratio: Tensor, low: float, high: float) -> Mapping[str, float]:
    """What a person wants to see of a step; all means are over active tokens, and 0 where there is none.

    ``ratio_mean``, ``ratio_max``: of ``pi_theta / pi_old``; where it is that of whole responses, each token has its
    response's. ``clip_fraction_low``: tokens below ``1 - low`` with a
    negative advantage, ``clip_fraction_high``: above ``1 + high`` with a positive one (those whose gradient is cut);
    ``clip_fraction``: both. ``kl`` (k3, nats) where the batch has reference log-probabilities, ``entropy`` (nats) where
    it has entropies. ``active_tokens``: the weight with which the means of micro-batches combine to those of the whole
    (``ratio_max`` combines by maximum). The values leave the device together, in one transfer.
    """
    tokens = active.sum()

    def mean(values: Tensor) -> Tensor:
        return inside(values, active).sum() / tokens.clamp(min=1)

    advantages = token_advantages(batch, active)
    ratios = inside(ratio, active)
    low_clipped = mean(((ratio < 1 - low) & (advantages < 0)).to(ratio))
    high_clipped = mean(((ratio > 1 + high) & (advantages > 0)).to(ratio))
    values = {
        "ratio_mean": mean(ratio),
        "ratio_max": ratios.amax() if ratios.numel() else ratios.sum(),
        "clip_fraction_low": low_clipped,
        "clip_fraction_high": high_clipped,
        "clip_fraction": low_clipped + high_clipped,
        "active_tokens": tokens,
    }
    if batch.ref_logprobs is not None:
        values["kl"] = mean(k3(inside(batch.logprobs, active), inside(batch.ref_logprobs, active)))
    if batch.entropy is not None:
        values["entropy"] = mean(batch.entropy)
    return dict(zip(values, torch.stack([value.to(ratio) for value in values.values()]).tolist(), strict=True))


@without_gradient
def value_diagnostics(values: Tensor, returns: Tensor, clipped: Tensor, active: Tensor) -> Mapping[str, float]:
    """What a person wants to see of a critic; means over active tokens, 0 where there is none.

    ``value_mean``, ``return_mean``: what it expects and what came; ``value_error``: the mean square of the difference;
    ``value_clip_fraction``: tokens whose step is bounded; ``active_tokens``: as in :func:`diagnostics`.
    """
    tokens = active.sum()

    def mean(found: Tensor) -> Tensor:
        return inside(found, active).sum() / tokens.clamp(min=1)

    figures = {
        "value_mean": mean(values),
        "return_mean": mean(returns),
        "value_error": mean((values - returns).square()),
        "value_clip_fraction": mean(clipped.to(values)),
        "active_tokens": tokens,
    }
    return dict(zip(figures, torch.stack([figure.to(values) for figure in figures.values()]).tolist(), strict=True))
