"""Keys and values that are kept between turns: nothing that is sampled may tell that they were."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from attrs import evolve
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MptConfig,
    MptForCausalLM,
)

from callwright_plugins.local_trainer.forward import generation
from callwright_plugins.local_trainer.forward.generation import Sampled, continue_contexts
from callwright_plugins.local_trainer.forward.turn_cache import Kept, TurnCache, can_keep, in_common, weights_of
from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.models.masters import to_bfloat16
from callwright_plugins.local_trainer.models.policy import Policy, set_weights, weights

Make = Callable[[str], Policy]
#: Kinds in few operators, and those that transformers computes: the same Llamas, learned positions, a sliding window.
FORMS = ("llama", "qwen2", "qwen3", "llama by transformers", "qwen3 by transformers", "gpt2", "mistral")
ROWS = 6
LARGE = float(1 << 30)


@pytest.fixture
def make_form(make_policy: Make, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A policy in one of the forms, whose matrices are small enough for rounding to stay so."""

    def make(form: str) -> Policy:
        kind, _, by = form.partition(" by ")
        if by:
            monkeypatch.setattr(generation, "understood", lambda policy: False)
        policy = make_policy(kind)
        with torch.no_grad():
            for name, parameter in policy.model.named_parameters():
                if "norm" not in name and not name.endswith("bias"):
                    parameter.mul_(0.4)
        return policy

    return make


