"""Which tasks of a split are asked where not all are: as many of each group, whatever order a corpus has them in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b

from callwright.walk.tasks import KnowsDepths, Task, depths_of


def even_draw(tasks: Sequence[Task], limit: int) -> list[int]:
    """Positions of ``limit`` tasks, ascending: of each depth and, within it, each structure as many as there can be.

    Groups take turns, the shallowest first, and give their tasks in an order that hangs on the positions alone. So the
    draw is the same everywhere, and every larger one of the same split holds it. A split that makes its tasks on demand
    (:class:`callwright.walk.tasks.KnowsDepths`) is drawn by depth, so that only those are made that are asked.
    """
    if limit >= len(tasks):
        return list(range(len(tasks)))
    depths = depths_of(tasks)
    lazy = isinstance(tasks, KnowsDepths)
    order = sorted(range(len(tasks)), key=_shuffled)
    groups: dict[int, dict[Hashable, list[int]]] = {}
    for place in order:
        inner = groups.setdefault(depths[place], {})
        inner.setdefault("" if lazy else tasks[place].structure, []).append(place)
    drawn: list[int] = []
    by_depth = [_in_turns([inner[key] for key in sorted(inner, key=str)]) for _, inner in sorted(groups.items())]
    for place in _in_turns(by_depth):
        if len(drawn) == limit:
            break
        drawn.append(place)
    return sorted(drawn)


def _in_turns(queues: Sequence[Sequence[int]]) -> list[int]:
    """One of each queue, then the next of each, while they last."""
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _shuffled(place: int) -> bytes:
    return blake2b(place.to_bytes(8, "big"), digest_size=8).digest()
