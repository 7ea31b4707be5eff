"""Micro-batches of a number of tokens: which rows are computed together, and that the gradient is that of the whole."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from callwright_plugins.local_trainer.learning import update as learning
from callwright_plugins.local_trainer.learning.critic import make_critic
from callwright_plugins.local_trainer.learning.demonstrations import Example
from callwright_plugins.local_trainer.learning.micro_batches import blocks_by_tokens, by_tokens
from callwright_plugins.local_trainer.learning.supervised import parts, supervised_step
from callwright_plugins.local_trainer.learning.update import Batch, prepare, update
from callwright_plugins.local_trainer.models.policy import Policy, weights
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.ppo import PPO

Make = Callable[[str], Policy]
BATCH = Batch(
    [(9, 30, 41), (17, 3, 8, 8, 60, 61, 62, 63), (5, 6)],
    [0, 0, 0, 1, 1, 1, 2],
    [(4, 5, 6, 7, 2), (8, 2), (9, 10, 2), (44, 2), (3, 5, 1, 99, 2), (60, 2), (7, 7, 7, 7, 7, 7, 2)],
    torch.tensor([1.0, -0.5, -0.5, 0.9, 0.3, -1.2, 0.4]),
)

sizes = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=30)


def padded(rows: Sequence[tuple[int, int]]) -> int:
    return len(rows) * (max(one[0] for one in rows) + max(one[1] for one in rows))


@given(sizes, st.integers(1, 200))
def test_a_part_holds_as_many_tokens_as_it_may(rows: list[tuple[int, int]], most: int) -> None:
    found = list(by_tokens([(row, *size) for row, size in enumerate(rows)], most))
    assert [row for part in found for row in part] == list(range(len(rows)))
    for part, following in zip(found, [*found[1:], []], strict=False):
        assert len(part) == 1 or padded([rows[row] for row in part]) <= most
        assert not following or padded([rows[row] for row in [*part, following[0]]]) > most


@given(sizes, st.data(), st.integers(1, 200))
def test_blocks_have_every_row_once_beside_its_prompt(
    rows: list[tuple[int, int]], data: st.DataObject, most: int
) -> None:
    prompts = [before for before, _ in rows]
    owners = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=40)) if rows else []
    lengths = [1 + row % 7 for row in range(len(owners))]
    blocks = list(blocks_by_tokens(prompts, owners, lengths, most))
    assert sorted(owner for together, _ in blocks for owner in together) == sorted(set(owners))
    assert sorted(row for _, found in blocks for part in found for row in part) == list(range(len(owners)))
    for together, found in blocks:
        assert {owners[row] for part in found for row in part} == set(together)
        assert len(together) == 1 or padded([(prompts[owner], 0) for owner in together]) <= most
        for part in found:
            assert len(part) == 1 or padded([(prompts[owners[row]], lengths[row]) for row in part]) <= most


def gradient(policy: Policy, algorithm: Any, **given: Any) -> tuple[list[dict[str, Tensor]], dict[str, float]]:
    """Of policy and critic, by a step of plain descent (one unit of rate), and the diagnostics."""
    mine = evolve(policy, model=copy.deepcopy(policy.model))
    some = Options(**{"clip_norm": 1e9, **given})
    critic = make_critic(policy, some)
    with torch.no_grad():
        critic.model.head.weight.fill_(0.05)
    critic = evolve(critic, optimiser=torch.optim.SGD(critic.model.parameters(), lr=0.0))
    models = [mine.model, critic.model]
    before = [{name: tensor.clone() for name, tensor in weights(model).items()} for model in models]
    optimiser: Any = torch.optim.SGD(mine.model.parameters(), lr=0.0)
    reference = evolve(policy, model=copy.deepcopy(policy.model))
    figures = update(mine, reference, algorithm, optimiser, BATCH, some, 1e-3, critic, 1e-3)
    after = [weights(model) for model in models]
    return [
        {name: (old[name] - new[name]) * 1e3 for name in old} for old, new in zip(before, after, strict=True)
    ], figures


@pytest.mark.parametrize("algorithm", [BatchNormalisedGRPO(kl_weight=0.2), PPO(kl_weight=0.3)], ids=["bn-grpo", "ppo"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("tokens", [1, 24, 1000])
def test_parts_of_tokens_add_up_to_the_whole(algorithm: Any, shared: bool, tokens: int, make_policy: Make) -> None:
    policy = make_policy("llama")
    whole, figures = gradient(policy, algorithm, micro_batches=1)
    found, again = gradient(policy, algorithm, tokens_per_micro_batch=tokens, shared_prefix=shared)
    for ours, theirs in zip(found, whole, strict=True):
        for name, expected in theirs.items():
            torch.testing.assert_close(ours[name], expected, atol=2e-3, rtol=1e-3)
    assert again == pytest.approx(figures, rel=1e-3, abs=2e-4)
    assert max(float(one.abs().max()) for one in whole[0].values()) > 0.1


def test_no_forward_pass_has_more_tokens(make_policy: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts and parts alike: the two short prompts are computed together, the long one by itself."""
    policy, algorithm = make_policy("llama"), BatchNormalisedGRPO(kl_weight=0.0)
    seen: list[int] = []

    def watch(_: Any, __: Any, given: dict[str, Any]) -> None:
        if given.get("attention_mask") is not None:  # the two tokens that tell what the head is
            seen.append(given["attention_mask"].numel())

    handle = policy.model.model.register_forward_pre_hook(watch, with_kwargs=True)
    optimiser: Any = torch.optim.SGD(policy.model.parameters(), lr=0.0)
    update(policy, None, algorithm, optimiser, BATCH, Options(tokens_per_micro_batch=23), 0.0)
    handle.remove()
    assert max(seen) <= 23
    prepared = prepare(policy, None, algorithm, BATCH, Options(tokens_per_micro_batch=23))
    parts_of = [(part.prompts, part.rows) for part in prepared.minis[0].parts]
    assert parts_of == [((2, 0), [1, 2]), ((2, 0), [0, 6]), ((1,), [3, 5]), ((1,), [4])]
    assert learning.micro_batches(BATCH, 2) == [[1, 3, 5, 2], [0, 4, 6]]


@pytest.mark.parametrize("tokens", [1, 24, 1000])
def test_supervised_parts_of_tokens_add_up_to_the_whole(tokens: int, make_policy: Make) -> None:
    policy = make_policy("llama")
    shown = [Example(BATCH.prompts[owner], row) for owner, row in zip(BATCH.owners, BATCH.completions, strict=True)]
    found = []
    for given_tokens in (None, tokens):
        mine = evolve(policy, model=copy.deepcopy(policy.model))
        before = {name: tensor.clone() for name, tensor in weights(mine.model).items()}
        optimiser: Any = torch.optim.SGD(mine.model.parameters(), lr=0.0)
        figures = supervised_step(mine, optimiser, shown, 1, 1.0, 1e9, given_tokens)
        found.append(({name: before[name] - tensor for name, tensor in weights(mine.model).items()}, figures))
    for name, expected in found[0][0].items():
        torch.testing.assert_close(found[1][0][name], expected, atol=1e-5, rtol=1e-4)
    assert found[0][1]["loss"] == pytest.approx(found[1][1]["loss"], rel=1e-5)
    assert len(list(parts(shown, 99, tokens))) == {1: 7, 24: 5, 1000: 1}[tokens]
