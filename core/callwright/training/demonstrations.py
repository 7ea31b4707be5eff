"""Demonstrations: what supervised training shows a policy for a task, and where a corpus says so.

A trainer shows the reference program of a task, ``task.program``. A corpus that has something else to show is one of
two things more: :class:`Demonstrates`, if it makes demonstrations of tasks of its own, or :class:`References`, if it
knows what to show for each of its tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from callwright.language.messages import Message
from callwright.language.program import Program
from callwright.training.spoken_references import WEIGHT as WEIGHT
from callwright.training.spoken_references import conversation_of, speaks
from callwright.walk.openings.opening import begins_with_user
from callwright.walk.tasks import Task

#: What a policy is shown. A program is written in the form of the recipe; where episodes have several turns its calls
#: are executed, and the answer follows. A text is one completion, verbatim. Messages are what follows the prompt of the
#: task, the first and the last an assistant's: only these are learnt from, the others stand between them as they are.
#: One of an assistant with :data:`WEIGHT` 0 (``extra={"weight": 0}``) is read as these are.
Shown: TypeAlias = Program | str | Sequence[Message]


@runtime_checkable
class Demonstrates(Protocol):
    """What a corpus offers in addition if it makes demonstrations, of tasks that need not be in any of its splits."""

    def demonstrations(
        self, seed: int, count: int, options: Mapping[str, Any] | None = None
    ) -> Iterable[tuple[Task, Shown]]:
        """``count`` tasks with what is shown for each, the same for a seed; ``options`` are the corpus's own.

        Raises :class:`callwright.UsageError`, before anything is drawn, for options that it does not take.
        """


@runtime_checkable
class References(Protocol):
    """What a corpus offers in addition if its tasks have more to show than a program: a text, or a conversation."""

    def reference(self, task: Task) -> Shown | None:
        """What is shown for one of its tasks; ``None`` where there is nothing."""


def reference_of(corpus: object, task: Task) -> Shown | None:
    """What is to be shown for a task of ``corpus``: what the corpus says, else the conversation that a reference stated
    turn by turn makes with the task's user, else the reference program. ``None`` where there is nothing, as of a
    reference turn by turn to a request that its user makes in the episode.
    """
    if isinstance(corpus, References):
        return corpus.reference(task)
    if speaks(task):
        return None if begins_with_user(task) else conversation_of(task)
    return task.program
