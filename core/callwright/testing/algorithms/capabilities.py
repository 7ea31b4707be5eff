"""Checks of what not every algorithm has: token-level advantages, a critic, a KL weight that moves, an entropy bonus.

They pass where an algorithm has it not.
"""

from __future__ import annotations

import math
from typing import Any

from attrs import evolve

from callwright.testing.algorithms.batches import (
    loss_of,
    row_means,
    sample_batch,
    sample_experience,
    sample_values,
    value_loss_of,
)
from callwright.testing.expectations import expect
from callwright.training.algorithm import (
    ActorCritic,
    AdaptiveKL,
    Algorithm,
    EntropyBonus,
    Experience,
    GroupBaseline,
    PlacesCredit,
    TokenLevel,
    ValueBatch,
)


def check_token_advantages(algorithm: Algorithm) -> None:
    """Token-level advantages and returns are ``[N, L]``, finite, 0 in inactive positions, and follow the scores."""
    import torch

    if not isinstance(algorithm, TokenLevel):
        return
    experience = sample_experience()
    advantages, returns = algorithm.token_advantages(experience)
    active = experience.mask.bool()
    for what, found in (("advantages", advantages), ("returns", returns)):
        expect(found.shape == active.shape, f"token_advantages gave {what} of the shape {list(found.shape)}")
        expect(bool(found.isfinite().all()), f"token_advantages gave NaN or infinity among the {what}")
        expect(not found.requires_grad, f"the {what} have a gradient: the loss would train them too")
        expect(bool((found[~active] == 0).all()), f"the {what} of inactive positions are not 0")
    means = row_means(advantages, experience.mask).tolist()
    for first in range(0, 6, 2):
        a, b = experience.scores[first : first + 2].tolist()
        expect(
            (means[first] > means[first + 1]) == (a > b),
            f"scores {a:g} and {b:g} gave tokens the mean advantages {means[first]:g} and {means[first + 1]:g}: is the "
            "sign turned, or the score at the wrong token?",
        )
    if algorithm.kl_weight > 0:  # a heavier penalty matters only where the reward has one, and must then be read
        reference = experience.logprobs - 0.3 * torch.arange(6, dtype=torch.float64).unsqueeze(1)
        weighed = [
            algorithm.token_advantages(evolve(experience, ref_logprobs=reference, kl_weight=weight))[0]
            for weight in (algorithm.kl_weight, None, 10 * algorithm.kl_weight)
        ]
        in_reward = bool(
            (weighed[0] != algorithm.token_advantages(evolve(experience, ref_logprobs=experience.logprobs))[0]).any()
        )
        expect(bool((weighed[0] == weighed[1]).all()), "kl_weight given in the experience is not what it has without")
        expect(in_reward == bool((weighed[0] != weighed[2]).any()), "the kl_weight of the experience is not read")


def check_environment_tokens(algorithm: Algorithm) -> None:
    """Token-level advantages are as if tokens of the environment and padding were not there, whatever stands there."""
    import torch

    if not isinstance(algorithm, TokenLevel):
        return
    experience = sample_experience()
    active = experience.mask.bool()
    advantages, returns = algorithm.token_advantages(experience)
    for garbage in (math.nan, math.inf, -math.inf):
        soiled: dict[str, Any] = {
            name: torch.where(active, getattr(experience, name), garbage)
            for name in ("logprobs", "ref_logprobs", "values")
        }
        again = algorithm.token_advantages(evolve(experience, **soiled))
        expect(
            bool((again[0] == advantages).all()) and bool((again[1] == returns).all()),
            f"advantages or returns were changed by {garbage} in inactive positions: select with torch.where",
        )
    order = active.long().argsort(dim=1, descending=True, stable=True)  # active tokens to the front
    squeezed: dict[str, Any] = {
        name: getattr(experience, name).gather(1, order) for name in ("mask", "logprobs", "ref_logprobs", "values")
    }
    for what, found, without in zip(
        ("advantages", "returns"),
        (advantages, returns),
        algorithm.token_advantages(evolve(experience, **squeezed)),
        strict=True,
    ):
        expect(
            bool((found.gather(1, order) - without).abs().max() < 1e-12),
            f"the {what} change when tokens of the environment are taken out of the middle: something is discounted "
            "over them, or their values are read",
        )
    empty = torch.cat([experience.mask[:4], torch.zeros_like(experience.mask[4:])])
    for what, found, without in zip(
        ("advantages", "returns"),
        algorithm.token_advantages(evolve(experience, mask=empty)),
        algorithm.token_advantages(evolve(experience, mask=empty, scores=experience.scores * (empty.sum(1) > 0))),
        strict=True,
    ):
        expect(
            bool((found == without).all()) and bool((found[4:] == 0).all()),
            f"a sequence without active tokens changes the {what} of others, or has some itself",
        )


