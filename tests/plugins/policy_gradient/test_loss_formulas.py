"""Each loss and its gradient against a literal transcription of its formula in plain Python, token by token."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright import UsageError
from callwright.training import TokenBatch
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.grpo import GRPO

Rows = Sequence[Sequence[float]]


def literal_token(
    logp: float, old: float, ref: float, advantage: float, low: float, high: float, beta: float, unbiased: bool
) -> tuple[float, float]:
    """One token's part of the sum, and its derivative with respect to ``logp``."""
    ratio = math.exp(logp - old)
    if ratio < 1 - low:
        clipped, slope_of_clipped = 1 - low, 0.0
    elif ratio > 1 + high:
        clipped, slope_of_clipped = 1 + high, 0.0
    else:
        clipped, slope_of_clipped = ratio, ratio
    if ratio * advantage <= clipped * advantage:
        surrogate, slope = ratio * advantage, ratio * advantage
    else:
        surrogate, slope = clipped * advantage, slope_of_clipped * advantage
    r = ref - logp
    kl, kl_slope = math.exp(r) - r - 1, 1 - math.exp(r)
    if unbiased:
        kl, kl_slope = ratio * kl, ratio * kl + ratio * kl_slope
    return -(surrogate - beta * kl), -(slope - beta * kl_slope)


def literal_loss(
    kind: str, case: dict[str, Any], low: float, high: float, beta: float, unbiased: bool
) -> tuple[float, list[list[float]]]:
    """The whole formula: GRPO eq. 3, TIER eq. 2.3 or DAPO eq. 12."""
    terms = [
        [
            literal_token(logp, old, ref, advantage, low, high, beta, unbiased) if on else None
            for logp, old, ref, on in zip(*rows, strict=True)
        ]
        for *rows, advantage in zip(
            case["logprobs"], case["old"], case["ref"], case["mask"], case["advantages"], strict=True
        )
    ]
    lengths = [sum(term is not None for term in row) for row in terms]
    if kind == "grpo":  # every sequence weighs the same
        sequences = sum(length > 0 for length in lengths)
        weights = [1 / length / sequences if length else 0.0 for length in lengths]
    else:  # every token weighs the same
        weights = [1 / sum(lengths) if sum(lengths) else 0.0 for _ in lengths]
    loss = math.fsum(weight * term[0] for weight, row in zip(weights, terms, strict=True) for term in row if term)
    gradient = [[weight * term[1] if term else 0.0 for term in row] for weight, row in zip(weights, terms, strict=True)]
    return loss, gradient


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    rows, tokens = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def matrix(low: float, high: float) -> Rows:
        row = st.lists(st.floats(low, high, width=32), min_size=tokens, max_size=tokens)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    return {
        "logprobs": matrix(-3, 0),
        "old": matrix(-3, 0),
        "ref": matrix(-3, 0),
        "mask": draw(st.lists(st.lists(st.booleans(), min_size=tokens, max_size=tokens), min_size=rows, max_size=rows)),
        "advantages": draw(st.lists(st.floats(-3, 3, width=32), min_size=rows, max_size=rows)),
    }


def batch(case: dict[str, Any], **more: Any) -> TokenBatch:
    tensors = {name: torch.tensor(case[name], dtype=torch.float64) for name in ("logprobs", "old", "ref", "advantages")}
    return TokenBatch(
        logprobs=tensors["logprobs"].requires_grad_(),
        old_logprobs=tensors["old"],
        mask=torch.tensor(case["mask"]),
        advantages=tensors["advantages"],
        ref_logprobs=tensors["ref"],
        **more,
    )


ALGORITHMS = [
    pytest.param("grpo", GRPO(), 0.2, 0.2, id="grpo"),
    pytest.param("grpo", GRPO(epsilon=0.1, epsilon_high=0.5, kl_weight=0.3), 0.1, 0.5, id="grpo-clip-higher"),
    pytest.param("grpo", GRPO(std="batch", kl_weight=0, unbiased_kl=True), 0.2, 0.2, id="grpo-no-kl"),
    pytest.param("token", BatchNormalisedGRPO(), 0.2, 0.2, id="bn-grpo"),
    pytest.param("token", BatchNormalisedGRPO(kl_weight=1, unbiased_kl=True), 0.2, 0.2, id="bn-grpo-unbiased"),
    pytest.param("token", DAPO(), 0.2, 0.28, id="dapo"),
    pytest.param("token", DAPO(epsilon_low=0.3, epsilon_high=1.5, kl_weight=0.1), 0.3, 1.5, id="dapo-kl"),
]


