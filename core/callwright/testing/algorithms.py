"""Conformance checks for algorithms: what every trainer relies on, whatever the formula.

One at a time, so that a failing check has its own name::

    @pytest.mark.parametrize("check", ALGORITHM_CHECKS, ids=lambda check: check.__name__)
    def test_conformance(check):
        check(MyAlgorithm())

or all at once with :func:`check_algorithm`. Each check raises :class:`AssertionError` and states the likely cause. They
run on the CPU in float64, on a batch of 3 prompts with 2 completions of up to 7 tokens, and need torch
(``pip install 'callwright[train]'``). The last ones are about protocols that not every algorithm has (token-level
advantages, a critic, a KL weight that moves, an entropy bonus), and pass where it has not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from callwright.training.algorithm import (
    ActorCritic,
    AdaptiveKL,
    Algorithm,
    EntropyBonus,
    Experience,
    LossOutput,
    TokenBatch,
    TokenLevel,
    ValueBatch,
)

if TYPE_CHECKING:
    from torch import Tensor

Check = Callable[[Algorithm], None]

_LENGTHS: Final = (3, 7, 1, 5, 6, 2)  # active tokens lie before these; one in the middle of row 1 is the environment's
_PER_TOKEN: Final = ("logprobs", "old_logprobs", "ref_logprobs", "entropy")


def check_attributes(algorithm: Algorithm) -> None:
    """It has the members of :class:`callwright.Algorithm`, a name and a weight for the KL term."""
    _expect(isinstance(algorithm, Algorithm), f"{algorithm!r} lacks a member of callwright.Algorithm")
    _expect(isinstance(algorithm.name, str) and algorithm.name != "", "name must be a string that is not empty")
    weight = algorithm.kl_weight
    _expect(
        isinstance(weight, float) and math.isfinite(weight) and weight >= 0,
        f"kl_weight must be a finite float, 0 or more, but is {weight!r}: trainers load a reference model by it",
    )


def check_reward_shapes(algorithm: Algorithm) -> None:
    """Rewards ``[B, G]`` give shaped rewards and advantages ``[B, G]`` and kept groups ``[B]`` bool, all finite."""
    import torch

    rewards, valid = _rewards()
    shaped = algorithm.shape_rewards(rewards, torch.tensor([[9, 80], [100, 1], [50, 50]]), 100)
    advantages = algorithm.advantages(rewards, valid)
    kept = algorithm.keep_groups(rewards, valid)
    for what, found in (("shape_rewards", shaped), ("advantages", advantages)):
        _expect(found.shape == rewards.shape, f"{what} gave the shape {list(found.shape)} for {list(rewards.shape)}")
        _expect(bool(found.isfinite().all()), f"{what} gave NaN or infinity: is it divided by a deviation of 0?")
    _expect(
        kept.shape == rewards.shape[:1] and kept.dtype == torch.bool,
        f"keep_groups must give one bool per prompt, but gave {list(kept.shape)} of {kept.dtype}",
    )


def check_advantages_follow_rewards(algorithm: Algorithm) -> None:
    """Within a group, the completion with the higher reward has the higher advantage."""
    rewards, valid = _rewards()
    advantages = algorithm.advantages(rewards, valid)
    for prompt, (first, second) in enumerate(rewards.tolist()):
        a, b = advantages[prompt].tolist()
        _expect(
            first == second or (a > b) == (first > second),
            f"rewards {first:g} and {second:g} of one prompt gave the advantages {a:g} and {b:g}: is the sign turned, "
            "or the group on the wrong axis?",
        )


def check_masked_samples(algorithm: Algorithm) -> None:
    """A masked sample has advantage 0, and its reward, which may be NaN, changes nobody else's."""
    import torch

    rewards = torch.tensor([[0.0, 1.0, 0.3], [0.5, 0.25, 1.0]], dtype=torch.float64)
    valid = torch.tensor([[True, True, False], [True, True, True]])
    outcomes = []
    for hidden in (0.0, 1e9, math.nan):
        rewards[0, 2] = hidden
        advantages = algorithm.advantages(rewards, valid)
        _expect(
            advantages[0, 2].item() == 0,
            f"a masked sample with reward {hidden} has the advantage {advantages[0, 2].item()}, not 0: an "
            "infrastructure failure would become a gradient",
        )
        outcomes.append((advantages.tolist(), algorithm.keep_groups(rewards, valid).tolist()))
    _expect(
        outcomes[0] == outcomes[1] == outcomes[2],
        "the reward of a masked sample changed the advantages of others or the kept groups: does it enter the mean or "
        "the deviation? NaN times 0 is NaN: use torch.where",
    )
    nothing = algorithm.advantages(torch.full((1, 2), math.nan), torch.zeros(1, 2, dtype=torch.bool))
    _expect(nothing.tolist() == [[0.0, 0.0]], "a group in which every sample is masked must have the advantages 0")
    _expect(
        not algorithm.keep_groups(torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool)).any(),
        "a group in which every sample is masked must not be kept: there is nothing in it to train on",
    )


