"""Checks of the loss over tokens: its gradient, the KL term, padding, micro-batches and empty batches."""

from __future__ import annotations

import math
from typing import Any

from attrs import evolve

from callwright.testing.algorithms.batches import PER_TOKEN, loss_of, row_means, sample_batch, sample_experience
from callwright.testing.expectations import expect
from callwright.training.algorithm import Algorithm, TokenBatch, TokenLevel


def check_loss(algorithm: Algorithm) -> None:
    """The loss is a finite scalar with a finite gradient, and the diagnostics are plain floats."""
    import torch

    output, gradient = loss_of(algorithm, sample_batch())
    expect(output.loss.dim() == 0, f"the loss has the shape {list(output.loss.shape)}; it must be a scalar")
    expect(bool(output.loss.isfinite()), f"the loss is {output.loss.item()}")
    expect(bool(gradient.isfinite().all()), "the gradient holds NaN or infinity")
    on_policy = _on_policy(sample_batch())  # off policy, clipping may leave any token out: that is what it is for
    _, there = loss_of(algorithm, on_policy)
    expect(bool((there[on_policy.mask.bool()] != 0).all()), "on policy, some active token has no gradient")
    for name, value in output.diagnostics.items():
        expect(
            type(value) is float and math.isfinite(value),
            f"the diagnostic {name!r} is {value!r}; a finite Python float goes into metrics.jsonl, a tensor would keep "
            "the graph alive",
        )
    for dtype in (torch.bool, torch.int64, torch.float32):
        batch = evolve(sample_batch(), mask=sample_batch().mask.to(dtype))
        expect(
            bool(loss_of(algorithm, batch)[0].loss == output.loss),
            f"a mask of {dtype} gives another loss than one of {sample_batch().mask.dtype}",
        )


def _on_policy(batch: TokenBatch) -> TokenBatch:
    return evolve(batch, old_logprobs=batch.logprobs.detach(), ref_logprobs=batch.logprobs.detach())


def check_gradient_direction(algorithm: Algorithm) -> None:
    """On policy, descending raises the probability of tokens with a positive advantage and lowers the others."""
    batch = _on_policy(sample_batch())
    _, gradient = loss_of(algorithm, batch)
    for row, advantage in enumerate(batch.advantages.tolist()):
        for slope in gradient[row][batch.mask[row].bool()].tolist():
            expect(
                slope * advantage < 0,
                f"a token with advantage {advantage:g} has the gradient {slope:g}: the loss must fall when its "
                "probability rises; is a minus sign missing?",
            )


def check_kl(algorithm: Algorithm) -> None:
    """With a weight, the KL term pulls towards the reference; without, no reference is needed."""
    import torch

    batch = sample_batch()
    if algorithm.kl_weight == 0:
        with_reference = loss_of(algorithm, batch)[0].loss
        without = loss_of(algorithm, evolve(batch, ref_logprobs=None))[0].loss
        expect(bool(with_reference == without), "kl_weight is 0, but the reference changes the loss")
        return
    reference = batch.logprobs.detach() + torch.where(torch.arange(7) % 2 == 0, 0.3, -0.3)
    zeros = torch.zeros_like(batch.logprobs)
    batch = evolve(batch, ref_logprobs=reference, advantages=zeros[:, 0], entropy=zeros)
    output, gradient = loss_of(algorithm, batch)
    active = batch.mask.bool()
    if isinstance(algorithm, TokenLevel) and bool((gradient == 0).all()):  # then it must be in the reward
        _check_kl_in_reward(algorithm)
        return
    pull = (reference - batch.logprobs.detach())[active] * gradient[active]
    expect(output.loss.item() > 0, "with advantages 0 the loss is the KL term, which must be positive here")
    expect(bool((pull < 0).all()), "descending moves away from the reference: are policy and reference exchanged?")


def _check_kl_in_reward(algorithm: TokenLevel) -> None:
    """Of two equal completions that earned the same, the one that left the reference has the lower advantages."""
    import torch

    twice = torch.tensor([0, 0, 2, 2, 4, 4])
    experience = sample_experience(scores=torch.full((6,), 0.5, dtype=torch.float64))
    twins: dict[str, Any] = {name: getattr(experience, name)[twice] for name in ("mask", "logprobs", "values")}
    experience = evolve(experience, **twins)
    away = torch.tensor([[0.0], [0.3]] * 3, dtype=torch.float64)  # every second one is likelier than the reference
    advantages, _ = algorithm.token_advantages(evolve(experience, ref_logprobs=experience.logprobs - away))
    means = row_means(advantages, experience.mask)
    expect(
        bool((means[0::2] > means[1::2]).all()),
        "kl_weight is above 0, but the reference moves neither the loss nor, the right way, the token advantages: is "
        "the penalty added instead of taken off?",
    )


