"""Chains: tools in an order in which each needs, or is told something by, the one before."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import Final

from callwright.errors import UsageError
from callwright_plugins.synthesis.graph.edges import Graph

#: How much a pair that no chain has used yet counts against one that a chain has used.
_UNCOVERED: Final = 8.0


def chains(
    graph: Graph, count: int, *, shortest: int = 2, longest: int = 5, seed: int = 0
) -> Iterator[tuple[str, ...]]:
    """Walks over the graph, of ``shortest`` to ``longest`` tools, weighted towards pairs that none has used yet.

    No tool comes twice in one chain. Lengths take turns; a walk that comes to an end before its length is as long as
    it is, if that is long enough. The same seed gives the same chains. Nothing is yielded for a graph without edges.
    Raises :class:`callwright.UsageError` for lengths that are none.
    """
    if not 2 <= shortest <= longest:
        raise UsageError(f"a chain has two tools or more, so lengths from {shortest} to {longest} are none")
    rng = Random(f"chains/{graph.environment}/{seed}")
    network = graph.network()
    following = {
        tool: sorted(set(network.successors(tool)) - {tool})
        for tool in sorted(network.nodes)
    }  # fmt: skip
    following = {tool: others for tool, others in following.items() if others}
    if not following:
        return
    used: dict[tuple[str, str], int] = {}
    made = tried = 0
    while made < count and tried < 50 * count:
        length = shortest + tried % (longest - shortest + 1)
        tried += 1
        walk = _walk(following, used, length, rng)
        if len(walk) < shortest:
            continue
        made += 1
        for pair in itertools.pairwise(walk):
            used[pair] = used.get(pair, 0) + 1
        yield tuple(walk)


def _walk(following: dict[str, list[str]], used: dict[tuple[str, str], int], length: int, rng: Random) -> list[str]:
    starts = list(following)
    fresh = [float(sum((tool, other) not in used for other in following[tool])) for tool in starts]
    walk = rng.choices(starts, [1.0 + _UNCOVERED * one for one in fresh])
    while len(walk) < length:
        further = [tool for tool in following.get(walk[-1], ()) if tool not in walk]
        if not further:
            break
        weights = [_UNCOVERED if (walk[-1], tool) not in used else 1.0 / used[walk[-1], tool] for tool in further]
        walk += rng.choices(further, weights)
    return walk
