"""The last completed step: between the rollouts of a step and its rows a signal waits; before, it can be saved."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch

from callwright.machines.interrupts import postponed


class LastStep:
    """Whether the model is as the last completed step left it, and the global random states of that moment."""

    def __init__(self) -> None:
        #: Whether model and optimiser are those of a completed step, whose rows are written.
        self.whole = False
        self._waiting = ExitStack()
        self._random: tuple[Any, Any, Any] | None = None

    def changing(self) -> None:
        """The optimiser steps of a step begin: a first signal waits until its rows are written."""
        self._waiting.enter_context(postponed())
        self.whole = False

    def reached(self) -> None:
        """The rows of a step are written. What waited is answered now: this may raise :class:`KeyboardInterrupt`."""
        self._random = (torch.get_rng_state(), random.getstate(), np.random.get_state())
        self.whole = True
        self.close()

    def close(self) -> None:
        """Let signals through again."""
        waiting, self._waiting = self._waiting, ExitStack()
        waiting.close()

    def restore(self) -> None:
        """Put the random states of that moment back, which sampling may have moved since."""
        if self._random is not None:
            torch.set_rng_state(self._random[0])
            random.setstate(self._random[1])
            np.random.set_state(self._random[2])
