"""Small Llamas in few operators, held equal to transformers' forward of the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from attrs import evolve
from torch import Tensor, nn

from callwright_plugins.local_trainer.forward import generation, likelihood, ragged
from callwright_plugins.local_trainer.forward.generation import Sampled, continue_contexts, generate
from callwright_plugins.local_trainer.forward.likelihood import FullSequences, Prefix
from callwright_plugins.local_trainer.forward.llama import understood
from callwright_plugins.local_trainer.models.policy import Policy

Make = Callable[[str], Policy]
KINDS = ("llama", "qwen2", "qwen3")
PROMPTS = [(9, 30, 41), (17, 3), tuple(range(20, 83)), (250, 31, 8, 77, 120, 200, 33, 12)]
OWNERS = [2, 0, 0, 1, 2, 2, 3, 0]
COMPLETIONS = [(4, 5, 6, 7), (8,), tuple(range(90, 121)), (44, 45), (3, 2, 1, 99, 98), (60,), (5,) * 17, ()]


@pytest.fixture
def by_transformers(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, nothing is computed in few operators."""

    def switch() -> None:
        for module in (generation, likelihood):
            monkeypatch.setattr(module, "understood", lambda policy: False)

    return switch


def trained(policy: Policy, sequences: type[Prefix] | type[FullSequences]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Log-probabilities, entropies, and gradients of something of both, in two micro-batches."""
    made = sequences(policy, PROMPTS)
    found = []
    for rows in ([0, 2, 3, 7], [1, 4, 5, 6]):
        one = made.likelihood([OWNERS[row] for row in rows], [COMPLETIONS[row] for row in rows], 0.8, "trained")
        assert one.entropy is not None
        weights = torch.arange(1.0, 1.0 + len(rows)).unsqueeze(1) * one.mask
        ((weights * one.logprobs).sum() + (weights * one.entropy).sum()).backward()  # type: ignore[no-untyped-call]
        found.append((one.logprobs.detach(), one.entropy.detach()))
    made.backward()
    gradients = {name: p.grad.clone() for name, p in policy.model.named_parameters() if p.grad is not None}
    policy.model.zero_grad()
    return torch.cat([one.flatten() for one, _ in found]), torch.cat([one.flatten() for _, one in found]), gradients


def randomly_normed(policy: Policy) -> Policy:
    """Norms and biases that do something, and matrices in which rounding stays small."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
            else:
                parameter.mul_(0.4)
    return policy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sequences", "copied"), [(Prefix, 1 << 20), (Prefix, 0), (FullSequences, 0)], ids=["prefix", "behind", "full"]
)
def test_likelihood_and_gradients(
    kind: str,
    sequences: type[Prefix] | type[FullSequences],
    copied: int,
    make_policy: Make,
    by_transformers: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prompts are copied for the rows that follow them, or attended to where they are."""
    monkeypatch.setattr(ragged, "_COPIED", copied)
    policy = randomly_normed(make_policy(kind))
    assert understood(policy)
    logprobs, entropies, found = trained(policy, sequences)
    by_transformers()
    their_logprobs, their_entropies, expected = trained(policy, sequences)
    torch.testing.assert_close(logprobs, their_logprobs, atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(entropies, their_entropies, atol=2e-5, rtol=1e-5)
    assert found.keys() == expected.keys()
    largest = max(float(one.abs().max()) for one in expected.values())
    for name, gradient in expected.items():
        assert float((found[name] - gradient).abs().max()) <= 1e-6 * largest, name


def test_padding_that_was_sampled_teaches_its_embedding_nothing(
    make_policy: Make, by_transformers: Callable[[], None]
) -> None:
    """The embedding of padding is 0 as models are made, where a norm is steepest."""
    policy = randomly_normed(make_policy("llama"))
    embedding = policy.model.model.embed_tokens
    embedding.padding_idx = 5  # it stands in completions
    with torch.no_grad():
        embedding.weight[5] = 0
    _, _, found = trained(policy, Prefix)
    by_transformers()
    _, _, expected = trained(policy, Prefix)
    largest = max(float(one.abs().max()) for one in expected.values())
    for name, gradient in expected.items():
        assert float((found[name] - gradient).abs().max()) <= 1e-6 * largest, name


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_the_same(kind: str, make_policy: Make, by_transformers: Callable[[], None]) -> None:
    """Rows end at different times, so that they are moved; more than 64 tokens outgrow the first room; rooms differ."""
    policy = randomly_normed(make_policy(kind))
    short = [prompt[:20] for prompt in PROMPTS]
    free = generate(policy, short, copies=1, max_new_tokens=12, temperature=0)
    ends = {one.ids[4] for [one] in free}
    policy.model.generation_config.eos_token_id = sorted(ends | {free[0][0].ids[9]})

    def sample() -> list[Any]:
        drawn = {"temperature": 1.0, "generator": torch.Generator().manual_seed(4)}
        contexts = [short[0], short[3], short[0], short[2], short[1]]
        return [
            generate(policy, short, copies=5, max_new_tokens=90, **drawn),
            continue_contexts(policy, contexts, [3, 90, 0, 7, 40], temperature=0.7, seeds=[1, 2, 3, 4, 5]),
        ]

    groups, continued = sample()
    by_transformers()
    their_groups, their_continued = sample()
    lengths = {len(one.ids) for group in groups for one in group}
    assert len(lengths) > 3
    assert max(lengths) > 64  # the first room
    flat = [one for group in groups for one in group] + continued
    theirs = [one for group in their_groups for one in group] + their_continued
    for ours, other in zip(flat, theirs, strict=True):
        assert (ours.ids, ours.truncated) == (other.ids, other.truncated)
        torch.testing.assert_close(torch.tensor(ours.logprobs), torch.tensor(other.logprobs), atol=2e-5, rtol=1e-5)


def test_what_a_row_draws_hangs_on_no_other(make_policy: Make) -> None:
    """With a generator for all, too: a row's numbers are there before anybody has ended."""
    policy = make_policy("llama")
    drawn: dict[str, Any] = {"copies": 3, "max_new_tokens": 20, "temperature": 1.0}
    free = generate(policy, PROMPTS[:2], generator=torch.Generator().manual_seed(1), **drawn)
    policy.model.generation_config.eos_token_id = end = free[0][1].ids[2]
    ended = generate(policy, PROMPTS[:2], generator=torch.Generator().manual_seed(1), **drawn)

    def until_end(one: Sampled) -> tuple[int, ...]:
        return one.ids[: one.ids.index(end) + 1] if end in one.ids else one.ids

    assert [[one.ids for one in group] for group in ended] == [[until_end(one) for one in group] for group in free]
    assert len(ended[0][1].ids) <= 3


def test_what_is_out_of_the_ordinary_is_left_to_transformers(make_policy: Make) -> None:
    llama = make_policy("llama")
    assert understood(llama)
    assert understood(evolve(llama, recompute=True))
    assert not understood(make_policy("gpt2"))
    assert not understood(make_policy("mistral"))
    assert not understood(evolve(llama, dtype=torch.bfloat16))
    attention = llama.model.model.layers[1].self_attn
    handle = attention.register_forward_hook(lambda *given: None)
    assert not understood(llama)
    handle.remove()
    assert understood(llama)
    attention.o_proj = nn.Sequential(attention.o_proj)
    assert not understood(llama)
    assert not understood(_with(make_policy("llama"), hidden_act="gelu"))
    scaled = make_policy("llama")
    scaled.model.model.rotary_emb.rope_type = "yarn"
    assert not understood(scaled)
    assert not understood(evolve(scaled, model=make_policy("llama").model.train()))


def _with(policy: Policy, **changed: Any) -> Policy:
    for name, value in changed.items():
        setattr(policy.model.config, name, value)
    return policy
