"""Completions that begin alike: contexts are computed once, and all that is said of tokens is as without sharing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from callwright_plugins.local_trainer.forward import likelihood, ragged
from callwright_plugins.local_trainer.forward.likelihood import FullSequences, Prefix
from callwright_plugins.local_trainer.forward.trees import Edges, Tree, grown
from callwright_plugins.local_trainer.models.policy import Policy

Make = Callable[[str], Policy]
PROMPTS = [(9, 30, 41), (17, 3), (250, 31, 8, 77, 120, 200, 33, 12)]
#: Equal ones, one that another begins with, an empty one, one alone, the same of another prompt.
ROWS: list[tuple[int, tuple[int, ...]]] = [
    (2, (4, 5, 6, 7)),
    (0, (9, 10, 11)),
    (2, (4, 5, 6, 7)),
    (2, (4, 5)),
    (1, ()),
    (2, (4, 5, 8)),
    (0, (9, 10, 11, 12)),
    (2, (3,)),
    (1, (4, 5, 6, 7)),
    (2, (4, 5, 6, 9, 9, 9)),
]


def rows_of(rng: random.Random) -> list[tuple[int, tuple[int, ...]]]:
    """Completions of few different tokens, so that many begin alike."""
    lengths = [rng.randrange(7) for _ in range(rng.randrange(1, 14))]
    return [(rng.randrange(3), tuple(rng.randrange(40, 42) for _ in range(length))) for length in lengths]


def contexts(tree: Tree) -> list[tuple[int, ...]]:
    """What was written before each node, read off what it sees."""
    seen = tree.seen(len(tree) + 2)
    assert torch.equal(seen[len(tree) :], torch.ones_like(seen).tril()[len(tree) :])
    found = []
    for node in range(len(tree)):
        assert not seen[node, node + 1 :].any()
        tokens = [tree.tokens[place] for place in seen[node, : len(tree)].nonzero().squeeze(1).tolist()]
        assert tokens[0] is None
        found.append(tuple(token for token in tokens[1:] if token is not None))
        assert len(found[-1]) == len(tokens) - 1 == tree.written[node]
    return found


@pytest.mark.parametrize("width", [1, 1_000_000])
def test_trees_are_the_contexts_of_all_tokens(width: int) -> None:
    rng = random.Random("trees")
    none: list[tuple[int, tuple[int, ...]]] = [(1, ())]
    for rows in (ROWS, none, *(rows_of(rng) for _ in range(200))):
        owners, completions = [owner for owner, _ in rows], [completion for _, completion in rows]
        trees, edges = grown(owners, completions, [2, 1, 7], width)
        known = [contexts(tree) for tree in trees]
        said = [(trees[tree].owner, known[tree][node]) for tree, node in zip(edges.trees, edges.nodes, strict=True)]
        pairs = [(*before, token) for before, token in zip(said, edges.tokens, strict=True)]
        assert [pairs[entry] for entry in edges.entries] == [
            (owner, completion[:place], completion[place])
            for owner, completion in rows
            for place in range(len(completion))
        ]
        whole = [tree.owner for tree in trees]
        different = {owner: {one for mine, one in rows if mine == owner and one} for owner in set(owners)}
        assert all(whole.count(owner) in (1, len(different[owner])) for owner in set(whole))
        if any(completions):
            assert {(tree.owner, one) for tree, some in zip(trees, known, strict=True) for one in some} == set(said)
            assert all(len(set(some)) == len(some) for some in known)
        if rows is ROWS and width > 1:
            assert whole.count(2) == 1


def test_who_shares_nothing_has_a_tree_of_its_own() -> None:
    trees, edges = grown([0, 0, 0], [(1, 2, 3), (4, 5), (1, 2, 3)], [5], 1_000_000)
    assert [len(tree) for tree in trees] == [3, 2]
    assert edges.entries == [0, 1, 2, 3, 4, 0, 1, 2]


def trained(
    policy: Policy, sequences: type[Prefix] | type[FullSequences], rows: Sequence[tuple[int, tuple[int, ...]]]
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Log-probabilities, entropies, and the gradients of something that each token has a weight of its own in."""
    policy.model.zero_grad()
    prefix = sequences(policy, PROMPTS)
    found = prefix.likelihood([owner for owner, _ in rows], [one for _, one in rows], 0.8, "trained")
    assert found.entropy is not None
    weights = torch.linspace(-1, 2, found.logprobs.numel()).view(found.logprobs.shape)
    loss = (weights * found.mask * (found.logprobs.square() + found.entropy)).sum()
    torch.autograd.backward(loss)
    prefix.backward()
    gradients = {name: one.grad.clone() for name, one in policy.model.named_parameters() if one.grad is not None}
    return found.logprobs.detach(), found.entropy.detach(), gradients


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("copied", [1 << 20, 0], ids=["copied", "behind"])
def test_likelihood_and_gradients(
    kind: str, apart: bool, copied: int, make_policy: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ragged, "_COPIED", copied)
    if apart:  # as if no completions of a prompt were worth a tree
        monkeypatch.setattr(likelihood, "grown", lambda *given: _chains(*given[:3]))
    policy = make_policy(kind)
    rng = random.Random("gradients")
    for rows in (ROWS, rows_of(rng), rows_of(rng)):
        logprobs, entropies, gradients = trained(policy, Prefix, rows)
        expected = trained(policy, FullSequences, rows)
        torch.testing.assert_close(logprobs, expected[0], atol=2e-5, rtol=0)
        torch.testing.assert_close(entropies, expected[1], atol=2e-5, rtol=0)
        largest = max(float(one.abs().max()) for one in expected[2].values())
        assert gradients.keys() == expected[2].keys()
        for name, gradient in gradients.items():
            # Tokens are few and added up in another order, so that some sums nearly cancel: each of these forms is up
            # to 8e-6 away from what float64 comes to.
            assert float((gradient - expected[2][name]).abs().max()) <= (3e-6 if copied else 6e-6) * largest, name


def _chains(
    owners: Sequence[int], completions: Sequence[Sequence[int]], prompts: Sequence[int]
) -> tuple[list[Tree], Edges]:
    return grown(owners, completions, prompts, -1_000_000)
