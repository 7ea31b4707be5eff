"""Splits: which compositions training and evaluation may draw from, and sequences of tasks made on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from callwright.walk.tasks import Task
from callwright_plugins.toolworld import NAME
from callwright_plugins.toolworld.families import FAMILIES
from callwright_plugins.toolworld.family import Family

Compositions = tuple[dict[str, Any], ...]

DEPTHS: Final = range(7)
#: Share of a family's compositions that evaluation keeps for itself.
HELD_OUT: Final = 0.25
#: A family with fewer compositions has none to spare: without it in training, its whole structure would be missing.
_FEWEST: Final = 3


@cache
def divided(family: Family) -> tuple[Compositions, Compositions]:
    """The compositions of a family for training and for evaluation. A hash of each decides, and no seed."""

    def rank(values: dict[str, Any]) -> bytes:
        return hashlib.sha256(f"{NAME}|{family.key(values)}".encode()).digest()

    ordered = sorted(family.compositions(), key=rank)
    kept = max(1, int(len(ordered) * HELD_OUT)) if len(ordered) >= _FEWEST else 0
    return tuple(ordered[kept:]), tuple(ordered[:kept])


@cache
def by_domain(depth: int) -> Mapping[str, tuple[Family, ...]]:
    """The families of a depth, by domain."""
    domains: dict[str, tuple[Family, ...]] = {}
    for family in FAMILIES:
        if family.depth == depth:
            domains[family.domain] = (*domains.get(family.domain, ()), family)
    return dict(sorted(domains.items()))


def in_turn(sources: Sequence[Iterator[Task]]) -> Iterator[Task]:
    """One task of each source after the other, without those that have run out."""
    queue = list(sources)
    while queue:
        source = queue.pop(0)
        task = next(source, None)
        if task is not None:
            yield task
            queue.append(source)
