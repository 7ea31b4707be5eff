"""Goals: one comparison of end states, for rewards, evaluation and synthesis, and goals that are stated one by one."""

from __future__ import annotations

from callwright.environments.goals.comparing import Comparison, Difference, compare, equal_states
from callwright.environments.goals.goal import Changed, Goal, Holds, check_paths, check_rows
from callwright.environments.goals.states import end_state

__all__ = [
    "Changed",
    "Comparison",
    "Difference",
    "Goal",
    "Holds",
    "check_paths",
    "check_rows",
    "compare",
    "end_state",
    "equal_states",
]
