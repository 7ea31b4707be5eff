"""A task's verifier as a reward: 1 if it calls the database that was left, and the last words, complete."""

from __future__ import annotations

from typing import ClassVar

from callwright.walk.components.goal_reached import GoalReached
from callwright.walk.reward import RewardRecipe, Term


class Complete(GoalReached):
    """In {0, 1}: 1 if the task's verifier says ``complete`` of the session in which the attempt ran.

    Masks the sample where the verifier fails, which AWM counts apart, too, and where no session was asked.
    """

    name: ClassVar[str] = "complete"
    missed: ClassVar[str] = "the task's verifier does not call what was left and said complete"
    unasked: ClassVar[str] = (
        "no session was asked by the task's verifier: the task is none of AWM's, a record of one, or the log was "
        "closed before its messages were known"
    )


def complete() -> RewardRecipe:
    """The recipe of :class:`Complete` alone."""
    return RewardRecipe("awm", (Term(Complete()),), summary="the verdict of AWM's own verifiers")
