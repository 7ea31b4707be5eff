"""A reward for tasks with a goal: TIER's ladder, with the end state in the place of the answer."""

from __future__ import annotations

from typing import Any, Final

from callwright.plugins import Registry
from callwright.walk.reward import RewardRecipe, Term

#: What a cut-off completion earns at most: the least total there is.
FLOOR: Final = 0.0


def worlds(registry: Registry, partial: bool = False) -> RewardRecipe:
    """Format, names, parameters, types and execution as in TIER (section 2.2), and 5 for the goal of the task.

    What a conversation has come to is what counts there, not the last value that a call returned. ``partial`` gives the
    share of the goal that holds (:class:`callwright_plugins.prove_rewards.final_state.FinalState`). The goal is scored
    whether each call executed or not: a call that failed and was put right is no failure of the conversation.
    """

    def component(name: str, **options: Any) -> Any:
        return registry.create("reward component", name, **options)

    return RewardRecipe(
        "worlds",
        (
            Term(component("format"), 1),
            Term(component("names"), 1, requires=("format",)),
            Term(component("parameters"), 1, requires=("format", "names")),
            Term(component("types"), 1, requires=("format", "names")),
            Term(component("execution"), 1, requires=("format",)),
            Term(component("final-state", partial=partial), 5, requires=("format",)),
        ),
        summary="format 1, parse 3, execution 1, goal 5, over 10",
        floor=FLOOR,
    )
