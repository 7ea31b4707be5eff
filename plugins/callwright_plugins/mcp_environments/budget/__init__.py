"""Budget: a household's money by category and month.

- A month's income is first unallocated; ``set_budget`` gives it to categories. No month, this or a later one, can give
  away more than there is.
- What a category has in a month is what it carried over, plus its budget, less what was spent.
- Categories that roll over take what is left, or missing, into the next month. What the others have left, or lack, goes
  back to, or comes out of, what is unallocated then. So no cent is made or lost.
- Categories with a hard cap refuse expenses beyond what they have, also later months' where they roll over; others let
  them pass with a warning (a partial success).
- A month is locked ten days after its end: nothing in it changes any more. Expenses are not dated in the future.
- Recurring expenses are entered when the clock reaches their day; one that would break a hard cap is missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callwright.environments.stateful import StatefulEnvironment, Toolsets


def environment(
    *,
    toolsets: Toolsets = (),
    scale: float = 1.0,
) -> StatefulEnvironment:
    """The environment; ``toolsets`` and ``scale`` as in :class:`callwright.StatefulEnvironment`."""
    from callwright.environments.stateful import StatefulEnvironment
    from callwright_plugins.mcp_environments.budget.events import EVENTS
    from callwright_plugins.mcp_environments.budget.knowledge import known
    from callwright_plugins.mcp_environments.budget.people import named
    from callwright_plugins.mcp_environments.budget.policy import POLICY
    from callwright_plugins.mcp_environments.budget.rows import ROWS
    from callwright_plugins.mcp_environments.budget.scenarios import SCENARIOS
    from callwright_plugins.mcp_environments.budget.tools import TOOLS

    return StatefulEnvironment(
        "budget",
        rows=ROWS,
        tools=TOOLS,
        scenarios=SCENARIOS,
        toolsets=toolsets,
        scale=scale,
        policy=POLICY,
        knowledge=known,
        people=named,
        events=EVENTS,
    )
