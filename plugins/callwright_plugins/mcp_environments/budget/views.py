"""What tools show of rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.budget.envelopes import available, budget_of, carried
from callwright_plugins.mcp_environments.budget.months import is_locked, next_day
from callwright_plugins.mcp_environments.budget.rows import Category, Expense, RecurringRule
from callwright_plugins.mcp_environments.times import iso_date, month_of


class CategoryView(TypedDict):
    """A category."""

    category_id: str
    name: str
    group: str
    hard_cap: Annotated[bool, Field(description="Expenses beyond what it has are refused.")]
    rollover: Annotated[bool, Field(description="What is left goes into the next month.")]
    archived: Annotated[bool, Field(description="Takes no expenses.")]


class ExpenseView(TypedDict):
    """An expense; ``rule_id`` is empty unless it was entered by a recurring rule."""

    expense_id: str
    category_id: str
    day: str
    amount_cents: Annotated[int, Field(description="Of this expense.")]
    description: str
    rule_id: Annotated[str, Field(description="Rule that entered it; empty: entered by hand.")]


class RuleView(TypedDict):
    """A recurring expense; ``times_left`` of ``None`` goes on for ever, ``next_day`` is empty when it is done."""

    rule_id: str
    category_id: str
    description: str
    amount_cents: Annotated[int, Field(description="Each time.")]
    every: str
    next_day: Annotated[str, Field(description="Empty: it is done.")]
    times_left: Annotated[int | None, Field(description="null: for ever.")]
    status: str
    entered: Annotated[int, Field(description="Times that it was entered.")]
    missed: Annotated[int, Field(description="Times that it was due and a hard cap kept it out.")]


class StatusView(TypedDict):
    """A category in a month; ``upcoming_cents`` are recurring expenses still to come in it."""

    category_id: str
    name: str
    month: str
    carried_cents: Annotated[int, Field(description="What came over from the month before.")]
    allocated_cents: Annotated[int, Field(description="To the month.")]
    spent_cents: Annotated[int, Field(description="In the month.")]
    available_cents: Annotated[int, Field(description="Carried over and allocated, less spent.")]
    upcoming_cents: Annotated[int, Field(description="Recurring expenses that are still to come in the month.")]
    hard_cap: Annotated[bool, Field(description="Expenses beyond what it has are refused.")]
    rollover: Annotated[bool, Field(description="What is left goes into the next month.")]
    locked: Annotated[bool, Field(description="Nothing in the month can change.")]


def category_view(row: Category) -> CategoryView:
    """A category as tools show it."""
    return {
        "category_id": row.id,
        "name": row.name,
        "group": row.group,
        "hard_cap": row.hard_cap,
        "rollover": row.rollover,
        "archived": row.archived,
    }


def expense_view(row: Expense) -> ExpenseView:
    """An expense as tools show it."""
    return {
        "expense_id": row.id,
        "category_id": row.category_id,
        "day": iso_date(row.day),
        "amount_cents": row.amount_cents,
        "description": row.description,
        "rule_id": row.rule_id,
    }


def rule_view(row: RecurringRule) -> RuleView:
    """A recurring expense as tools show it."""
    return {
        "rule_id": row.id,
        "category_id": row.category_id,
        "description": row.description,
        "amount_cents": row.amount_cents,
        "every": row.every,
        "next_day": iso_date(row.next_day) if row.status == "active" else "",
        "times_left": row.left,
        "status": row.status,
        "entered": row.entered,
        "missed": row.missed,
    }


def status_view(world: World, row: Category, month: str) -> StatusView:
    """A category in a month as tools show it."""
    budget = budget_of(world, row.id, month)
    return {
        "category_id": row.id,
        "name": row.name,
        "month": month,
        "carried_cents": carried(world, row, month),
        "allocated_cents": budget.allocated_cents,
        "spent_cents": budget.spent_cents,
        "available_cents": available(world, row, month),
        "upcoming_cents": sum(upcoming(rule, month) for rule in world.find(RecurringRule, category_id=row.id)),
        "hard_cap": row.hard_cap,
        "rollover": row.rollover,
        "locked": is_locked(world, month),
    }


def upcoming(rule: RecurringRule, month: str) -> int:
    """What a rule will still enter in a month, in cents."""
    if rule.status != "active":
        return 0
    day, left, total = rule.next_day, rule.left, 0
    while month_of(day) <= month and left != 0:
        if month_of(day) == month:
            total += rule.amount_cents
        day = next_day(day, rule.every, rule.anchor_day)
        left = None if left is None else left - 1
    return total
