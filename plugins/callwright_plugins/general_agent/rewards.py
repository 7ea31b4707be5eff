"""The task's own check as a reward: 1 if the world is what the gold calls leave, or ``verify(db)`` accepts it."""

from __future__ import annotations

from typing import ClassVar

from callwright.walk.components.goal_reached import GoalReached
from callwright.walk.reward import RewardRecipe, Term


class Solved(GoalReached):
    """In {0, 1}: 1 if the session in which the attempt ran says that its task is solved.

    Masks the sample where no session says so, or it was lost.
    """

    missed: ClassVar[str] = "the world is not what the gold calls leave, and verify(db) does not accept it"
    unasked: ClassVar[str] = (
        "no session says whether the task is solved: it is none of general-agent, or a record of one"
    )


def solved() -> RewardRecipe:
    """The recipe of :class:`Solved` alone."""
    return RewardRecipe("general-agent", (Term(Solved()),), summary="general-agent's own reward")
