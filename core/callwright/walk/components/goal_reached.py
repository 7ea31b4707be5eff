"""The task's goal as a reward: 1 if the session in which the attempt ran says that it is reached."""

from __future__ import annotations

from typing import ClassVar

from callwright.errors import InfrastructureFailure
from callwright.walk.attempt import Attempt
from callwright.walk.components.component import RewardComponent
from callwright.walk.components.scores import Evidence, Score


class GoalReached(RewardComponent):
    """In {0, 1}: 1 if the task's goal (its fact ``goal``) is reached (:attr:`callwright.walk.Attempt.goal`).

    Subclasses say in their own words what a goal is: ``missed`` is what evidence says of one that is not reached, and
    ``unasked`` why nobody knows. Masks the sample where no session says so, or it was lost.
    """

    name: ClassVar[str] = "solved"
    stage: ClassVar[str] = "answer"
    missed: ClassVar[str] = "the task's goal is not reached"
    unasked: ClassVar[str] = "no session says whether the task's goal is reached"

    def score(self, attempt: Attempt) -> Score:
        trace = attempt.whole_trace
        masked = trace.masked
        found = None
        if masked is None:
            try:
                found = attempt.goal
            except InfrastructureFailure as error:
                masked = str(error)
        if masked is None and found is None:
            masked = self.unasked
        if masked is not None:
            return Score(0.0, evidence=(Evidence("not_known", masked),), masked=masked)
        return Score(1.0) if found else Score(0.0, evidence=(Evidence("not_solved", self.missed),))
