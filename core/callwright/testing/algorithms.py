"""Conformance checks for algorithms: what every trainer relies on, whatever the formula.

One at a time, so that a failing check has its own name::

    @pytest.mark.parametrize("check", ALGORITHM_CHECKS, ids=lambda check: check.__name__)
    def test_conformance(check):
        check(MyAlgorithm())

or all at once with :func:`check_algorithm`. Each check raises :class:`AssertionError` and states the likely cause. They
run on the CPU in float64, on a batch of 3 prompts with 2 completions of up to 7 tokens, and need torch
(``pip install 'callwright[train]'``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from callwright.algorithm import Algorithm, LossOutput, TokenBatch

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
    batch = evolve(batch, ref_logprobs=reference, advantages=torch.zeros_like(batch.advantages))
    output, gradient = _loss(algorithm, batch)
    active = batch.mask.bool()
    pull = (reference - batch.logprobs.detach())[active] * gradient[active]
    _expect(output.loss.item() > 0, "with advantages 0 the loss is the KL term, which must be positive here")
    _expect(bool((pull < 0).all()), "descending moves away from the reference: are policy and reference exchanged?")


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
    before = [batch.logprobs.clone(), batch.advantages.clone(), rewards.clone()]
    state = torch.random.get_rng_state()
    outcomes = []
    for _ in range(2):
        shaped = algorithm.shape_rewards(rewards, torch.full((3, 2), 95), 100)
        output, gradient = _loss(algorithm, batch)
        advantages = algorithm.advantages(shaped, valid)
        outcomes.append((output.loss.item(), dict(output.diagnostics), gradient.tolist(), advantages.tolist()))
    _expect(
        all(bool((a == b).all()) for a, b in zip(before, [batch.logprobs, batch.advantages, rewards], strict=True)),
        "its input was changed in place",
    )
    _expect(outcomes[0] == outcomes[1], "the same input gave two different outputs: does it hold state?")
    _expect(bool((torch.random.get_rng_state() == state).all()), "it drew from torch's global random generator")


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


def _loss(algorithm: Algorithm, batch: TokenBatch) -> tuple[LossOutput, Tensor]:
    """The output and the gradient of the loss ``[N, L]`` with respect to the log-probabilities."""
    logprobs: Any = batch.logprobs.detach().clone().requires_grad_()
    output = algorithm.loss(evolve(batch, logprobs=logprobs))
    if not output.loss.requires_grad:
        raise AssertionError("the loss has no gradient: was it computed from detached or copied log-probabilities?")
    output.loss.backward()  # type: ignore[no-untyped-call]
    return output, logprobs.grad