def check_loss(algorithm: Algorithm) -> None:
    """The loss is a finite scalar with a finite gradient, and the diagnostics are plain floats."""
    import torch

    output, gradient = _loss(algorithm, _batch())
    _expect(output.loss.dim() == 0, f"the loss has the shape {list(output.loss.shape)}; it must be a scalar")
    _expect(bool(output.loss.isfinite()), f"the loss is {output.loss.item()}")
    _expect(bool(gradient.isfinite().all()), "the gradient holds NaN or infinity")
    _expect(bool((gradient[_batch().mask.bool()] != 0).all()), "some active token has no gradient")
    for name, value in output.diagnostics.items():
        _expect(
            type(value) is float and math.isfinite(value),
            f"the diagnostic {name!r} is {value!r}; a finite Python float goes into metrics.jsonl, a tensor would keep "
            "the graph alive",
        )
    for dtype in (torch.bool, torch.int64, torch.float32):
        batch = evolve(_batch(), mask=_batch().mask.to(dtype))
        _expect(
            bool(_loss(algorithm, batch)[0].loss == output.loss),
            f"a mask of {dtype} gives another loss than one of {_batch().mask.dtype}",
        )


def check_gradient_direction(algorithm: Algorithm) -> None:
    """On policy, descending raises the probability of tokens with a positive advantage and lowers the others."""
    batch = _batch()
    batch = evolve(batch, old_logprobs=batch.logprobs.detach(), ref_logprobs=batch.logprobs.detach())
    _, gradient = _loss(algorithm, batch)
    for row, advantage in enumerate(batch.advantages.tolist()):
        for slope in gradient[row][batch.mask[row].bool()].tolist():
            _expect(
                slope * advantage < 0,
                f"a token with advantage {advantage:g} has the gradient {slope:g}: the loss must fall when its "
                "probability rises; is a minus sign missing?",
            )


def check_kl(algorithm: Algorithm) -> None:
    """With a weight, the KL term pulls towards the reference; without, no reference is needed."""
    import torch

    batch = _batch()
    if algorithm.kl_weight == 0:
        with_reference = _loss(algorithm, batch)[0].loss
        without = _loss(algorithm, evolve(batch, ref_logprobs=None))[0].loss
        _expect(bool(with_reference == without), "kl_weight is 0, but the reference changes the loss")
        return
    reference = batch.logprobs.detach() + torch.where(torch.arange(7) % 2 == 0, 0.3, -0.3)
    zeros = torch.zeros_like(batch.logprobs)
    batch = evolve(batch, ref_logprobs=reference, advantages=zeros[:, 0], entropy=zeros)
    output, gradient = _loss(algorithm, batch)
    active = batch.mask.bool()
    if isinstance(algorithm, TokenLevel) and bool((gradient == 0).all()):  # then it must be in the reward
        _check_kl_in_reward(algorithm)
        return
    pull = (reference - batch.logprobs.detach())[active] * gradient[active]
    _expect(output.loss.item() > 0, "with advantages 0 the loss is the KL term, which must be positive here")
    _expect(bool((pull < 0).all()), "descending moves away from the reference: are policy and reference exchanged?")