def check_critic(algorithm: Algorithm) -> None:
    """The value loss is a finite scalar, pulls values to returns, adds up over micro-batches and reads no padding."""
    import torch

    if not isinstance(algorithm, ActorCritic):
        return
    whole = sample_values()
    active = whole.mask.bool()
    output, gradient = value_loss_of(algorithm, whole)
    expect(output.loss.dim() == 0 and bool(output.loss.isfinite()), f"the value loss is {output.loss!r}")
    for name, value in output.diagnostics.items():
        expect(type(value) is float and math.isfinite(value), f"the diagnostic {name!r} of the critic is {value!r}")
    pull = (whole.returns - whole.values)[active] * gradient[active]
    expect(bool((pull < 0).all()), "descending the value loss moves some value away from its return")
    for garbage in (math.nan, math.inf):
        soiled: dict[str, Any] = {
            name: torch.where(active, getattr(whole, name), garbage) for name in ("values", "old_values", "returns")
        }
        again, same = value_loss_of(algorithm, evolve(whole, **soiled))
        expect(
            bool(again.loss == output.loss) and bool((same == gradient).all()),
            f"the value loss was changed by {garbage} in inactive positions: select with torch.where",
        )
    total = algorithm.normaliser(whole.mask)
    losses, gradients = 0.0, []
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        rows = slice(start, stop)
        part = ValueBatch(whole.values[rows], whole.old_values[rows], whole.returns[rows], whole.mask[rows], total)
        found, slope = value_loss_of(algorithm, part)
        losses += found.loss.item()
        gradients.append(slope)
    expect(
        math.isclose(losses, output.loss.item(), rel_tol=1e-12, abs_tol=1e-12)
        and bool((torch.cat(gradients) - gradient).abs().max() < 1e-12),
        f"value losses of micro-batches add up to {losses:g}, the whole is {output.loss.item():g}: is batch.normaliser "
        "ignored?",
    )
    nothing, none = value_loss_of(algorithm, evolve(whole, mask=whole.mask * 0))
    expect(nothing.loss.item() == 0 and bool((none == 0).all()), "no token is active, but the critic has a loss")


def check_adaptive_kl(algorithm: Algorithm) -> None:
    """The next KL weight is a finite float, 0 or more, the same for the same experience, and no smaller far away."""
    if not isinstance(algorithm, AdaptiveKL):
        return
    experience = sample_experience()
    weights = [
        algorithm.next_kl_weight(evolve(experience, ref_logprobs=experience.logprobs - away, kl_weight=0.1))
        for away in (0.0, 0.0, 3.0)
    ]
    for weight in weights:
        expect(
            type(weight) is float and math.isfinite(weight) and weight >= 0,
            f"next_kl_weight gave {weight!r}; it must be a finite float, 0 or more",
        )
    expect(weights[0] == weights[1], "next_kl_weight gave two values for one experience: does it hold state?")
    expect(weights[2] >= weights[0], "the KL weight falls when the policy moves away from the reference")


