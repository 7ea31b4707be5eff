"""Which rows each process trains on, and what each part's loss is multiplied by, so that the sum is the recipe's loss.

TRL divides a loss by what one process has in one micro-batch; an algorithm divides by what the whole mini-batch has.
The factor between the two makes masked rollouts, uneven micro-batches and any number of processes exact.
"""

from __future__ import annotations

import torch
from attrs import frozen

from callwright.training.algorithm import Algorithm
from callwright_plugins.trl_trainer.options import Options
from callwright_plugins.trl_trainer.rollouts import Collected

#: What stands for a completion where a process has fewer than another: a row without a trained token.
Row = tuple[int, int] | None


@frozen(eq=False)
class MicroBatch:
    """A part of one process: its rows as (group, rollout), and the tokens that all processes have in this part."""

    rows: list[Row]
    tokens: int


@frozen(eq=False)
class MiniBatch:
    """What one optimiser step is taken on. ``active``: whether there is anything to learn from."""

    parts: list[MicroBatch]
    active: bool
    normaliser: float
    tokens: int


def shared_out(
    collected: Collected, algorithm: Algorithm, options: Options, width: int, process: int
) -> list[MiniBatch]:
    """``options.mini_batches`` mini-batches of whole groups, each with the parts of one ``process``.

    ``width`` is how long a completion may be, in tokens. Rows are sorted by length and dealt out in turn, so that no
    process has more to do than another.
    """
    size = max(1, -(-len(collected.groups) // options.mini_batches))
    return [
        _mini(collected, algorithm, options, width, process, number * size, (number + 1) * size)
        for number in range(options.mini_batches)
    ]


def _mini(
    collected: Collected, algorithm: Algorithm, options: Options, width: int, process: int, begin: int, end: int
) -> MiniBatch:
    groups = collected.groups

    def ids(row: tuple[int, int]) -> int:
        return len(groups[row[0]].rollouts[row[1]].ids)

    kept = [(row, column) for row, column in collected.valid.nonzero().tolist() if begin <= row < end]
    rows = sorted((row for row in kept if ids(row)), key=lambda row: (ids(row), row))
    masks = [groups[row].rollouts[column].mask for row, column in rows]
    wide = max([width, *map(len, masks)])
    mask = torch.zeros(len(rows), wide)
    for number, one in enumerate(masks):
        mask[number, : len(one)] = torch.tensor(one, dtype=torch.float32)
    tokens = int(mask.sum())
    normaliser = algorithm.normaliser(mask)
    share = options.part // options.micro_batches
    parts = []
    for part in range(options.micro_batches):
        some = slice(part * share, (part + 1) * share)
        everyone = [rows[other :: options.processes][some] for other in range(options.processes)]
        mine: list[Row] = [*everyone[process]]
        mine += [None] * (share - len(mine))
        heard = sum(sum(groups[row].rollouts[column].mask) for theirs in everyone for row, column in theirs)
        parts.append(MicroBatch(mine, heard))
    return MiniBatch(parts, tokens > 0, normaliser, tokens)
