"""Prompts that are too long: their tasks are left out and counted, never cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from callwright.errors import UsageError
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.models.policy import Policy

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

#: How often another task is drawn in the place of one whose prompt is too long.
REDRAWN: Final = 20
#: Rounds of drawing that lie between two draws for the same place.
_APART: Final = 1 << 20


class PromptBound:
    """The most tokens of a prompt: ``most``, and what leaves room for one token in ``limits.context_tokens``.

    Of a task that its user begins, the prompt is counted without what the user will say.
    """

    def __init__(
        self, pipeline: Pipeline, policy: Policy, limits: TurnLimits, most: int | None, option: str = ""
    ) -> None:
        room = None if limits.context_tokens is None else limits.context_tokens - 1
        bounds = [bound for bound in (most, room) if bound is not None]
        #: ``None`` where nothing bounds it.
        self.most = min(bounds, default=None)
        #: How the user lets longer ones through.
        self._advice = option if most is not None and most == self.most else ""
        if room == self.most and limits.context_tokens != policy.positions:
            self._advice = f", or raise 'context_tokens', which is {limits.context_tokens}"
        self._pipeline, self._codec, self._limits = pipeline, policy.codec(), limits
        self._compact = policy.form == "compact"
        self._known: dict[str, bool] = {}

    def holds(self, task: Task) -> bool:
        """Whether the prompt of a task is short enough."""
        if self.most is None:
            return True
        if task.id not in self._known:
            messages = () if self._compact else self._pipeline.messages(task, limits=self._limits)
            self._known[task.id] = len(self._codec.prompt_ids(messages, task)) <= self.most
        return self._known[task.id]

    def within(self, tasks: Sequence[Task], split: str) -> list[Task]:
        """Those whose prompts are short enough. Raises :class:`callwright.UsageError` if there are tasks, but none."""
        kept = [task for task in tasks if self.holds(task)]
        if tasks and not kept:
            raise self._none(f"all {len(tasks)} prompts of the split {split!r}")
        return kept

    def draw(self, drawn: Callable[[int], Sequence[Task]], round_: int) -> tuple[list[Task], int]:
        """The tasks that ``drawn`` gives for a round, and how many of them were replaced or left out.

        In the place of one that is too long stands the same place of another draw, so that depths keep their shares.
        Raises :class:`callwright.UsageError` if none of many draws is short enough.
        """
        tasks = list(drawn(round_))
        bad = [place for place, task in enumerate(tasks) if not self.holds(task)]
        left = bad
        for again in range(1, REDRAWN + 1):
            if not left:
                break
            others = drawn(round_ + again * _APART)
            for place in left:
                tasks[place] = others[place]
            left = [place for place in left if not self.holds(tasks[place])]
        if left and len(left) == len(tasks):
            raise self._none(f"all prompts of {REDRAWN + 1} draws of {len(tasks)} tasks")
        return [task for place, task in enumerate(tasks) if place not in left], len(bad)

    def _none(self, what: str) -> UsageError:
        return UsageError(
            f"{what} have more than {self.most} tokens, so there is nothing to sample; offer fewer tools, take a model "
            f"with a longer context{self._advice}"
        )