def _check_kl_in_reward(algorithm: TokenLevel) -> None:
    """Of two equal completions that earned the same, the one that left the reference has the lower advantages."""
    import torch

    twice = torch.tensor([0, 0, 2, 2, 4, 4])
    experience = _experience(scores=torch.full((6,), 0.5, dtype=torch.float64))
    twins: dict[str, Any] = {name: getattr(experience, name)[twice] for name in ("mask", "logprobs", "values")}
    experience = evolve(experience, **twins)
    away = torch.tensor([[0.0], [0.3]] * 3, dtype=torch.float64)  # every second one is likelier than the reference
    advantages, _ = algorithm.token_advantages(evolve(experience, ref_logprobs=experience.logprobs - away))
    means = _row_means(advantages, experience.mask)
    _expect(
        bool((means[0::2] > means[1::2]).all()),
        "kl_weight is above 0, but the reference moves neither the loss nor, the right way, the token advantages: is "
        "the penalty added instead of taken off?",
    )


def check_padding_is_never_read(algorithm: Algorithm) -> None:
    """NaN and infinity in inactive positions change neither loss nor gradient nor diagnostics."""
    import torch

    batch = _batch()
    clean, clean_gradient = _loss(algorithm, batch)
    active = batch.mask.bool()
    for garbage in (math.nan, math.inf, -math.inf, 1e30):
        soiled: dict[str, Any] = {name: torch.where(active, getattr(batch, name), garbage) for name in _PER_TOKEN}
        output, gradient = _loss(algorithm, evolve(batch, **soiled))
        cause = f"changed by {garbage} in padded positions: select with torch.where, since 0 times NaN is NaN"
        _expect(bool(output.loss == clean.loss), f"the loss was {cause}")
        _expect(bool((gradient == clean_gradient).all()), f"the gradient was {cause}")
        _expect(dict(output.diagnostics) == dict(clean.diagnostics), f"a diagnostic was {cause}")


def check_micro_batches(algorithm: Algorithm) -> None:
    """Losses and gradients of uneven micro-batches with the whole batch's normaliser add up to the whole's."""
    import torch

    whole = _batch()
    total = algorithm.normaliser(whole.mask)
    _expect(type(total) is float and total > 0, f"normaliser gave {total!r}; it must be a float above 0")
    expected, expected_gradient = _loss(algorithm, whole)
    given, _ = _loss(algorithm, evolve(whole, normaliser=total))
    _expect(
        math.isclose(given.loss.item(), expected.loss.item(), rel_tol=1e-12, abs_tol=1e-12),
        f"a batch has the loss {given.loss.item():g} with its own normaliser given, {expected.loss.item():g} without",
    )
    losses, gradients = 0.0, []
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        part: dict[str, Any] = {name: getattr(whole, name)[start:stop] for name in (*_PER_TOKEN, "mask", "advantages")}
        output, gradient = _loss(algorithm, TokenBatch(**part, normaliser=total))
        losses += output.loss.item()
        gradients.append(gradient)
    _expect(
        math.isclose(losses, expected.loss.item(), rel_tol=1e-12, abs_tol=1e-12),
        f"micro-batches add up to {losses:g}, the whole is {expected.loss.item():g}: is batch.normaliser ignored, or a "
        "mean taken within the micro-batch?",
    )
    worst = (torch.cat(gradients) - expected_gradient).abs().max().item()
    _expect(worst < 1e-12, f"gradients of micro-batches differ from the whole's by up to {worst:g}")


def check_empty(algorithm: Algorithm) -> None:
    """A batch without an active token has loss 0 and gradient 0, and can still be differentiated."""
    batch = _batch()
    batch = evolve(batch, mask=batch.mask * 0)
    output, gradient = _loss(algorithm, batch)
    _expect(output.loss.item() == 0, f"no token is active, but the loss is {output.loss.item()}: is it divided by 0?")
    _expect(bool((gradient == 0).all()), "no token is active, but there is a gradient")
    _expect(algorithm.normaliser(batch.mask) > 0, "normaliser of an empty mask must be above 0, or losses become NaN")


