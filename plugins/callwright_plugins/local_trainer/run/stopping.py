"""A run that is stopped keeps its last completed step: a checkpoint of it is written on the way out.

A step changes the policy in one place only, :meth:`LastStep.changing`, which a signal does not interrupt. Before and
after, while completions are sampled and scored, the weights are those of the step before: whatever draws numbers there
has a generator of its own, and the global ones, which plugins may use, are put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callwright.machines.interrupts import postponed
from callwright_plugins.local_trainer.randomness import global_state, set_global_state
from callwright_plugins.local_trainer.run.checkpoints import Phase, in_order, remove_folder


class LastStep:
    """The last completed step, as long as model and optimiser are as it left them. ``save`` writes its checkpoint."""

    def __init__(self, save: Callable[[Phase, int], object]) -> None:
        self._save = save
        self._at: tuple[Phase, int] | None = None
        self._random: dict[str, Any] = {}

    def reached(self, phase: Phase, step: int) -> None:
        """``step`` steps of ``phase`` are done, and their rows are written or in memory."""
        self._random = global_state()
        self._at = (phase, step)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """In this block the model changes, up to :meth:`reached`; a first signal waits for its end.

        A second one leaves at once, and with the model in the middle of something nothing is saved.
        """
        with postponed():
            self._at = None
            yield

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Ctrl-C and its kin in this block are passed on after the last completed step is saved."""
        try:
            yield
        except KeyboardInterrupt:
            self.save()
            raise

    def save(self) -> None:
        """Write the checkpoint of the last completed step, if the model is still as that step left it."""
        if self._at is None:
            return
        now = global_state()
        set_global_state(self._random)
        try:
            self._save(*self._at)
        finally:
            set_global_state(now)


#: Of each phase, how many steps lie between its planned checkpoints, and which is the last: it has one, too.
Plan = Mapping[Phase, tuple[int, int]]


def tidy(folder: Path, plan: Plan, keep: int, but: str) -> None:
    """Remove all checkpoints but the ``keep`` newest planned ones and the one named ``but``.

    Those that only a stop brings about make way, so that the planned ones stay. Done after each is written, and again
    where a run goes on: it may have been stopped in between.
    """
    planned = [path for path in in_order(folder) if _is_planned(path.name, plan)]
    staying = {but, *(path.name for path in planned[-keep:])}
    for path in in_order(folder):
        if path.name not in staying:
            remove_folder(path)


def _is_planned(name: str, plan: Plan) -> bool:
    for phase, (every, last) in plan.items():
        digits = name.removeprefix(f"{phase}-")
        if digits != name and digits.isdecimal():
            return int(digits) % every == 0 or int(digits) == last
    return True  # not ours
