"""Sampling, against ``model.generate`` and against log-probabilities of plain forward passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch

from callwright.errors import UsageError
from callwright_plugins.local_trainer.forward.batches import pad_left
from callwright_plugins.local_trainer.forward.generation import Sampled, choose, generate
from callwright_plugins.local_trainer.models.policy import Policy

Make = Callable[[str], Policy]
KINDS = ("llama", "qwen2", "qwen3", "gpt2", "mistral")
PROMPTS = [(9, 30, 41), (17,), (250, 31, 8, 77, 120, 200, 33, 12), (5, 6)]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_equals_generate(kind: str, make_policy: Make) -> None:
    policy = make_policy(kind)
    ours = generate(policy, PROMPTS, copies=1, max_new_tokens=20, temperature=0)
    for prompt, [sampled] in zip(PROMPTS, ours, strict=True):
        ids = torch.tensor([prompt])
        theirs = policy.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False, num_beams=1
        )[0, len(prompt) :].tolist()
        assert list(sampled.ids) == theirs
        assert sampled.truncated == (theirs[-1] != policy.tokenizer.eos_token_id)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_with_room_gives_the_same_bits(kind: str, make_policy: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """110 tokens outgrow the room twice; rows end on the way."""
    policy = make_policy(kind)

    def sample() -> object:
        generator = torch.Generator().manual_seed(3)
        return generate(policy, PROMPTS, copies=6, max_new_tokens=110, temperature=1.0, generator=generator)

    roomy = sample()
    monkeypatch.setattr("callwright_plugins.local_trainer.forward.generation.make_room", lambda cache: None)
    assert sample() == roomy


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_greedy_equals_generate_in_a_padded_batch_where_rows_end(kind: str, make_policy: Make) -> None:
    """Any token may be the end token, so one is chosen that ends some rows early."""
    policy = make_policy(kind)
    free = generate(policy, PROMPTS, copies=1, max_new_tokens=20, temperature=0)
    end = free[0][0].ids[4]
    policy.model.generation_config.eos_token_id = end
    ours = generate(policy, PROMPTS, copies=1, max_new_tokens=20, temperature=0)
    ids, mask = pad_left(PROMPTS, policy.pad, policy.device)
    theirs = policy.model.generate(ids, attention_mask=mask, max_new_tokens=20, do_sample=False)
    assert len(ours[0][0].ids) <= 5
    assert not ours[0][0].truncated
    for [sampled], row in zip(ours, theirs[:, ids.shape[1] :].tolist(), strict=True):
        assert list(sampled.ids) == row[: len(sampled.ids)]
        assert set(row[len(sampled.ids) :]) <= {policy.pad}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_logprobs_are_those_of_a_plain_forward_pass(kind: str, temperature: float, make_policy: Make) -> None:
    policy = make_policy(kind)
    sampled = generate(
        policy,
        PROMPTS,
        copies=3,
        max_new_tokens=12,
        temperature=temperature,
        generator=torch.Generator().manual_seed(1),
    )
    for prompt, group in zip(PROMPTS, sampled, strict=True):
        for one in group:
            with torch.no_grad():
                logits = policy.model(input_ids=torch.tensor([[*prompt, *one.ids]]), use_cache=False).logits[0]
            logprobs = (logits[len(prompt) - 1 : -1] / temperature).log_softmax(-1)
            expected = logprobs[torch.arange(len(one.ids)), torch.tensor(one.ids)]
            torch.testing.assert_close(torch.tensor(one.logprobs), expected, atol=2e-5, rtol=1e-5)


def test_a_seed_fixes_the_samples_and_copies_differ(make_policy: Make) -> None:
    policy = make_policy("llama")

    def sample(seed: int) -> list[list[Sampled]]:
        return generate(
            policy,
            PROMPTS,
            copies=4,
            max_new_tokens=8,
            temperature=1.0,
            generator=torch.Generator().manual_seed(seed),
            rows_at_once=8,
        )

    assert sample(3) == sample(3)
    assert sample(3) != sample(4)
    assert len({one.ids for one in sample(3)[0]}) > 1


@pytest.mark.parametrize("entries", [4, 1500])
def test_choose_samples_the_distribution(entries: int) -> None:
    """Chi-squared with 3 degrees of freedom: 16.3 is exceeded once in a thousand; the seed makes it never."""
    probabilities = torch.zeros(entries)
    probabilities[:: -(-entries // 4)] = torch.tensor([0.5, 0.3, 0.15, 0.05])
    logits = probabilities.log().expand(20_000, entries)
    tokens, logprobs = choose(logits, 1.0, torch.Generator().manual_seed(0))
    counts = Counter(tokens.tolist())
    expected = {i: 20_000 * p for i, p in enumerate(probabilities.tolist()) if p}
    assert set(counts) == set(expected)
    assert sum((counts[i] - count) ** 2 / count for i, count in expected.items()) < 16.3
    torch.testing.assert_close(logprobs, probabilities.log()[tokens])


def test_a_token_of_probability_0_is_never_chosen() -> None:
    logits = torch.tensor([0.0, -torch.inf, 0.0]).expand(5_000, 3)
    tokens, _ = choose(logits, 1.0, torch.Generator().manual_seed(0))
    assert set(tokens.tolist()) == {0, 2}


def test_no_prompts_no_completions(make_policy: Make) -> None:
    assert generate(make_policy("llama"), [], copies=2, max_new_tokens=4, temperature=0) == []


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_what_does_not_fit_into_the_model_is_refused(kind: str, make_policy: Make) -> None:
    policy = make_policy(kind)
    assert generate(policy, [(5,) * 120], copies=1, max_new_tokens=8, temperature=0)
    with pytest.raises(UsageError, match="128 positions, but a prompt has 121 tokens and 'max_new_tokens' is 8"):
        generate(policy, [(5,) * 121], copies=1, max_new_tokens=8, temperature=0)
