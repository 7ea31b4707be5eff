"""Completions of one prompt that begin alike, as a tree: what several of them begin with is computed once.

A node is a context, a prompt and what was written after it so far; an edge is a token after it. Samples of a group are
often the same for many tokens, or altogether, and then have fewer contexts than tokens. Sorted, each completion has in
common with those before it what it has in common with the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from attrs import field, frozen
from torch import Tensor

from callwright_plugins.local_trainer.forward.batches import Ids
from callwright_plugins.local_trainer.forward.turn_cache import in_common

#: A tree has to cost less than this share of what its completions cost apart.
_WORTH: Final = 0.8


@frozen(eq=False)
class Tree:
    """Contexts of one prompt in an order in which each comes after those that it continues.

    ``written``: how many tokens after the prompt each has, and ``tokens`` the last of them (``None``: none, so that it
    is the prompt's last). ``runs``: first and end of nodes that continue one another, and the node that the first one
    continues.
    """

    owner: int
    tokens: list[int | None] = field(factory=list)
    written: list[int] = field(factory=list)
    runs: list[tuple[int, int, int]] = field(factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def chain(self) -> bool:
        """Whether each node continues all before it."""
        return len(self.runs) == 1

    def seen(self, size: int) -> Tensor:
        """Which nodes each one sees, itself included, ``[size, size]``; places beyond the tree see all before them."""
        table = torch.ones(size, size, dtype=torch.bool).tril_()
        for first, end, before in self.runs[1:]:
            table[first:end, :first] = table[before, :first]
        return table


@frozen(eq=False)
class Edges:
    """Each different token after a context: its tree, its node there and itself; ``entries``: for all tokens of all
    completions, one after the other, which edge it is."""

    trees: list[int]
    nodes: list[int]
    tokens: list[int]
    entries: list[int]


def grown(
    owners: Sequence[int], completions: Sequence[Ids], prompts: Sequence[int], width: int
) -> tuple[list[Tree], Edges]:
    """Trees of completions whose prompts, of ``prompts`` tokens, have the indices ``owners``; one of at least a node.

    Those of a prompt are one tree where that costs clearly less than one for each: a tree has fewer nodes, but all of
    them stand in one square table of attention. A node counts as ``width`` places of the table, the model's width.
    """
    trees: list[Tree] = []
    edges = Edges([], [], [], [])
    of_completion: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    by_owner: dict[int, set[tuple[int, ...]]] = {}
    for owner, completion in zip(owners, completions, strict=True):
        if completion:
            by_owner.setdefault(owner, set()).add(tuple(completion))
    for owner, different in by_owner.items():
        ordered = sorted(different)
        shared = [0, *map(in_common, ordered, ordered[1:])]
        nodes = sum(map(len, ordered)) - sum(min(k + 1, len(one)) for k, one in zip(shared[1:], ordered, strict=False))
        apart = sum(len(one) * (width + prompts[owner] + len(one)) for one in ordered)
        together = nodes * (width + prompts[owner] + nodes) < _WORTH * apart
        path: list[int] = []
        following: list[int] = []
        for common, last, one in zip(shared, [(), *ordered], ordered, strict=False):
            if not path or not together:
                trees.append(Tree(owner))
                path, following, begin, known = [], [], 0, 0
            else:
                begin, known = min(common + 1, len(last)), common
            tree = trees[-1]
            first, end = len(tree), len(tree) + len(one) - begin
            tree.runs.append((first, end, path[begin - 1] if begin else 0))
            tree.tokens.extend(one[begin - 1 : len(one) - 1] if begin else (None, *one[:-1]))
            tree.written.extend(range(begin, len(one)))
            path = [*path[:begin], *range(first, end)]
            count = len(edges.tokens)
            following = [*following[:known], *range(count, count + len(one) - known)]
            edges.trees.extend([len(trees) - 1] * (len(one) - known))
            edges.nodes.extend(path[known:])
            edges.tokens.extend(one[known:])
            of_completion[owner, one] = following
    for owner, completion in zip(owners, completions, strict=True):
        if completion:
            edges.entries.extend(of_completion[owner, tuple(completion)])
    if not trees:
        trees.append(Tree(owners[0], [None], [0], [(0, 1, 0)]))
    return trees, edges
