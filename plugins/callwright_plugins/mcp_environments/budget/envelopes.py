"""The arithmetic of budgets: what categories have in a month, and what nobody has been given yet."""

from __future__ import annotations

from collections.abc import Iterator

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.budget.months import horizon, later, span
from callwright_plugins.mcp_environments.budget.rows import CLOCK, Budget, Category, Expense, Month, SessionClock


def need_category(world: World, category_id: str) -> Category:
    """The category, or ``NOT_FOUND``."""
    return world.need(
        Category, category_id, message=f"there is no category {category_id!r}; list_categories names them"
    )


def budget_of(world: World, category_id: str, month: str) -> Budget:
    """What was given and spent; nothing, where there is no row."""
    return world.get(Budget, (category_id, month)) or Budget(category_id, month, 0, 0)


def carried(world: World, category: Category, month: str) -> int:
    """What a category brings into a month, in cents; negative where it was overspent."""
    if not category.rollover:
        return 0
    total, at = 0, world.need(SessionClock, CLOCK).first_month
    while at < month:
        row = world.get(Budget, (category.id, at))
        if row is not None:
            total += row.allocated_cents - row.spent_cents
        at = later(at)
    return total


def available(world: World, category: Category, month: str) -> int:
    """What a category has in a month, in cents."""
    row = budget_of(world, category.id, month)
    return carried(world, category, month) + row.allocated_cents - row.spent_cents


def least_available(world: World, category: Category, month: str) -> int:
    """The least that a category has in a month and, if it rolls over, in any later one."""
    least = left = available(world, category, month)
    if category.rollover:
        for at in span(later(month), horizon(world)):
            row = world.get(Budget, (category.id, at))
            if row is not None:
                left += row.allocated_cents - row.spent_cents
                least = min(least, left)
    return least


def income(world: World, month: str) -> int:
    """The income of a month, in cents."""
    row = world.get(Month, month)
    return world.need(SessionClock, CLOCK).income_cents if row is None else row.income_cents


def unallocated(world: World, last: str) -> Iterator[tuple[str, int]]:
    """Every month from the first to ``last``, with what nobody has been given in it."""
    categories = [(row.id, row.rollover) for row in world.rows(Category)]
    budgets = world.table(Budget)
    left = 0
    for month in span(world.need(SessionClock, CLOCK).first_month, last):
        left += income(world, month)
        back = 0
        for category_id, rollover in categories:
            row = budgets.get((category_id, month))
            if row is not None:
                left -= row.allocated_cents
                if not rollover:
                    back += row.allocated_cents - row.spent_cents
        yield month, left
        left += back


def least_unallocated(world: World, month: str) -> tuple[str, int]:
    """The month, this one or a later one, in which least is unallocated, and how much."""
    return min((one for one in unallocated(world, horizon(world)) if one[0] >= month), key=lambda one: (one[1], one[0]))


def change(world: World, category_id: str, month: str, *, allocated: int = 0, spent: int = 0) -> None:
    """Add to what was given and spent."""
    row = budget_of(world, category_id, month)
    world.put(Budget(category_id, month, row.allocated_cents + allocated, row.spent_cents + spent))


def check_cap(world: World, category: Category, month: str, amount_cents: int) -> int:
    """How much an expense exceeds what its category has, in cents. Fails with ``OVER_BUDGET`` for a hard cap."""
    least = least_available(world, category, month)
    over = amount_cents - least
    if over > 0 and category.hard_cap:
        raise ToolError(
            "OVER_BUDGET",
            f"{category.name} ({category.id}) has {least} cents for {month}, not {amount_cents}, and a hard cap; "
            "set_budget or move_budget more to it first",
        )
    return max(0, over)


def enter(world: World, category: Category, month: str, day: int, amount_cents: int, text: str, rule: str) -> Expense:
    """Write an expense; the cap was checked."""
    change(world, category.id, month, spent=amount_cents)
    return world.put(Expense(world.new_id(Expense), category.id, month, day, amount_cents, text, rule))
