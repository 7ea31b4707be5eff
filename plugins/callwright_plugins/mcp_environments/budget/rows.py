"""Rows of the household. Amounts are cents; days are seconds of their midnight (UTC), months text such as 2026-03."""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row

#: The key of the only row of :class:`SessionClock`, and a time that never comes (the end of the year 9999).
CLOCK: Final = "clock"
NEVER: Final = 253_402_300_799


@row("categories", prefix="G")
class Category:
    """What money is for."""

    id: str
    name: str
    group: str
    hard_cap: bool
    rollover: bool
    archived: bool = False


@row("months")
class Month:
    """The income of a month that differs from the usual one."""

    month: str
    income_cents: int


@row("budgets", key=("category_id", "month"))
class Budget:
    """What a category was given in a month, and what was spent. Money moved on can make the first negative."""

    category_id: str
    month: str
    allocated_cents: int
    spent_cents: int


@row("expenses", prefix="E", index=("category_id", "month"))
class Expense:
    """Money spent on a day; ``rule_id`` is empty unless a recurring rule entered it."""

    id: str
    category_id: str
    month: str
    day: int
    amount_cents: int
    description: str
    rule_id: str = ""


# Counters of expenses, which have rows of their own.
@row("recurring_rules", prefix="Q", index=("category_id", "status"), bookkeeping=("entered", "missed"))
class RecurringRule:
    """An expense that comes back, next on ``next_day``, ``left`` times more (``None``: for ever)."""

    id: str
    category_id: str
    description: str
    amount_cents: int
    every: str  # week, month
    next_day: int
    anchor_day: int
    left: int | None
    status: str  # active, done
    entered: int = 0
    missed: int = 0


# When to look again.
@row("session_clock", bookkeeping=("next_due",))
class SessionClock:
    """The first month, the usual income, and a time before which no recurring expense falls due."""

    id: str
    first_month: str
    income_cents: int
    next_due: int = NEVER


ROWS: Final = (Category, Month, Budget, Expense, RecurringRule, SessionClock)
