"""A toolset for an environment of somebody else: savings goals for Callwright's ``banking``.

cw.environment("banking", toolsets=["banking-goals"])
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

import callwright as cw
from callwright_plugins.mcp_environments.banking.rows import Account

AccountId = Annotated[str, Field(description="Id of an account, such as A00017.")]


@cw.row("savings_goals", prefix="G", index=("account_id",))
class Goal:
    """A row of our own; sessions of ``banking`` keep, digest, fork and reset it like theirs."""

    id: str
    account_id: str
    label: str
    target_cents: int


class GoalView(TypedDict):
    """A goal and how far it is reached, in percent."""

    id: str
    label: str
    target_cents: int
    reached_percent: int


def view(world: cw.World, goal: Goal) -> GoalView:
    """Reads the bank's own table."""
    balance = max(world.need(Account, goal.account_id).balance_cents, 0)
    reached = min(100, 100 * balance // goal.target_cents)
    return {"id": goal.id, "label": goal.label, "target_cents": goal.target_cents, "reached_percent": reached}


@cw.tool
def set_savings_goal(
    world: cw.World,
    /,
    account_id: AccountId,
    label: Annotated[str, Field(description="What the money is for.", min_length=1, max_length=40)],
    target_cents: Annotated[int, Field(description="How much is wanted, in cents.", gt=0)],
) -> GoalView:
    """Set a savings goal for an account. An account has at most three."""
    world.need(Account, account_id)
    if world.count(Goal, account_id=account_id) == 3:
        raise cw.ToolError("TOO_MANY_GOALS", f"account {account_id} has three goals already")
    return view(world, world.put(Goal(world.new_id(Goal), account_id, label, target_cents)))


@cw.tool(read_only=True)
def list_savings_goals(world: cw.World, /, account_id: AccountId) -> list[GoalView]:
    """The savings goals of an account, with how far each is reached."""
    return [view(world, goal) for goal in world.find(Goal, account_id=account_id)]


GOALS = (set_savings_goal, list_savings_goals)
