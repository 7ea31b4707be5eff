"""A reward that every untrained policy has a gradient for. Workers import this module, so it asks for no torch."""

from __future__ import annotations

from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, Score


class Variety(RewardComponent):
    """How many different tokens there are: untrained completions differ in it, so that every group has a gradient.

    ``most`` are as many as a completion may have.
    """

    name = "variety"

    def __init__(self, most: int) -> None:
        self.most = most

    def score(self, attempt: Attempt) -> Score:
        value = len(set(attempt.completion.token_ids)) / self.most
        return Score(value, 0.0, 1.0, () if value == 1 else (Evidence("repeats", "some tokens repeat"),))