class Talk:
    """Random conversations of some rows: what is sampled stays, the environment adds something, a template may write
    what was said anew, rows pause, and some tokens end a turn."""

    def __init__(self, policy: Policy, seed: int, most: float = LARGE) -> None:
        self.policy, self.random = policy, random.Random(seed)
        self.cache = TurnCache(most)
        self.contexts = [self.words(1, 20) for _ in range(ROWS)]
        self.contexts[1] = self.contexts[0]
        #: The largest difference of a log-probability.
        self.apart = 0.0

    def words(self, least: int, most: int) -> tuple[int, ...]:
        """Some ids."""
        return tuple(self.random.randrange(4, 290) for _ in range(self.random.randrange(least, most)))

    def rewritten(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The ids with something else, or nothing, in the place of some."""
        at = self.random.randrange(len(ids))
        return (*ids[:at], *self.words(0, 3), *ids[at + 3 :]) or (5,)

    def turn(self, number: int) -> tuple[list[Sampled], list[Sampled]]:
        """What rows say, without and with the cache."""
        draw, policy = self.random, self.policy
        live = [row for row in range(ROWS) if draw.random() < 0.8]
        draw.shuffle(live)
        for row in live:
            if draw.random() < 0.2:
                self.contexts[row] = self.rewritten(self.contexts[row])
        policy.model.generation_config.eos_token_id = [draw.randrange(300) for _ in range(30)]
        contexts, rooms = [self.contexts[row] for row in live], [draw.randrange(8) for _ in live]
        drawn: dict[str, Any] = {
            "temperature": draw.choice([0, 1.0, 0.7]),
            "seeds": [10 * number + row for row in live],
            "rows_at_once": draw.choice([2, 4, 100]),
        }
        going = [draw.random() < 0.9 for _ in live]
        plain = continue_contexts(policy, contexts, rooms, **drawn)
        kept = continue_contexts(policy, contexts, rooms, kept=self.cache, owners=live, goes_on=going, **drawn)
        for row, one in zip(live, plain, strict=True):
            self.contexts[row] = (*self.contexts[row], *one.ids, *self.words(0, 6))
        return plain, kept


def check(plain: list[Sampled], kept: list[Sampled]) -> None:
    for one, other in zip(plain, kept, strict=True):
        assert (one.ids, one.truncated) == (other.ids, other.truncated)
        assert other.logprobs == pytest.approx(one.logprobs, abs=1e-5)


def held(cache: TurnCache) -> int:
    """Bytes of memory that would be free without the cache: a view holds all that it is a view of."""
    tables = [table for one in cache._kept.values() for table in one.tables]
    return sum(table.untyped_storage().nbytes() for table in tables)


@pytest.mark.parametrize("form", FORMS)
def test_random_conversations_say_the_same(form: str, make_form: Make) -> None:
    policy, spared = make_form(form), 0
    for seed in range(20):
        talk = Talk(policy, seed, LARGE if seed % 2 else 40_000)
        for number in range(4):
            check(*talk.turn(number))
            assert held(talk.cache) == talk.cache.size <= (LARGE if seed % 2 else 40_000)
        spared += talk.cache.spared
        talk.cache.release(range(ROWS))
        assert (len(talk.cache), talk.cache.size) == (0, 0)
    assert (spared > 1000) == (form != "mistral")


@pytest.mark.parametrize("form", FORMS[:-1])
def test_a_turn_computes_what_is_new(form: str, make_form: Make) -> None:
    """All but the last sampled token is known; of a prefix that is written anew, what comes before the first change."""
    policy, cache = make_form(form), TurnCache(LARGE)
    asked: dict[str, Any] = {"temperature": 0, "kept": cache}
    prompt = tuple(range(20, 60))
    policy.model.generation_config.eos_token_id = 299
    (said,) = continue_contexts(policy, [prompt], [5], owners=["a"], goes_on=[True], **asked)
    assert (cache.computed, cache.spared) == (40, 0)
    context = (*prompt, *said.ids, 7, 8, 9)
    (again,) = continue_contexts(policy, [context], [5], owners=["a"], goes_on=[True], **asked)
    assert (cache.computed, cache.spared) == (40 + 4, 44)
    rewritten = (*context[:42], 3, *again.ids)
    cache.computed = cache.spared = 0
    (found,) = continue_contexts(policy, [rewritten], [5], owners=["a"], goes_on=[False], **asked)
    assert (cache.computed, cache.spared) == (len(rewritten) - 42, 42)
    assert len(cache) == 0
    check(continue_contexts(policy, [rewritten], [5], temperature=0), [found])


@pytest.mark.parametrize("form", ["qwen3", "gpt2"])
def test_a_context_that_is_known_whole_is_said_again(form: str, make_form: Make) -> None:
    """Its last token is computed all the same: what follows it is asked for. So it is with a shorter one."""
    policy, cache = make_form(form), TurnCache(LARGE)
    asked: dict[str, Any] = {"temperature": 0, "kept": cache, "owners": ["a"], "goes_on": [True]}
    policy.model.generation_config.eos_token_id = 299
    prompt = tuple(range(20, 60))
    first = continue_contexts(policy, [prompt], [8], **asked)
    for context in (prompt, prompt[:30]):
        cache.computed = 0
        found = continue_contexts(policy, [context], [8], **asked)
        assert cache.computed == 1
        check(continue_contexts(policy, [context], [8], temperature=0), found)
    assert continue_contexts(policy, [prompt], [8], temperature=0)[0].ids == first[0].ids


@pytest.mark.parametrize("form", ["llama", "gpt2"])
def test_copies_of_a_context_take_the_longest_that_is_known(form: str, make_form: Make) -> None:
    policy, cache = make_form(form), TurnCache(LARGE)
    policy.model.generation_config.eos_token_id = 299
    context = tuple(range(20, 60))
    asked: dict[str, Any] = {"temperature": 0, "kept": cache, "owners": ["a", "b", "c"], "goes_on": [True] * 3}
    continue_contexts(policy, [context[:9], (*context[:25], 3, 4), context[:2]], [1, 1, 1], **asked)
    cache.computed = 0
    found = continue_contexts(policy, [context] * 3, [4, 4, 4], **asked)
    assert cache.computed == 40 - 25
    check(continue_contexts(policy, [context] * 3, [4, 4, 4], temperature=0), found)
    assert {"a", "b", "c"} == set(cache.owners)


@pytest.mark.parametrize("form", ["llama", "llama by transformers"])
@pytest.mark.parametrize("change", ["fused step", "set weights", "one number", "a buffer"])
def test_keys_of_other_weights_are_never_used(form: str, change: str, make_form: Make) -> None:
    """The optimiser's step above all: on the CPU it is fused, and torch's counters of versions do not hear of it."""
    policy, cache = make_form(form), TurnCache(LARGE)
    contexts = [tuple(range(20, 60)), (9, 8, 7)]
    asked: dict[str, Any] = {"temperature": 0, "kept": cache, "owners": [1, 2], "goes_on": [True, True]}
    policy.model.generation_config.eos_token_id = 299
    said = continue_contexts(policy, contexts, [6, 6], **asked)
    contexts = [(*one, *more.ids, 4) for one, more in zip(contexts, said, strict=True)]
    before = weights_of(policy)
    model = policy.model
    if change == "fused step":
        optimiser = adamw(model, 0.0, (0.9, 0.95))
        optimiser.param_groups[0]["lr"] = 0.05
        model(input_ids=torch.tensor([contexts[0]])).logits.logsumexp(-1).sum().backward()
        optimiser.step()
        optimiser.zero_grad()
    elif change == "set weights":
        set_weights(model, {name: 1.1 * one for name, one in weights(model).items()})
    elif change == "one number":
        model.model.layers[0].self_attn.k_proj.weight.data[3, 4] += 1.0
    else:
        model.model.rotary_emb.inv_freq.mul_(1.5)
    assert weights_of(policy) != before
    cache.computed = cache.spared = 0
    found = continue_contexts(policy, contexts, [6, 6], **asked)
    assert cache.spared == 0
    assert cache.computed == sum(map(len, contexts))
    check(continue_contexts(policy, contexts, [6, 6], temperature=0), found)
    contexts = [(*one, *more.ids, 4) for one, more in zip(contexts, found, strict=True)]
    continue_contexts(policy, contexts, [6, 6], **asked)
    assert cache.spared > 0


def test_weights_of_two_bytes_are_told_apart(make_policy: Make) -> None:
    policy = make_policy("llama")
    to_bfloat16(policy.model)
    before = weights_of(policy)
    assert weights_of(policy) == before
    with torch.no_grad():
        policy.model.model.norm.weight[3] *= 2
    assert weights_of(policy) != before


def test_keys_of_one_form_are_none_of_the_other(make_policy: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, cache = make_policy("llama"), TurnCache(LARGE)
    asked: dict[str, Any] = {"temperature": 0, "kept": cache, "owners": [1], "goes_on": [True]}
    context = tuple(range(20, 60))
    for few in (True, False, True):
        monkeypatch.setattr(generation, "understood", lambda policy, few=few: few)
        found = continue_contexts(policy, [context], [3], **asked)
        check(continue_contexts(policy, [context], [3], temperature=0), found)
        context = (*context, *found[0].ids, 5)
    assert cache.spared == 0


def test_bytes_are_bounded_and_counted() -> None:
    """The first comes first, and what is released makes room for others."""
    table = torch.zeros(2, 4, 10, 8)

    class Model:
        def parameters(self) -> list[torch.Tensor]:
            return [torch.ones(3)]

        buffers = parameters

    policy: Any = evolve(POLICY, model=Model())
    cache = TurnCache(3.5 * table.nbytes)
    for owner in range(5):
        fits = cache.claim(policy, table.nbytes)
        assert fits == (owner < 3)
        if fits:
            cache.put(owner, Kept(tuple(range(10)), (table,), few=True))
    assert (cache.size, cache.owners) == (3 * table.nbytes, [0, 1, 2])
    cache.release([1, 7])
    assert (cache.size, 1 in cache, 2 in cache) == (2 * table.nbytes, False, True)
    assert cache.claim(policy, table.nbytes)
    cache.put(0, Kept((1, 2), (table,), few=True))  # in place of what is there
    assert (cache.size, len(cache)) == (2 * table.nbytes, 2)
    assert cache.take(0, (3, 4), few=True) is None
    found = cache.take(2, (0, 1, 2, 99, 4), few=True)
    assert found is not None
    assert (found.ids, found.tables[0].shape) == ((0, 1, 2), (2, 4, 3, 8))
    assert (cache.size, len(cache)) == (0, 0)


POLICY = Policy(None, None, torch.device("cpu"))


def test_how_far_ids_are_the_same() -> None:
    assert in_common((1, 2, 3), (1, 2, 3, 4)) == in_common((1, 2, 3, 4), (1, 2, 3)) == 3
    assert in_common((1, 2, 3), (1, 9, 3)) == 1
    assert in_common((1,), (2,)) == in_common((), (2,)) == 0


def test_models_whose_keys_cannot_be_kept_are_computed_in_full(make_policy: Make) -> None:
    assert all(can_keep(make_policy(kind)) for kind in ("llama", "qwen2", "qwen3", "gpt2"))
    assert not can_keep(make_policy("mistral"))  # a sliding window
    scaled = make_policy("llama")
    scaled.model.model.rotary_emb.rope_type = "yarn"
    assert can_keep(scaled)
    for moving in ("dynamic", "longrope", {"full_attention": "dynamic"}):
        scaled.model.model.rotary_emb.rope_type = moving
        assert not can_keep(scaled)


@pytest.mark.parametrize("kind", ["gpt_neox", "mpt", "bloom"])
def test_models_of_other_builds_go_by_transformers(kind: str, make_policy: Make) -> None:
    """Keys of which a quarter is turned; biases by where a key stands in the cache; biases by the sum of the mask."""
    torch.manual_seed(3)
    sizes = {"vocab_size": 300, "initializer_range": 0.2}
    model: Any
    if kind == "gpt_neox":
        wide = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
        model = GPTNeoXForCausalLM(GPTNeoXConfig(**sizes, **wide))
    elif kind == "mpt":
        model = MptForCausalLM(MptConfig(**sizes, d_model=32, n_heads=4, n_layers=2))
    else:
        model = BloomForCausalLM(BloomConfig(**sizes, hidden_size=32, n_head=4, n_layer=2))
    policy = evolve(make_policy("gpt2"), model=model.eval())
    assert can_keep(policy)
    for seed in range(5):
        talk = Talk(policy, seed)
        for number in range(4):
            check(*talk.turn(number))
        assert talk.cache.spared > 50
