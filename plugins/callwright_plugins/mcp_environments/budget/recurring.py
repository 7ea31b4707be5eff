"""Recurring expenses: entered when the clock reaches their day.

Tools that write first enter what has fallen due; tools that only read look at a copy in which that is done.
"""

from __future__ import annotations

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.budget.envelopes import check_cap, enter, need_category
from callwright_plugins.mcp_environments.budget.months import next_day
from callwright_plugins.mcp_environments.budget.rows import CLOCK, NEVER, RecurringRule, SessionClock
from callwright_plugins.mcp_environments.times import month_of


def current(world: World) -> World:
    """The world as it is now, for tools that only read."""
    if world.now < world.need(SessionClock, CLOCK).next_due:
        return world
    return world.ahead(settle)


def settle(world: World) -> None:
    """Enter the expenses that have fallen due, in the order of their days."""
    clock = world.need(SessionClock, CLOCK)
    if world.now < clock.next_due:
        return
    while True:
        active = sorted((one.next_day, one.id) for one in world.find(RecurringRule, status="active"))
        if not active or active[0][0] > world.now:
            break
        _enter(world, world.need(RecurringRule, active[0][1]))
    world.update(clock, next_due=active[0][0] if active else NEVER)


def note_due(world: World, day: int) -> None:
    """Remember that an expense falls due on a day."""
    clock = world.need(SessionClock, CLOCK)
    world.update(clock, next_due=min(day, clock.next_due))


def _enter(world: World, rule: RecurringRule) -> None:
    category = need_category(world, rule.category_id)
    month = month_of(rule.next_day)
    entered = True
    try:
        check_cap(world, category, month, rule.amount_cents)
    except ToolError:
        entered = False
    else:
        enter(world, category, month, rule.next_day, rule.amount_cents, rule.description, rule.id)
    left = None if rule.left is None else rule.left - 1
    world.update(
        rule,
        left=left,
        status="done" if left == 0 else "active",
        next_day=rule.next_day if left == 0 else next_day(rule.next_day, rule.every, rule.anchor_day),
        entered=rule.entered + entered,
        missed=rule.missed + (not entered),
    )
