"""Log-probabilities and gradients with a shared prompt, against one unpadded forward pass for each completion."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from callwright_plugins.local_trainer.forward.likelihood import FullSequences, Prefix, can_share, prefix_of
from callwright_plugins.local_trainer.models.policy import Policy

Make = Callable[[str], Policy]
KINDS = ("llama", "qwen2", "qwen3", "gpt2")
PROMPTS = [(9, 30, 41), (17, 3), (250, 31, 8, 77, 120, 200, 33, 12)]
OWNERS = [2, 0, 0, 1, 2, 2]
COMPLETIONS = [(4, 5, 6, 7), (8,), (9, 10, 11), (44, 45), (3, 2, 1, 99, 98), (60,)]
WEIGHTS = [1.0, -0.5, 2.0, 0.3, -1.2, 0.7]


def by_hand(policy: Policy, temperature: float) -> list[Tensor]:
    rows = []
    for owner, completion in zip(OWNERS, COMPLETIONS, strict=True):
        prompt = PROMPTS[owner]
        logits = policy.model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits[0]
        logprobs = (logits[len(prompt) - 1 : -1] / temperature).log_softmax(-1)
        rows.append(logprobs[torch.arange(len(completion)), torch.tensor(completion)])
    return rows


def gradients(policy: Policy) -> dict[str, Tensor]:
    found = {name: p.grad.clone() for name, p in policy.model.named_parameters() if p.grad is not None}
    policy.model.zero_grad()
    return found


def expected_gradients(policy: Policy) -> dict[str, Tensor]:
    rows = by_hand(policy, 1.0)
    torch.stack([weight * row.square().sum() for weight, row in zip(WEIGHTS, rows, strict=True)]).sum().backward()
    return gradients(policy)


@pytest.mark.parametrize("kind", [*KINDS, "mistral"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs(kind: str, shared: bool, temperature: float, make_policy: Make) -> None:
    policy = make_policy(kind)
    with torch.no_grad():
        found = prefix_of(policy, PROMPTS, shared).likelihood(OWNERS, COMPLETIONS, temperature)
        expected = by_hand(policy, temperature)
    for row, (logprobs, mask) in enumerate(zip(found.logprobs, found.mask, strict=True)):
        assert mask.tolist() == [1] * len(COMPLETIONS[row]) + [0] * (5 - len(COMPLETIONS[row]))
        torch.testing.assert_close(logprobs[mask.bool()], expected[row], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [[[0, 1, 2, 3, 4, 5]], [[1, 5], [3, 2], [0, 4]]])
def test_gradients_flow_through_the_shared_prompt(kind: str, parts: list[list[int]], make_policy: Make) -> None:
    policy = make_policy(kind)
    expected = expected_gradients(policy)
    prefix = prefix_of(policy, PROMPTS)
    assert isinstance(prefix, Prefix)
    for part in parts:
        found = prefix.likelihood([OWNERS[row] for row in part], [COMPLETIONS[row] for row in part], 1.0)
        weights = torch.tensor([WEIGHTS[row] for row in part]).unsqueeze(1)
        (weights * found.mask * found.logprobs.square()).sum().backward()
    prefix.backward()
    computed = gradients(policy)
    assert computed.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        torch.testing.assert_close(computed[name], gradient, atol=1e-5 * max(1.0, largest), rtol=1e-4)


def test_without_the_prompt_the_gradient_would_be_another(make_policy: Make) -> None:
    """The test above can fail: leaving out the prompt's part changes the gradient visibly."""
    policy = make_policy("llama")
    expected = expected_gradients(policy)
    prefix = Prefix(policy, PROMPTS)
    found = prefix.likelihood(OWNERS, COMPLETIONS, 1.0)
    (torch.tensor(WEIGHTS).unsqueeze(1) * found.mask * found.logprobs.square()).sum().backward()
    computed = gradients(policy)
    assert any(float((computed[name] - expected[name]).abs().max()) > 1e-2 for name in expected)


def test_entropy(make_policy: Make) -> None:
    policy = make_policy("llama")
    found = Prefix(policy, PROMPTS).likelihood(OWNERS, COMPLETIONS, 1.0)
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([[*PROMPTS[2], *COMPLETIONS[0]]]), use_cache=False).logits[0]
    expected = torch.distributions.Categorical(logits=logits[len(PROMPTS[2]) - 1 : -1]).entropy()
    assert found.entropy is not None
    assert not found.entropy.requires_grad
    torch.testing.assert_close(found.entropy[0, :4], expected, atol=1e-5, rtol=1e-5)


def test_what_cannot_be_shared_is_not(make_policy: Make) -> None:
    llama, windowed = make_policy("llama"), make_policy("mistral")
    assert can_share(llama, PROMPTS)
    assert not can_share(llama, [(5,), (6, 7)])
    assert not can_share(windowed, PROMPTS)
    assert isinstance(prefix_of(windowed, PROMPTS), FullSequences)
    assert isinstance(prefix_of(llama, PROMPTS, shared=False), FullSequences)
