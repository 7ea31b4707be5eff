"""Which demonstrations each step shows, drawn without state: any step can be asked for at any time."""

from __future__ import annotations

import math

from callwright_plugins.local_trainer.options import SupervisedOptions
from callwright_plugins.local_trainer.randomness import python_generator


class Epochs:
    """Pass after pass over ``count`` demonstrations, each in an order of its own, cut into batches.

    A batch may hold the end of one pass and the beginning of the next, so that all are full but the last one, which
    ends where ``epochs`` do. With ``steps`` every batch is full.
    """

    def __init__(self, count: int, options: SupervisedOptions, seed: int) -> None:
        self.count, self.batch, self._seed = count, options.batch, seed
        #: How many demonstrations are shown in all, repetitions counted.
        self.shown = max(1, round(options.epochs * count)) if options.steps is None else options.steps * options.batch
        #: How many optimiser steps there are.
        self.steps = math.ceil(self.shown / options.batch)
        warm = options.warm_up
        #: In how many of them the learning rate rises.
        self.warm_up = warm if isinstance(warm, int) else round(warm * self.steps)
        self._order: tuple[int, list[int]] = (-1, [])

    def rows(self, step: int) -> list[int]:
        """The positions of the demonstrations of a step, counted from 0."""
        first = step * self.batch
        places = range(first, min(first + self.batch, self.shown))
        return [self._of(place // self.count)[place % self.count] for place in places]

    def done(self, step: int) -> float:
        """How many passes are done after a step."""
        return min((step + 1) * self.batch, self.shown) / self.count

    def _of(self, epoch: int) -> list[int]:
        if self._order[0] != epoch:
            order = list(range(self.count))
            python_generator(self._seed, "epoch", epoch).shuffle(order)
            self._order = (epoch, order)
        return self._order[1]
