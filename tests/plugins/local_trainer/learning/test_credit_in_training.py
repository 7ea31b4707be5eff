"""Penalties that land on blamed tokens, in the local trainer: one step by hand, and a run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from attrs import evolve
from torch import Tensor

import callwright as cw
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.learning.update import Batch, descend, make_batch, prepare
from callwright_plugins.local_trainer.models.policy import Policy, weights
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO

BATCH = Batch(
    [(9, 30, 41), (17, 3, 8, 8)],
    [0, 0, 0, 1, 1, 1],
    [(4, 5, 6, 7, 2), (8, 2), (9, 10, 2), (44, 2), (3, 5, 1, 99, 2), (60, 2)],
    torch.tensor([1.0, -0.5, -0.5, 0.9, -0.3, -1.2]),
    blame=[(1, 0, 0, 0, 0), (1, 0), (0, 1, 1), (), (0, 1, 0, 0, 0), ()],
)


def trained(policy: Policy, batch: Batch, algorithm: Any, **given: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    mine = evolve(policy, model=copy.deepcopy(policy.model))
    options = Options(**{"clip_norm": 1e9, **given})
    optimiser: Any = torch.optim.SGD(mine.model.parameters(), lr=0.0)
    prepared = prepare(mine, None, algorithm, batch, options)
    return weights(mine.model), descend(mine, algorithm, optimiser, prepared, options, 0.1)


def test_a_step_places_penalties(make_policy: Callable[[str], Policy]) -> None:
    """A sequence whose tokens were trained on apart, each with its own advantage, ends in the same weights."""
    policy = make_policy("llama")
    placed, figures = trained(policy, BATCH, BatchNormalisedGRPO(kl_weight=0.0, credit_share=1.0))
    assert figures["penalties_placed"] == 3 / 6
    where = {1: {0: -1.0}, 2: {1: -0.75, 2: -0.75}, 4: {1: -1.5}}  # all of a penalty, on the tokens that are blamed
    rows: list[tuple[int, tuple[int, ...], float, tuple[int, ...]]] = []
    for row, completion in enumerate(BATCH.completions):
        told = where.get(row)
        if told is None:
            rows.append((row, completion, float(BATCH.advantages[row]), (1,) * len(completion)))
            continue
        for token in range(len(completion)):
            one = tuple(int(place == token) for place in range(len(completion)))
            rows.append((row, completion, told.get(token, 0.0), one))
    apart = Batch(
        BATCH.prompts,
        [BATCH.owners[row] for row, *_ in rows],
        [completion for _, completion, *_ in rows],
        torch.tensor([worth for *_, worth, _ in rows]),
        [one for *_, one in rows],
    )
    expected, _ = trained(policy, apart, BatchNormalisedGRPO(kl_weight=0.0))
    for name, tensor in expected.items():
        torch.testing.assert_close(placed[name], tensor, atol=1e-6, rtol=1e-5)
    plain, figures = trained(policy, BATCH, BatchNormalisedGRPO(kl_weight=0.0))
    assert "penalties_placed" not in figures
    assert max(float((plain[name] - tensor).abs().max()) for name, tensor in placed.items()) > 1e-4
    parts, _ = trained(policy, BATCH, BatchNormalisedGRPO(kl_weight=0.0, credit_share=1.0), tokens_per_micro_batch=12)
    for name, tensor in placed.items():
        torch.testing.assert_close(parts[name], tensor, atol=1e-5, rtol=1e-4)


TEXT = """<think>Find them, then filter.</think>
<tool_call return="one">
{"0": {"FindRestaurants": {"location": "Lima"}}, "1": {"FilterByOpen": {"restaurants": "API_RESPONSE_0", "hours": 15}}}
</tool_call>"""


def test_the_batch_of_a_step_says_which_sampled_tokens_are_blamed(make_policy: Callable[[str], Policy]) -> None:
    policy = make_policy("llama")
    attempt = cw.Attempt(cw.corpus("toolworld-mini-v1")["evaluation"][16], TEXT, cw.parser("json"))
    ids = policy.completion_ids(TEXT)  # bytes and a few words, with the end token
    sampled = Sampled(ids, (-0.5,) * len(ids), truncated=False)
    episode = SimpleNamespace(attempt=attempt, response_ids=ids, ranges=((0, len(ids)),))
    reward = cw.reward("tier").score_attempt(attempt)
    rollout = SimpleNamespace(sampled=sampled, lines=None, episode=episode, reward=reward)
    group: Any = SimpleNamespace(prompt=(1, 2), rollouts=(rollout,))
    batch = make_batch([group], torch.tensor([[-1.0]]), torch.tensor([[True]]), blaming=policy.written)
    assert batch.blame is not None
    (marks,) = batch.blame
    blamed = policy.written([one for one, mark in zip(ids, marks, strict=True) if mark])
    assert blamed.startswith("FilterByOpen")
    assert "hours" in blamed
    assert "Lima" not in blamed
    assert marks[-1] == 0  # the end token is of no call
    assert make_batch([group], torch.tensor([[-1.0]]), torch.tensor([[True]])).blame is None
    branch = SimpleNamespace(sampled=sampled, lines=(((1, 2), sampled),), episode=episode, reward=reward)
    group = SimpleNamespace(prompt=(1, 2), rollouts=(branch,))
    made = make_batch([group], torch.tensor([[-1.0]]), torch.tensor([[True]]), blaming=policy.written)
    assert made.blame == [()]
