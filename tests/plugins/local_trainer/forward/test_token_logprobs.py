"""Log-probabilities in slices, against autograd over the whole table of logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from transformers import GraniteConfig, GraniteForCausalLM

from callwright_plugins.local_trainer.forward import token_logprobs
from callwright_plugins.local_trainer.forward.likelihood import prefix_of
from callwright_plugins.local_trainer.forward.token_logprobs import head_of, of_hidden, of_logits
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

Make = Callable[[str], Policy]
TOKENS, WIDTH, VOCABULARY = 23, 12, 301


@pytest.fixture(params=[1 << 23, 4 * VOCABULARY, 1], ids=["whole", "four", "one"])
def slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tokens in one slice, four in each, and each in one of its own."""
    monkeypatch.setattr(token_logprobs, "ENTRIES", {"cpu": request.param, "cuda": request.param})


def whole(logits: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """By autograd, over every entry."""
    shifted = (logits / temperature).log_softmax(-1)
    return shifted.gather(1, targets.unsqueeze(1)).squeeze(1), -(shifted.exp() * shifted).sum(-1)


def drawn(bias: bool) -> tuple[Tensor, nn.Linear, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(TOKENS, WIDTH, generator=generator).requires_grad_()
    head = nn.Linear(WIDTH, VOCABULARY, bias=bias)
    with torch.no_grad():
        for tensor in head.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=generator) / WIDTH**0.5)
    targets = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    weights = torch.randn(2, TOKENS, generator=generator)
    return hidden, head, targets, weights[0], weights[1]


def gradients(hidden: Tensor, head: nn.Linear) -> list[Tensor]:
    found = [tensor.grad for tensor in (hidden, *head.parameters())]
    for tensor in (hidden, *head.parameters()):
        tensor.grad = None
    assert all(gradient is not None for gradient in found)
    return [gradient for gradient in found if gradient is not None]


@pytest.mark.usefixtures("slices")
@pytest.mark.parametrize("path", ["hidden", "logits"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("of", ["logprobs", "entropy", "both"])
def test_gradients_are_those_of_the_whole_table(path: str, bias: bool, temperature: float, of: str) -> None:
    hidden, head, targets, first, second = drawn(bias)

    def descended(found: tuple[Tensor, Tensor]) -> list[Tensor]:
        terms = [(weight * table).sum() for weight, table in zip((first, second), found, strict=True)]
        {"logprobs": terms[0], "entropy": terms[1], "both": terms[0] + terms[1]}[of].backward()  # type: ignore[no-untyped-call]
        return gradients(hidden, head)

    plain = whole(head(hidden).double(), targets, temperature)
    expected = descended(plain)
    rounded = descended(whole(head(hidden), targets, temperature))
    if path == "hidden":
        found = of_hidden(hidden, head, targets, temperature, True, torch.float32)
    else:
        found = of_logits(head(hidden), targets, temperature, True)
    for ours, theirs in zip(found, plain, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-6, rtol=1e-6)
    for computed, gradient, in_float32 in zip(descended(found), expected, rounded, strict=True):
        # Processors round differently: on some, autograd itself is 0.7e-6 away where it works in float32.
        most = max(1e-6 * float(gradient.abs().max()), 2 * float((in_float32 - gradient).abs().max()))
        assert float((computed - gradient).abs().max()) <= most


def test_a_frozen_head_gets_no_gradient() -> None:
    hidden, head, targets, first, _ = drawn(bias=True)
    head.requires_grad_(False)
    (first * of_hidden(hidden, head, targets, 1.0, False, torch.float32)[0]).sum().backward()
    assert hidden.grad is not None
    assert all(tensor.grad is None for tensor in head.parameters())


def test_logits_that_made_way_are_not_gone_back_through_again() -> None:
    hidden, head, targets, _, _ = drawn(bias=False)
    loss = of_logits(head(hidden), targets, 1.0, False)[0].sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="can go back once"):
        loss.backward()


@pytest.mark.parametrize(("path", "most"), [("hidden", 0.3), ("logits", 1.3)])
def test_memory(path: str, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32 tables [tokens, vocabulary], with slices of a twentieth; autograd takes 4 and more."""
    tokens, vocabulary = 400, 5000
    monkeypatch.setattr(token_logprobs, "ENTRIES", dict.fromkeys(("cpu", "cuda"), tokens * vocabulary // 20))
    hidden, head = torch.randn(tokens, 4).requires_grad_(), nn.Linear(4, vocabulary, bias=False)
    targets = torch.randint(vocabulary, (tokens,))

    def tables(work: Callable[[], Tensor]) -> float:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            work().sum().backward()  # type: ignore[no-untyped-call]
        live = peak = 0
        events: Any = watched.profiler
        for event in sorted(events.kineto_results.events(), key=lambda one: one.start_ns()):
            if event.name() == "[memory]":
                live += event.nbytes()
                peak = max(peak, live)
        return peak / (4 * tokens * vocabulary)

    ours = {
        "hidden": lambda: of_hidden(hidden, head, targets, 1.0, True, torch.float32)[0],
        "logits": lambda: of_logits(head(hidden), targets, 1.0, True)[0],
    }
    assert tables(ours[path]) <= most
    assert tables(lambda: whole(head(hidden), targets, 1.0)[0]) > 3


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "gpt2", "mistral"])
def test_plain_heads_are_found(kind: str, make_policy: Make) -> None:
    policy = make_policy(kind)
    assert head_of(policy) is policy.model.get_output_embeddings()


def scaled() -> Policy:
    """A model whose logits are divided after the last layer."""
    torch.manual_seed(4)
    tokenizer = build_tokenizer(["Paris"])
    config = GraniteConfig(
        vocab_size=300, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.4, logits_scaling=3.0,
    )  # fmt: skip
    return Policy(GraniteForCausalLM(config).eval(), tokenizer, torch.device("cpu"))


@pytest.mark.parametrize("shared", [True, False])
def test_a_model_that_scales_its_logits(shared: bool) -> None:
    policy, prompts, completions = scaled(), [(9, 30, 41), (17, 3)], [(4, 5, 6), (8, 2)]
    assert head_of(policy) is None
    prefix = prefix_of(policy, prompts, shared)
    found = prefix.likelihood([0, 1], completions, 1.0)
    found.logprobs[found.mask.bool()].square().sum().backward()
    prefix.backward()
    computed = {name: tensor.grad.clone() for name, tensor in policy.model.named_parameters()}
    policy.model.zero_grad()
    rows = []
    for prompt, completion in zip(prompts, completions, strict=True):
        logits = policy.model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits[0]
        rows.append(whole(logits[len(prompt) - 1 : -1], torch.tensor(completion), 1.0)[0])
    torch.testing.assert_close(found.logprobs[found.mask.bool()], torch.cat(rows), atol=1e-5, rtol=1e-5)
    torch.cat(rows).square().sum().backward()
    for name, tensor in policy.model.named_parameters():
        torch.testing.assert_close(computed[name], tensor.grad, atol=1e-5, rtol=1e-4)