def check_entropy(algorithm: Algorithm) -> None:
    """With an entropy weight, descending raises the entropy of active tokens, and of no others."""
    if not isinstance(algorithm, EntropyBonus):
        return
    weight = algorithm.entropy_weight
    expect(
        type(weight) is float and math.isfinite(weight) and weight >= 0,
        f"entropy_weight must be a finite float, 0 or more, but is {weight!r}",
    )
    batch = sample_batch()
    assert batch.entropy is not None
    entropy: Any = batch.entropy.detach().clone().requires_grad_()
    loss_of(algorithm, evolve(batch, entropy=entropy))
    if weight == 0:
        expect(entropy.grad is None or bool((entropy.grad == 0).all()), "entropy_weight is 0, but entropy is trained")
        return
    active = batch.mask.bool()
    slope = entropy.grad
    expect(slope is not None and bool((slope[active] < 0).all()), "descending does not raise the entropy")
    expect(bool((slope[~active] == 0).all()), "the entropy of inactive positions is trained")


def check_group_baseline(algorithm: Algorithm) -> None:
    """Groups smaller than its ``smallest_group`` have advantages 0; without one, a single sample teaches something."""
    import torch

    smallest = algorithm.smallest_group if isinstance(algorithm, GroupBaseline) else 1
    expect(type(smallest) is int and smallest >= 1, f"smallest_group is {smallest!r}, not a whole number from 1")
    for size in sorted({1, smallest - 1, smallest} - {0}):
        rewards = torch.tensor([[0.1], [0.6], [0.4]], dtype=torch.float64)
        rewards = rewards + torch.linspace(0, 0.3, size, dtype=torch.float64)
        teaches = bool((_spread(algorithm, rewards) != 0).any())
        expect(
            teaches == (size >= smallest),
            f"groups of {size} have advantages {'other than' if teaches else 'of'} 0, and the algorithm "
            + (
                f"states a smallest_group of {smallest}" if smallest > 1 else "states no smallest_group (GroupBaseline)"
            ),
        )


def check_placed_credit(algorithm: Algorithm) -> None:
    """A penalty moves to the tokens that are blamed, and is as large as before; what is not blamed stays as it was."""
    import torch

    if not isinstance(algorithm, PlacesCredit):
        return
    share = algorithm.credit_share
    expect(type(share) is float and 0 <= share <= 1, f"credit_share must be a float in [0, 1], but is {share!r}")
    batch = sample_batch()
    active = batch.mask.bool()
    blame = torch.zeros_like(batch.mask)
    blame[:4, 0] = 1  # of two sequences with a penalty, and two with none
    before = batch.advantages.unsqueeze(1)
    found = algorithm.placed(before, blame, batch.mask)
    expect(found.shape == active.shape, f"placed gave advantages of the shape {list(found.shape)}; it is [N, L]")
    expect(not found.requires_grad, "placed advantages have a gradient")
    total, expected = (found * active).sum(1), batch.advantages * active.sum(1)
    expect(
        bool(((total - expected).abs() < 1e-9).all()),
        f"the advantages of a sequence summed to {expected.tolist()} and sum to {total.tolist()} now",
    )
    for row, advantage in enumerate(batch.advantages.tolist()):
        first, others = float(found[row, 0]), found[row, 1:][active[row, 1:]]
        if row > 3 or advantage > 0:
            same = bool(((found[row] - advantage)[active[row]].abs() < 1e-12).all())
            expect(same, "a sequence without blame, or without a penalty, has other advantages")
        elif share > 0 and len(others):
            expect(bool((first < others).all()), "the token that is blamed has no more of the penalty than others")


def _spread(algorithm: Algorithm, rewards: Any) -> Any:
    """The advantages of ``rewards`` ``[3, G]``, of the tokens where the algorithm is token-level: two each."""
    import torch

    advantages = algorithm.advantages(rewards, torch.ones_like(rewards, dtype=torch.bool))
    if not isinstance(algorithm, TokenLevel):
        return advantages
    prompts, size = rewards.shape
    ones = torch.ones(prompts * size, 2, dtype=rewards.dtype)
    experience = Experience(
        scores=advantages.flatten(),
        groups=torch.arange(prompts).repeat_interleave(size),
        mask=ones,
        logprobs=-ones,
        ref_logprobs=-ones,
        values=0 * ones,
    )
    return algorithm.token_advantages(experience)[0]
