"""Tools that only read."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import tool
from callwright_plugins.mcp_environments.budget.envelopes import budget_of, carried, income, need_category, unallocated
from callwright_plugins.mcp_environments.budget.months import chosen, is_locked
from callwright_plugins.mcp_environments.budget.recurring import current
from callwright_plugins.mcp_environments.budget.rows import Category, Expense, RecurringRule
from callwright_plugins.mcp_environments.budget.views import (
    CategoryView,
    ExpenseView,
    RuleView,
    StatusView,
    category_view,
    expense_view,
    rule_view,
    status_view,
)
from callwright_plugins.mcp_environments.closed_sets import none_such

CategoryId = Annotated[str, Field(description="Id of a category, such as G00012.", max_length=20)]
SomeCategory = Annotated[str, Field(description="Only of this category; empty for all.", max_length=20)]
MonthName = Annotated[
    str, Field(description="A month such as 2026-03; empty for this month.", pattern=r"^([0-9]{4}-[0-9]{2})?$")
]


class SummaryLine(TypedDict):
    """A category in a summary."""

    category_id: str
    name: str
    allocated_cents: Annotated[int, Field(description="To the month.")]
    spent_cents: Annotated[int, Field(description="In the month.")]
    available_cents: Annotated[int, Field(description="Carried over and allocated, less spent.")]


class SummaryView(TypedDict):
    """A month: what came in, what was given away and spent, and what is unallocated."""

    month: str
    locked: Annotated[bool, Field(description="Nothing in the month can change.")]
    income_cents: int
    allocated_cents: Annotated[int, Field(description="To all categories.")]
    spent_cents: Annotated[int, Field(description="Of all categories.")]
    unallocated_cents: Annotated[int, Field(description="Income of the months up to this one that no category has.")]
    overspent_category_ids: list[str]
    categories: list[SummaryLine]


@tool(read_only=True, discovery=True)
def list_categories(
    world: World,
    /,
    group: Annotated[str, Field(description="Only of this group, such as home; empty for all.", max_length=40)] = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Page[CategoryView]:
    """List the categories of the budget, with hard caps and rollover. Archived ones take no expenses."""
    wanted = group.strip().casefold()
    found = [row for row in world.rows(Category) if wanted in ("", row.group)]
    if not found and (unknown := none_such(world, Category, "group", group)):
        world.warn("UNKNOWN_VALUE", unknown)
    return page(found, category_view, limit, cursor)


@tool(read_only=True, discovery=True)
def list_expenses(
    world: World,
    /,
    category_id: SomeCategory = "",
    month: Annotated[
        str, Field(description="Only in this month, such as 2026-03; empty for all.", pattern=r"^([0-9]{4}-[0-9]{2})?$")
    ] = "",
    query: Annotated[str, Field(description="Part of the description; empty for all.", max_length=80)] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ExpenseView]:
    """List expenses, the newest day first."""
    world = current(world)
    if category_id:
        need_category(world, category_id)
    if month:
        month = chosen(world, month)
    wanted = query.strip().casefold()
    found = [
        row
        for row, text in world.prepared(Expense, _with_text, _by_day)
        if wanted in text and (not category_id or row.category_id == category_id) and (not month or row.month == month)
    ]
    found.reverse()
    return page(found, expense_view, limit, cursor)


def _with_text(row: Expense) -> tuple[Expense, str]:
    return row, row.description.casefold()


def _by_day(row: Expense) -> tuple[int, str]:
    return row.day, row.id


@tool(read_only=True, discovery=True)
def list_recurring_expenses(
    world: World, /, category_id: SomeCategory = "", limit: Limit = 20, cursor: Cursor = ""
) -> Page[RuleView]:
    """List recurring expenses: when they are due next, and how often they were entered or missed for a hard cap."""
    world = current(world)
    if category_id:
        need_category(world, category_id)
    found = world.find(RecurringRule, category_id=category_id) if category_id else list(world.rows(RecurringRule))
    return page(found, rule_view, limit, cursor)


@tool(read_only=True)
def get_category_status(world: World, /, category_id: CategoryId, month: MonthName = "") -> StatusView:
    """What a category carried over, was given, spent and has left in a month. Only what it has can be moved."""
    world = current(world)
    return status_view(world, need_category(world, category_id), chosen(world, month))


@tool(read_only=True)
def get_monthly_summary(world: World, /, month: MonthName = "") -> SummaryView:
    """Income, budgets and spending of a month over all categories, and what is still unallocated."""
    world = current(world)
    name = chosen(world, month)
    lines: list[SummaryLine] = []
    for row in world.rows(Category):
        budget = budget_of(world, row.id, name)
        lines.append(
            {
                "category_id": row.id,
                "name": row.name,
                "allocated_cents": budget.allocated_cents,
                "spent_cents": budget.spent_cents,
                "available_cents": carried(world, row, name) + budget.allocated_cents - budget.spent_cents,
            }
        )
    return {
        "month": name,
        "locked": is_locked(world, name),
        "income_cents": income(world, name),
        "allocated_cents": sum(line["allocated_cents"] for line in lines),
        "spent_cents": sum(line["spent_cents"] for line in lines),
        "unallocated_cents": dict(unallocated(world, name))[name],
        "overspent_category_ids": [line["category_id"] for line in lines if line["available_cents"] < 0],
        "categories": lines,
    }


LOOKUP: Final = (list_categories, list_expenses, list_recurring_expenses, get_category_status, get_monthly_summary)