def check_weighed_tokens(algorithm: Algorithm) -> None:
    """Advantages may be of tokens: one for all of a sequence is as if it were the sequence's, 0 takes a token out."""
    import torch

    batch = _on_policy(sample_batch())
    _, of_sequences = loss_of(algorithm, batch)
    spread = batch.advantages.unsqueeze(1).expand_as(batch.mask).contiguous()
    _, of_tokens = loss_of(algorithm, evolve(batch, advantages=spread))
    worst = (of_tokens - of_sequences).abs().max().item()
    expect(
        worst < 1e-12,
        f"advantages [N, L] that are the same for all tokens of a sequence give a gradient that differs by {worst:g} "
        "from that of the advantages [N]",
    )
    weights = torch.where(torch.arange(7) % 2 == 0, 2.0, 0.0).to(spread)
    _, weighed = loss_of(algorithm, evolve(batch, advantages=spread * weights))
    _, nothing = loss_of(algorithm, evolve(batch, advantages=spread * 0))
    active = batch.mask.bool()
    expect(
        bool((weighed - nothing)[active].abs().sum() > 0)
        and bool((spread * weights * (weighed - nothing) <= 0)[active].all()),
        "the advantage of a token does not weigh that token",
    )


def check_padding_is_never_read(algorithm: Algorithm) -> None:
    """NaN and infinity in inactive positions change neither loss nor gradient nor diagnostics."""
    import torch

    batch = sample_batch()
    clean, clean_gradient = loss_of(algorithm, batch)
    active = batch.mask.bool()
    for garbage in (math.nan, math.inf, -math.inf, 1e30):
        soiled: dict[str, Any] = {name: torch.where(active, getattr(batch, name), garbage) for name in PER_TOKEN}
        output, gradient = loss_of(algorithm, evolve(batch, **soiled))
        cause = f"changed by {garbage} in padded positions: select with torch.where, since 0 times NaN is NaN"
        expect(bool(output.loss == clean.loss), f"the loss was {cause}")
        expect(bool((gradient == clean_gradient).all()), f"the gradient was {cause}")
        expect(dict(output.diagnostics) == dict(clean.diagnostics), f"a diagnostic was {cause}")


def check_micro_batches(algorithm: Algorithm) -> None:
    """Losses and gradients of uneven micro-batches with the whole batch's normaliser add up to the whole's."""
    import torch

    whole = sample_batch()
    total = algorithm.normaliser(whole.mask)
    expect(type(total) is float and total > 0, f"normaliser gave {total!r}; it must be a float above 0")
    expected, expected_gradient = loss_of(algorithm, whole)
    given, _ = loss_of(algorithm, evolve(whole, normaliser=total))
    expect(
        math.isclose(given.loss.item(), expected.loss.item(), rel_tol=1e-12, abs_tol=1e-12),
        f"a batch has the loss {given.loss.item():g} with its own normaliser given, {expected.loss.item():g} without",
    )
    losses, gradients = 0.0, []
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        part: dict[str, Any] = {name: getattr(whole, name)[start:stop] for name in (*PER_TOKEN, "mask", "advantages")}
        output, gradient = loss_of(algorithm, TokenBatch(**part, normaliser=total))
        losses += output.loss.item()
        gradients.append(gradient)
    expect(
        math.isclose(losses, expected.loss.item(), rel_tol=1e-12, abs_tol=1e-12),
        f"micro-batches add up to {losses:g}, the whole is {expected.loss.item():g}: is batch.normaliser ignored, or a "
        "mean taken within the micro-batch?",
    )
    worst = (torch.cat(gradients) - expected_gradient).abs().max().item()
    expect(worst < 1e-12, f"gradients of micro-batches differ from the whole's by up to {worst:g}")


def check_empty(algorithm: Algorithm) -> None:
    """A batch without an active token has loss 0 and gradient 0, and can still be differentiated."""
    batch = sample_batch()
    batch = evolve(batch, mask=batch.mask * 0)
    output, gradient = loss_of(algorithm, batch)
    expect(output.loss.item() == 0, f"no token is active, but the loss is {output.loss.item()}: is it divided by 0?")
    expect(bool((gradient == 0).all()), "no token is active, but there is a gradient")
    expect(algorithm.normaliser(batch.mask) > 0, "normaliser of an empty mask must be above 0, or losses become NaN")
