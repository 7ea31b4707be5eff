"""Learning rates: a warm-up, then what a schedule says."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["constant", "linear", "cosine"]


def learning_rate(step: int, steps: int, peak: float, warm_up: int, schedule: Schedule, floor: float = 0.1) -> float:
    """The rate of ``step`` (from 0) of ``steps``: rises for ``warm_up`` steps, then stays, or falls to the share
    ``floor`` of its ``peak``, which it would reach one step after the last."""
    if step < warm_up:
        return peak * (step + 1) / warm_up
    if schedule == "constant":
        return peak
    done = (step - warm_up) / max(1, steps - warm_up)
    left = 1 - done if schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
    return peak * (floor + (1 - floor) * left)
