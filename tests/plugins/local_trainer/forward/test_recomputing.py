"""Gradient checkpointing: the same gradients with less memory, the shared prompt included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from attrs import evolve
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from callwright.errors import RecipeError
from callwright.pipeline import Pipeline
from callwright_plugins.local_trainer.forward.likelihood import prefix_of
from callwright_plugins.local_trainer.learning.critic import make_critic
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.run import training

Make = Callable[[str], Policy]
PROMPTS = [(9, 30, 41), (17, 3), (250, 31, 8, 77, 120, 200, 33, 12)]
OWNERS = [2, 0, 0, 1, 2, 2]
COMPLETIONS = [(4, 5, 6, 7), (8,), (9, 10, 11), (44, 45), (3, 2, 1, 99, 98), (60,)]


def descended(policy: Policy, shared: bool, parts: Sequence[Sequence[int]] = ((0, 1, 2), (3, 4, 5))) -> None:
    prefix = prefix_of(policy, PROMPTS, shared)
    for part in parts:
        found = prefix.likelihood([OWNERS[row] for row in part], [COMPLETIONS[row] for row in part], 1.0)
        (found.logprobs * found.mask).square().sum().backward()
    prefix.backward()


def gradients(policy: Policy) -> dict[str, Tensor]:
    found = {name: tensor.grad.clone() for name, tensor in policy.model.named_parameters() if tensor.grad is not None}
    policy.model.zero_grad()
    return found


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "gpt2", "mistral"])
@pytest.mark.parametrize("shared", [True, False])
def test_gradients_are_the_same(kind: str, shared: bool, make_policy: Make) -> None:
    policy = make_policy(kind)
    descended(policy, shared)
    expected = gradients(policy)
    descended(evolve(policy, recompute=True), shared)
    found = gradients(policy)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert torch.equal(found[name], gradient), name
    assert max(float(gradient.abs().max()) for gradient in expected.values()) > 1e-2
    assert not any("forward" in vars(module) for module in policy.model.modules())  # as it was


def test_the_critics_too(make_policy: Make) -> None:
    policy = make_policy("llama")
    critic = make_critic(policy, Options())
    with torch.no_grad():
        critic.model.head.weight.fill_(0.1)
    found = []
    for one in (critic.policy, evolve(critic.policy, recompute=True)):
        prefix = prefix_of(one, PROMPTS)
        values, _, mask = prefix.logits(OWNERS, COMPLETIONS)
        (values.squeeze(2) * mask).square().sum().backward()
        prefix.backward()
        found.append(gradients(one))
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
    assert len(found[0]) == len(dict(critic.model.named_parameters()))


@pytest.mark.parametrize("shared", [True, False])
def test_less_is_kept(shared: bool, make_policy: Make) -> None:
    """Two layers, so that a half is near what can be saved of 32 rows of 40 tokens, no two of which begin alike."""
    policy = make_policy("llama")
    rows = [tuple(range(row, row + 40)) for row in range(32)]

    def kept(one: Policy) -> int:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            prefix = prefix_of(one, [tuple(range(40))], shared)
            found = prefix.likelihood([0] * 32, rows, 1.0)
        events: Any = watched.profiler
        live = sum(event.nbytes() for event in events.kineto_results.events() if event.name() == "[memory]")
        assert found.logprobs.requires_grad
        return live

    kept(policy)
    assert kept(evolve(policy, recompute=True)) < 0.6 * kept(policy)


def test_the_option_reaches_the_policy(make_pipeline: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, options = make_pipeline("trainer.gradient_checkpointing=true"), Options(gradient_checkpointing=True)
    assert training.make_policy(pipeline, options).recompute
    assert not training.make_policy(pipeline, Options()).recompute
    monkeypatch.setattr(training, "layers_of", lambda model: [])
    with pytest.raises(RecipeError, match="LlamaForCausalLM cannot be computed again; leave 'gradient_checkpointing'"):
        training.make_policy(pipeline, options)
