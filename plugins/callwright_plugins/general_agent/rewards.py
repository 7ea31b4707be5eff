"""The task's own check as a reward: 1 if the world is what the gold calls leave, or ``verify(db)`` accepts it."""

from __future__ import annotations

from typing import ClassVar

from callwright.errors import InfrastructureFailure
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, RewardRecipe, Score, Term


class Solved(RewardComponent):
    """In {0, 1}: 1 if the session in which the attempt ran says that its task's goal is reached.

    Masks the sample where no session says so, or it was lost.
    """

    name: ClassVar[str] = "solved"
    stage: ClassVar[str] = "answer"

    def score(self, attempt: Attempt) -> Score:
        trace = attempt.whole_trace
        masked = trace.masked
        try:
            found = attempt.goal if masked is None else None
        except InfrastructureFailure as error:
            masked = str(error)
            found = None
        if masked is None and found is None:
            masked = "no session says whether the task is solved: it is none of general-agent, or a record of one"
        if masked is not None:
            return Score(0.0, evidence=(Evidence("not_known", masked),), masked=masked)
        if found:
            return Score(1.0)
        reason = "the world is not what the gold calls leave, and verify(db) does not accept it"
        return Score(0.0, evidence=(Evidence("not_solved", reason),))


def solved() -> RewardRecipe:
    """The recipe of :class:`Solved` alone."""
    return RewardRecipe("general-agent", (Term(Solved()),), summary="general-agent's own reward")