def check_purity(algorithm: Algorithm) -> None:
    """The same input gives the same output twice, is not changed, and no global random number is drawn."""
    import torch

    batch, (rewards, valid) = _batch(), _rewards()
    experience = _experience()
    given = [batch.logprobs, batch.advantages, rewards, experience.scores, experience.logprobs, experience.values]
    before = [tensor.clone() for tensor in given if tensor is not None]
    state = torch.random.get_rng_state()
    outcomes: list[Any] = []
    for _ in range(2):
        shaped = algorithm.shape_rewards(rewards, torch.full((3, 2), 95), 100)
        output, gradient = _loss(algorithm, batch)
        made = [gradient, algorithm.advantages(shaped, valid)]
        if isinstance(algorithm, TokenLevel):
            made += algorithm.token_advantages(experience)
        outcomes.append((output.loss.item(), dict(output.diagnostics), [one.tolist() for one in made]))
    _expect(
        all(bool((a == b).all()) for a, b in zip(before, given, strict=True) if b is not None),
        "its input was changed in place",
    )
    _expect(outcomes[0] == outcomes[1], "the same input gave two different outputs: does it hold state?")
    _expect(bool((torch.random.get_rng_state() == state).all()), "it drew from torch's global random generator")


def check_token_advantages(algorithm: Algorithm) -> None:
    """Token-level advantages and returns are ``[N, L]``, finite, 0 in inactive positions, and follow the scores."""
    import torch

    if not isinstance(algorithm, TokenLevel):
        return
    experience = _experience()
    advantages, returns = algorithm.token_advantages(experience)
    active = experience.mask.bool()
    for what, found in (("advantages", advantages), ("returns", returns)):
        _expect(found.shape == active.shape, f"token_advantages gave {what} of the shape {list(found.shape)}")
        _expect(bool(found.isfinite().all()), f"token_advantages gave NaN or infinity among the {what}")
        _expect(not found.requires_grad, f"the {what} have a gradient: the loss would train them too")
        _expect(bool((found[~active] == 0).all()), f"the {what} of inactive positions are not 0")
    means = _row_means(advantages, experience.mask).tolist()
    for first in range(0, 6, 2):
        a, b = experience.scores[first : first + 2].tolist()
        _expect(
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
        _expect(bool((weighed[0] == weighed[1]).all()), "kl_weight given in the experience is not what it has without")
        _expect(in_reward == bool((weighed[0] != weighed[2]).any()), "the kl_weight of the experience is not read")


def check_environment_tokens(algorithm: Algorithm) -> None:
    """Token-level advantages are as if tokens of the environment and padding were not there, whatever stands there."""
    import torch

    if not isinstance(algorithm, TokenLevel):
        return
    experience = _experience()
    active = experience.mask.bool()
    advantages, returns = algorithm.token_advantages(experience)
    for garbage in (math.nan, math.inf, -math.inf):
        soiled: dict[str, Any] = {
            name: torch.where(active, getattr(experience, name), garbage)
            for name in ("logprobs", "ref_logprobs", "values")
        }
        again = algorithm.token_advantages(evolve(experience, **soiled))
        _expect(
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
        _expect(
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
        _expect(
            bool((found == without).all()) and bool((found[4:] == 0).all()),
            f"a sequence without active tokens changes the {what} of others, or has some itself",
        )


def check_critic(algorithm: Algorithm) -> None:
    """The value loss is a finite scalar, pulls values to returns, adds up over micro-batches and reads no padding."""
    import torch

    if not isinstance(algorithm, ActorCritic):
        return
    whole = _values()
    active = whole.mask.bool()
    output, gradient = _value_loss(algorithm, whole)
    _expect(output.loss.dim() == 0 and bool(output.loss.isfinite()), f"the value loss is {output.loss!r}")
    for name, value in output.diagnostics.items():
        _expect(type(value) is float and math.isfinite(value), f"the diagnostic {name!r} of the critic is {value!r}")
    pull = (whole.returns - whole.values)[active] * gradient[active]
    _expect(bool((pull < 0).all()), "descending the value loss moves some value away from its return")
    for garbage in (math.nan, math.inf):
        soiled: dict[str, Any] = {
            name: torch.where(active, getattr(whole, name), garbage) for name in ("values", "old_values", "returns")
        }
        again, same = _value_loss(algorithm, evolve(whole, **soiled))
        _expect(
            bool(again.loss == output.loss) and bool((same == gradient).all()),
            f"the value loss was changed by {garbage} in inactive positions: select with torch.where",
        )
    total = algorithm.normaliser(whole.mask)
    losses, gradients = 0.0, []
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        rows = slice(start, stop)
        part = ValueBatch(whole.values[rows], whole.old_values[rows], whole.returns[rows], whole.mask[rows], total)
        found, slope = _value_loss(algorithm, part)
        losses += found.loss.item()
        gradients.append(slope)
    _expect(
        math.isclose(losses, output.loss.item(), rel_tol=1e-12, abs_tol=1e-12)
        and bool((torch.cat(gradients) - gradient).abs().max() < 1e-12),
        f"value losses of micro-batches add up to {losses:g}, the whole is {output.loss.item():g}: is batch.normaliser "
        "ignored?",
    )
    nothing, none = _value_loss(algorithm, evolve(whole, mask=whole.mask * 0))
    _expect(nothing.loss.item() == 0 and bool((none == 0).all()), "no token is active, but the critic has a loss")


def check_adaptive_kl(algorithm: Algorithm) -> None:
    """The next KL weight is a finite float, 0 or more, the same for the same experience, and no smaller far away."""
    if not isinstance(algorithm, AdaptiveKL):
        return
    experience = _experience()
    weights = [
        algorithm.next_kl_weight(evolve(experience, ref_logprobs=experience.logprobs - away, kl_weight=0.1))
        for away in (0.0, 0.0, 3.0)
    ]
    for weight in weights:
        _expect(
            type(weight) is float and math.isfinite(weight) and weight >= 0,
            f"next_kl_weight gave {weight!r}; it must be a finite float, 0 or more",
        )
    _expect(weights[0] == weights[1], "next_kl_weight gave two values for one experience: does it hold state?")
    _expect(weights[2] >= weights[0], "the KL weight falls when the policy moves away from the reference")


def check_entropy(algorithm: Algorithm) -> None:
    """With an entropy weight, descending raises the entropy of active tokens, and of no others."""
    if not isinstance(algorithm, EntropyBonus):
        return
    weight = algorithm.entropy_weight
    _expect(
        type(weight) is float and math.isfinite(weight) and weight >= 0,
        f"entropy_weight must be a finite float, 0 or more, but is {weight!r}",
    )
    batch = _batch()
    assert batch.entropy is not None
    entropy: Any = batch.entropy.detach().clone().requires_grad_()
    _loss(algorithm, evolve(batch, entropy=entropy))
    if weight == 0:
        _expect(entropy.grad is None or bool((entropy.grad == 0).all()), "entropy_weight is 0, but entropy is trained")
        return
    active = batch.mask.bool()
    slope = entropy.grad
    _expect(slope is not None and bool((slope[active] < 0).all()), "descending does not raise the entropy")
    _expect(bool((slope[~active] == 0).all()), "the entropy of inactive positions is trained")


ALGORITHM_CHECKS: Final[tuple[Check, ...]] = (
    check_attributes,
    check_reward_shapes,
    check_advantages_follow_rewards,
    check_masked_samples,
    check_loss,
    check_gradient_direction,
    check_kl,
    check_padding_is_never_read,
    check_micro_batches,
    check_empty,
    check_purity,
    check_token_advantages,
    check_environment_tokens,
    check_critic,
    check_adaptive_kl,
    check_entropy,
)


def check_algorithm(algorithm: Algorithm) -> None:
    """Run every check of :data:`ALGORITHM_CHECKS`; raise an :class:`ExceptionGroup` of all that failed."""
    failures: list[Exception] = []
    for check in ALGORITHM_CHECKS:
        try:
            check(algorithm)
        except Exception as error:
            error.add_note(f"in {check.__name__}: {check.__doc__}")
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"algorithm {getattr(algorithm, 'name', algorithm)!r} does not conform", failures)


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _rewards() -> tuple[Tensor, Tensor]:
    """Rewards and validity of 3 prompts with 2 completions each, one group of equal rewards among them."""
    import torch

    return torch.tensor([[0.1, 1.0], [0.5, 0.5], [0.35, 0.3]], dtype=torch.float64), torch.ones(3, 2, dtype=torch.bool)


def _batch() -> TokenBatch:
    """6 sequences of up to 7 tokens; ratios between 0.95 and 1.06, so that no usual clip range cuts them."""
    import torch

    generator = torch.Generator().manual_seed(20240501)

    def noise(scale: float) -> Tensor:
        return scale * (2 * torch.rand(6, 7, generator=generator, dtype=torch.float64) - 1)

    old = -1.5 + noise(1.0)
    mask = (torch.arange(7) < torch.tensor(_LENGTHS).unsqueeze(1)).long()
    mask[1, 3] = 0
    return TokenBatch(
        logprobs=old + noise(0.05),
        old_logprobs=old,
        mask=mask,
        advantages=torch.tensor([1.2, -0.7, 0.4, -1.1, 0.9, -0.2], dtype=torch.float64),
        ref_logprobs=old + noise(0.3),
        entropy=1 + noise(0.5),
    )


def _experience(**changes: Any) -> Experience:
    """The batch above as it was sampled: two sequences a prompt, their scores, and what a critic would say."""
    import torch

    batch = _batch()
    generator = torch.Generator().manual_seed(20250317)
    experience = Experience(
        scores=torch.tensor([0.1, 1.0, 0.7, 0.2, -0.4, 0.3], dtype=torch.float64),
        groups=torch.tensor([0, 0, 1, 1, 2, 2]),
        mask=batch.mask,
        logprobs=batch.old_logprobs,
        ref_logprobs=batch.old_logprobs.clone(),
        values=0.02 * torch.rand(6, 7, generator=generator, dtype=torch.float64),
    )
    return evolve(experience, **changes)


def _values() -> ValueBatch:
    """Values that have moved by up to 0.1 from the old ones, towards returns that are 1 to 2 away."""
    import torch

    generator = torch.Generator().manual_seed(20250318)

    def noise() -> Tensor:
        return torch.rand(6, 7, generator=generator, dtype=torch.float64)

    old = noise()
    return ValueBatch(values=old + 0.1 * noise(), old_values=old, returns=old + 1.1 + noise(), mask=_batch().mask)


def _row_means(values: Tensor, mask: Tensor) -> Tensor:
    return (values * mask).sum(1) / mask.sum(1)


def _value_loss(algorithm: ActorCritic, batch: ValueBatch) -> tuple[LossOutput, Tensor]:
    """The output and the gradient of the value loss ``[N, L]`` with respect to the values."""
    values: Any = batch.values.detach().clone().requires_grad_()
    output = algorithm.value_loss(evolve(batch, values=values))
    if not output.loss.requires_grad:
        raise AssertionError("the value loss has no gradient: was it computed from detached or copied values?")
    output.loss.backward()  # type: ignore[no-untyped-call]
    return output, values.grad


def _loss(algorithm: Algorithm, batch: TokenBatch) -> tuple[LossOutput, Tensor]:
    """The output and the gradient of the loss ``[N, L]`` with respect to the log-probabilities."""
    logprobs: Any = batch.logprobs.detach().clone().requires_grad_()
    output = algorithm.loss(evolve(batch, logprobs=logprobs))
    if not output.loss.requires_grad:
        raise AssertionError("the loss has no gradient: was it computed from detached or copied log-probabilities?")
    output.loss.backward()  # type: ignore[no-untyped-call]
    return output, logprobs.grad
