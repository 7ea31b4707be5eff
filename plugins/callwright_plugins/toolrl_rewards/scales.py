"""Ranges and targets that may move with training (ToolRL, sections 5.1 and 5.2). All take the progress explicitly.

The printed ones read its step as it is counted here, from 0; the released ones count the first one as ``first_step``.

What moves them is a function of this module, or ``partial`` of one, so that rewards can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from attrs import frozen

from callwright.errors import UsageError
from callwright.walk.conditions import Progress

Range = tuple[float, float]


@frozen
class Scale:
    """The range of a reward at a step: ``range_at(progress)``, always inside ``[low, high]``.

    Without ``range_at`` it is ``[low, high]`` at every step.
    """

    low: float
    high: float
    range_at: Callable[[Progress], Range] | None = None

    def at(self, progress: Progress | None) -> Range:
        """The range now. Raises :class:`callwright.UsageError` where it depends on a progress that is not given."""
        if self.range_at is None:
            return self.low, self.high
        return self.range_at(needed(progress))


@frozen
class Target:
    """How many words a thought should have: ``words`` or, with ``words_at``, a number that depends on the progress."""

    words: float = 512.0
    words_at: Callable[[Progress], float] | None = None
    PAPER: ClassVar[float] = 512.0

    def at(self, progress: Progress | None) -> float:
        """The target now. Raises :class:`callwright.UsageError` where it depends on a progress that is not given."""
        return self.words if self.words_at is None else self.words_at(needed(progress))


def needed(progress: Progress | None) -> Progress:
    """The progress, or :class:`callwright.UsageError`."""
    if progress is None:
        raise UsageError("this reward has a schedule: it needs the training step and the number of all steps")
    return progress


def share(progress: Progress) -> float:
    """p = S_current / S_total, in [0, 1]."""
    return min(1.0, max(0.0, progress.step / progress.total_steps)) if progress.total_steps > 0 else 1.0


# As the paper prints them -------------------------------------------------------------------------------------------

FORMAT = Scale(0.0, 1.0)
CORRECT = Scale(-3.0, 3.0)
#: Section 5.2, equal max: C = 2 R/S - 1.
EQUAL_CORRECT = Scale(-1.0, 1.0)


def two_stage(switch: int = 30) -> tuple[Scale, Scale]:
    """Section 5.2, two stages: F in [0, 1] and C in [-1, 1], then [0, 0.5] and [-3, 3].

    The first stage is "the first s training steps", that is ``switch`` of them: 0 to s - 1, all those below s.
    """
    return (
        Scale(0.0, 1.0, partial(_switched, switch, (0.0, 1.0), (0.0, 0.5))),
        Scale(-3.0, 3.0, partial(_switched, switch, (-1.0, 1.0), (-3.0, 3.0))),
    )


def _switched(switch: int, before: Range, after: Range, progress: Progress) -> Range:
    return before if progress.step < switch else after


def _dynamic_format(progress: Progress) -> Range:
    return share(progress) - 2.0, 2.0 - share(progress)


def _dynamic_correct(progress: Progress) -> Range:
    return -2.0 - share(progress), 2.0 + share(progress)


def _dynamic_length(progress: Progress) -> float:
    return Target.PAPER * (1.0 + share(progress))


#: Section 5.2, dynamic: F in [-2 + p, 2 - p], C in [-2 - p, 2 + p].
DYNAMIC_FORMAT = Scale(-2.0, 2.0, _dynamic_format)
DYNAMIC_CORRECT = Scale(-3.0, 3.0, _dynamic_correct)

LENGTH = Target(Target.PAPER)
#: Section 5.1, dynamic: 512 (1 + p).
DYNAMIC_LENGTH = Target(Target.PAPER, _dynamic_length)

# As the released code has them --------------------------------------------------------------------------------------
# Steps are counted against 30, 105 and 150, whatever the length of the training. Its trainer calls the first one 1, and
# 0 the validation before it, so each of these has a ``first_step``, which is added to the step.

RELEASED_LENGTH = Target(512.0)
_SWITCH, _STEPS = 30, 150.0


def released_dynamic_length(first_step: int = 0) -> Target:
    """384 words at step 0, 640 at step 105, and on."""
    return Target(384.0, partial(_released_length, first_step))


def _released_length(first_step: int, progress: Progress) -> float:
    return 384.0 + 256.0 * (progress.step + first_step) / 105.0


def released_format(*, two_stage: bool, schedule: bool, first_step: int = 0) -> Scale:
    """Half the maximum from step 30 on; then the schedule from 2 to that maximum (at least 1), and from -2 up to -1."""
    if not two_stage and not schedule:
        return FORMAT
    range_at = partial(_released_format, two_stage, schedule, first_step)
    return Scale(-2.0, 2.0, range_at) if schedule else Scale(0.0, 1.0, range_at)


def _released_format(two_stage: bool, schedule: bool, first_step: int, progress: Progress) -> Range:
    step = progress.step + first_step
    low, high = 0.0, 0.5 if two_stage and step >= _SWITCH else 1.0
    if schedule:
        done = step / _STEPS
        high = max(1.0, 2.0 - (2.0 - high) * done)
        low = min(-1.0, -2.0 + (2.0 + low) * done)
    return low, high


def released_correct(*, largest: float, two_stage: bool, schedule: bool, first_step: int = 0) -> Scale:
    """A third of ``largest`` before step 30; then the schedule from 2 towards it, at most 3; always symmetric."""
    if not two_stage and not schedule:
        return Scale(-largest, largest)
    most = max(largest, 2.0) if schedule else largest
    return Scale(-most, most, partial(_released_correct, largest, two_stage, schedule, first_step))


def _released_correct(largest: float, two_stage: bool, schedule: bool, first_step: int, progress: Progress) -> Range:
    step = progress.step + first_step
    high = largest / 3.0 if two_stage and step < _SWITCH else largest
    if schedule:
        high = min(3.0, 2.0 + (high - 2.0) * step / _STEPS)
    return -high, high