@pytest.mark.parametrize(("kind", "algorithm", "low", "high"), ALGORITHMS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(case=cases())
def test_loss_and_gradient_follow_the_formula(kind: str, algorithm: Any, low: float, high: float, case: Any) -> None:
    expected, expected_gradient = literal_loss(kind, case, low, high, algorithm.kl_weight, algorithm.unbiased_kl)
    tokens = batch(case)
    loss = algorithm.loss(tokens).loss
    loss.backward()
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    gradient = tokens.logprobs.grad - torch.tensor(expected_gradient, dtype=torch.float64)
    ratio = (tokens.logprobs.detach() - tokens.old_logprobs).exp()
    off_the_edges = ((ratio - (1 - low)).abs() > 1e-9) & ((ratio - (1 + high)).abs() > 1e-9)  # where the slope jumps
    assert bool((gradient[off_the_edges].abs() < 1e-12).all())


@pytest.mark.parametrize(("kind", "algorithm", "low", "high"), ALGORITHMS)
def test_gradient_equals_finite_differences(kind: str, algorithm: Any, low: float, high: float) -> None:
    generator = torch.Generator().manual_seed(3)
    old = -1 - torch.rand(3, 4, generator=generator, dtype=torch.float64)
    logprobs = (old + 0.5 * torch.randn(3, 4, generator=generator, dtype=torch.float64)).requires_grad_()
    ref = old + 0.3 * torch.randn(3, 4, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 1, 1], [1, 0, 0, 0]])
    advantages = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)

    def loss(values: Any) -> Any:
        return algorithm.loss(TokenBatch(values, old, mask, advantages, ref)).loss

    assert torch.autograd.gradcheck(loss, (logprobs,))


@pytest.mark.parametrize(("kind", "algorithm", "low", "high"), ALGORITHMS)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(case=cases(), data=st.data())
def test_micro_batches_add_up_exactly(kind: str, algorithm: Any, low: float, high: float, case: Any, data: Any) -> None:
    """Any split into consecutive micro-batches, empty ones of padding rows included."""
    whole = batch(case)
    rows = len(case["advantages"])
    total = algorithm.normaliser(whole.mask)
    inner = data.draw(st.sets(st.sampled_from(range(1, rows)))) if rows > 1 else set()
    cuts = [0, *sorted(inner), rows]
    losses, gradients = [], []
    for start, stop in itertools.pairwise(cuts):
        part = batch({name: values[start:stop] for name, values in case.items()}, normaliser=total)
        loss = algorithm.loss(part).loss
        loss.backward()
        losses.append(loss.item())
        gradients.append(part.logprobs.grad)
    expected = algorithm.loss(whole).loss
    expected.backward()
    assert math.fsum(losses) == pytest.approx(expected.item(), abs=1e-12)
    assert (torch.cat(gradients) - whole.logprobs.grad).abs().max() < 1e-12


def test_a_step_on_policy_is_reinforce() -> None:
    """TIER section 2.3: with one update per rollout the gradient is that of ``-A log pi``, averaged over tokens."""
    logprobs = torch.tensor([[-1.0, -2.0, -0.5], [-0.1, -3.0, -1.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    advantages = torch.tensor([0.5, -2.0], dtype=torch.float64)
    algorithm = BatchNormalisedGRPO(kl_weight=0)
    algorithm.loss(TokenBatch(logprobs, logprobs.detach(), mask, advantages)).loss.backward()
    assert logprobs.grad.tolist() == [[-0.1, -0.1, -0.1], [0.4, 0.4, 0.0]]


def test_a_kl_weight_needs_a_reference() -> None:
    values = torch.zeros(1, 2)
    with pytest.raises(UsageError, match=r"bn-grpo: kl_weight is 0.04, but the batch holds no ref_logprobs"):
        BatchNormalisedGRPO().loss(TokenBatch(values, values, torch.ones(1, 2), torch.ones(1)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"advantages": torch.ones(2, 1)}, r"advantages has the shape \[2, 1\].*one value for each of the 2 sequences"),
        ({"advantages": torch.ones(3)}, r"advantages has the shape \[3\]"),
        ({"mask": torch.ones(2)}, r"mask has the shape \[2\], but logprobs has \[2, 3\]"),
        ({"old_logprobs": torch.ones(1, 3)}, r"old_logprobs has the shape \[1, 3\]"),
        ({"ref_logprobs": torch.ones(2, 4)}, r"ref_logprobs has the shape \[2, 4\]"),
        ({"logprobs": torch.ones(3)}, r"logprobs must have the shape \[sequences, tokens\], but has \[3\]"),
        ({"normaliser": 0.0}, r"normaliser must be greater than 0, but is 0.0"),
        ({"normaliser": math.nan}, r"normaliser must be greater than 0, but is nan"),
    ],
)
@pytest.mark.parametrize("algorithm", [GRPO(kl_weight=0), BatchNormalisedGRPO(kl_weight=0), DAPO()])
def test_shapes_that_torch_would_broadcast_are_refused(algorithm: Any, change: dict[str, Any], message: str) -> None:
    fields = {
        "logprobs": torch.ones(2, 3),
        "old_logprobs": torch.ones(2, 3),
        "mask": torch.ones(2, 3),
        "advantages": torch.ones(2),
    }
    with pytest.raises(UsageError, match=message):
        algorithm.loss(TokenBatch(**(fields | change)))
