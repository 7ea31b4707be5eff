"""The twelve tools of the budget; here are those that write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.budget.envelopes import (
    available,
    budget_of,
    change,
    check_cap,
    enter,
    least_available,
    least_unallocated,
    need_category,
)
from callwright_plugins.mcp_environments.budget.lookup import LOOKUP, CategoryId, MonthName
from callwright_plugins.mcp_environments.budget.months import chosen, horizon, later, refuse_locked
from callwright_plugins.mcp_environments.budget.recurring import note_due, settle
from callwright_plugins.mcp_environments.budget.rows import (
    CLOCK,
    Category,
    Expense,
    RecurringRule,
    SessionClock,
)
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
from callwright_plugins.mcp_environments.times import DAY, iso_date, month_of, parse_day

MOST_CATEGORIES: Final = 200
FURTHEST: Final = 366 * DAY

Cents = Annotated[int, Field(description="Amount in cents, above 0.", ge=-(10**10), le=10**10)]
ExpenseId = Annotated[str, Field(description="Id of an expense, such as E00012.", max_length=20)]
Text = Annotated[str, Field(description="What it was for.", max_length=140)]


class ExpenseResult(ExpenseView):
    """An expense, and what its category has left in that month."""

    available_cents: Annotated[int, Field(description="Of its category in that month, now.")]


class DeletedExpense(TypedDict):
    """The expense that is gone, and what its category has in that month now."""

    expense_id: str
    deleted: bool
    available_cents: Annotated[int, Field(description="Of its category in that month, now.")]


class Moved(TypedDict):
    """Both categories after money moved."""

    source: StatusView
    target: StatusView


@tool
def create_category(
    world: World,
    /,
    name: Annotated[str, Field(description="Its name, unlike every other.", min_length=1, max_length=60)],
    group: Annotated[str, Field(description="A group such as home or fun.", max_length=40)] = "other",
    hard_cap: Annotated[bool, Field(description="Refuse expenses beyond what it has.")] = False,
    rollover: Annotated[bool, Field(description="Take what is left into the next month.")] = False,
) -> CategoryView:
    """Make a category. It has no money until set_budget or move_budget gives it some."""
    settle(world)
    wanted = " ".join(name.split())
    if not wanted:
        raise ToolError("INVALID_NAME", "a category needs a name")
    rows = list(world.rows(Category))
    same = next((row for row in rows if row.name.casefold() == wanted.casefold()), None)
    if same is not None:
        raise ToolError("CATEGORY_EXISTS", f"{same.id} is called {same.name!r} already")
    if len(rows) >= MOST_CATEGORIES:
        raise ToolError("CATEGORY_LIMIT", f"there are {MOST_CATEGORIES} categories, the most there can be")
    return category_view(
        world.put(Category(world.new_id(Category), wanted, group.strip().casefold() or "other", hard_cap, rollover))
    )


@tool(idempotent=True)
def set_budget(
    world: World,
    /,
    category_id: CategoryId,
    amount_cents: Annotated[int, Field(description="What the category is given, in cents.", ge=-(10**10), le=10**10)],
    month: MonthName = "",
) -> StatusView:
    """Set what a category is given in a month, this one or up to twelve ahead.

    More must come out of what is unallocated in that month and stays so in later ones (INSUFFICIENT_UNALLOCATED). A
    category with a hard cap cannot be given less than it spent.
    """
    settle(world)
    category = _usable(world, category_id)
    name = chosen(world, month)
    refuse_locked(world, name)
    if amount_cents < 0:
        raise ToolError("NEGATIVE_AMOUNT", f"a budget is not negative, but {amount_cents} is")
    more = amount_cents - budget_of(world, category_id, name).allocated_cents
    if more > 0:
        short, least = least_unallocated(world, name)
        if more > least:
            raise ToolError(
                "INSUFFICIENT_UNALLOCATED",
                f"that takes {more} cents more, and {max(0, least)} are unallocated in {short}; "
                "lower another budget or use move_budget",
            )
    elif more < 0:
        over = check_cap(world, category, name, -more)
        if over:
            world.warn("OVER_BUDGET", f"{category.name} has spent {over} cents more than it has now")
    change(world, category_id, name, allocated=more)
    return status_view(world, category, name)


@tool
def move_budget(
    world: World,
    /,
    from_category_id: CategoryId,
    to_category_id: CategoryId,
    amount_cents: Cents,
    month: MonthName = "",
) -> Moved:
    """Move money that one category has left in a month to another. get_category_status tells what it has."""
    settle(world)
    source, target = need_category(world, from_category_id), _usable(world, to_category_id)
    name = chosen(world, month)
    refuse_locked(world, name)
    _need_positive(amount_cents)
    if source.id == target.id:
        raise ToolError("SAME_CATEGORY", f"{source.id} cannot give money to itself")
    least = least_available(world, source, name)
    if amount_cents > least:
        raise ToolError(
            "INSUFFICIENT_BUDGET",
            f"{source.name} ({source.id}) has {max(0, least)} cents to give in {name}, not {amount_cents}",
        )
    # Else it comes back to what later months give away; after the last one there is none yet.
    if source.rollover is False and target.rollover and name < horizon(world):
        short, left = least_unallocated(world, later(name))
        if amount_cents > left:
            raise ToolError(
                "INSUFFICIENT_UNALLOCATED",
                f"{short} counts on {amount_cents} cents that {source.name} would give back; {max(0, left)} are free",
            )
    change(world, source.id, name, allocated=-amount_cents)
    change(world, target.id, name, allocated=amount_cents)
    return {"source": status_view(world, source, name), "target": status_view(world, target, name)}


@tool
def add_expense(
    world: World,
    /,
    category_id: CategoryId,
    amount_cents: Cents,
    description: Text = "",
    day: Annotated[str, Field(description="The day, such as 2026-03-01; empty for today.", max_length=20)] = "",
) -> ExpenseResult:
    """Enter an expense of today or an earlier day whose month is not locked.

    Beyond what its category has, one with a hard cap refuses it (OVER_BUDGET); another takes it with a warning.
    """
    settle(world)
    category = _usable(world, category_id)
    _need_positive(amount_cents)
    at = _past_day(world, day)
    name = month_of(at)
    refuse_locked(world, name)
    _warn_over(world, category, name, check_cap(world, category, name, amount_cents))
    row = enter(world, category, name, at, amount_cents, description, "")
    return {**expense_view(row), "available_cents": available(world, category, name)}


@tool(idempotent=True)
def update_expense(
    world: World,
    /,
    expense_id: ExpenseId,
    category_id: Annotated[
        str | None, Field(description="Another category; left out, it stays.", max_length=20)
    ] = None,
    amount_cents: Annotated[
        int | None, Field(description="Another amount in cents; left out, it stays.", ge=-(10**10), le=10**10)
    ] = None,
    day: Annotated[str | None, Field(description="Another day; left out, it stays.", max_length=20)] = None,
    description: Annotated[str | None, Field(description="Another text; left out, it stays.", max_length=140)] = None,
) -> ExpenseResult:
    """Change an expense. Neither its old nor its new month may be locked; hard caps hold as in add_expense."""
    settle(world)
    row = _need_expense(world, expense_id)
    refuse_locked(world, row.month)
    category = need_category(world, row.category_id) if category_id is None else _usable(world, category_id)
    amount = row.amount_cents if amount_cents is None else amount_cents
    _need_positive(amount)
    at = row.day if day is None else _past_day(world, day)
    name = month_of(at)
    refuse_locked(world, name)
    if (category.id, name, amount) != (row.category_id, row.month, row.amount_cents):
        change(world, row.category_id, row.month, spent=-row.amount_cents)
        same = (category.id, name) == (row.category_id, row.month) and amount <= row.amount_cents
        over = 0 if same else check_cap(world, category, name, amount)
        _warn_over(world, category, name, over)
        change(world, category.id, name, spent=amount)
    text = row.description if description is None else description
    row = world.update(row, category_id=category.id, month=name, day=at, amount_cents=amount, description=text)
    return {**expense_view(row), "available_cents": available(world, category, name)}


@tool(destructive=True)
def delete_expense(world: World, /, expense_id: ExpenseId) -> DeletedExpense:
    """Delete an expense of a month that is not locked; its category has the money again."""
    settle(world)
    row = _need_expense(world, expense_id)
    refuse_locked(world, row.month)
    change(world, row.category_id, row.month, spent=-row.amount_cents)
    world.drop(row)
    left = available(world, need_category(world, row.category_id), row.month)
    return {"expense_id": expense_id, "deleted": True, "available_cents": left}


@tool(irreversible=True)
def add_recurring_expense(
    world: World,
    /,
    category_id: CategoryId,
    amount_cents: Cents,
    first_day: Annotated[str, Field(description="The first day: today, or within a year from now.", max_length=20)],
    every: Annotated[Literal["week", "month"], Field(description="How often it comes back.")] = "month",
    times: Annotated[int | None, Field(description="How often in all; left out, for ever.", ge=1, le=520)] = None,
    description: Text = "",
) -> RuleView:
    """Have an expense entered on a day and then every week or month. One due today is entered at once.

    On a day on which it would break a hard cap it is missed, not made up for.
    """
    settle(world)
    category = _usable(world, category_id)
    _need_positive(amount_cents)
    day = parse_day(first_day)
    today = world.now // DAY * DAY
    if not today <= day <= today + FURTHEST:
        raise ToolError("BAD_DATE", f"{first_day!r} is not within a year from {iso_date(today)}")
    if day == today:  # it is entered now, so a hard cap is an error, not a miss
        check_cap(world, category, month_of(day), amount_cents)
    rule = world.put(
        RecurringRule(
            id=world.new_id(RecurringRule),
            category_id=category_id,
            description=description,
            amount_cents=amount_cents,
            every=every,
            next_day=day,
            anchor_day=datetime.fromtimestamp(day, UTC).day,
            left=times,
            status="active",
        )
    )
    note_due(world, day)
    settle(world)
    return rule_view(world.need(RecurringRule, rule.id))


def _usable(world: World, category_id: str) -> Category:
    category = need_category(world, category_id)
    if category.archived:
        raise ToolError("INVALID_STATE", f"the category {category.name} ({category_id}) is archived")
    return category


def _need_positive(amount_cents: int) -> None:
    if amount_cents <= 0:
        raise ToolError("NEGATIVE_AMOUNT", f"the amount must be above 0 cents, not {amount_cents}")


def _need_expense(world: World, expense_id: str) -> Expense:
    return world.need(Expense, expense_id, message=f"there is no expense {expense_id!r}; list_expenses names them")


def _past_day(world: World, day: str) -> int:
    today = world.now // DAY * DAY
    at = parse_day(day) if day else today
    if at > today:
        raise ToolError("FUTURE_DATE", f"{day} is in the future; use add_recurring_expense for what is to come")
    first = world.need(SessionClock, CLOCK).first_month
    if month_of(at) < first:
        raise ToolError("MONTH_LOCKED", f"the budget begins with {first}; {day} is before")
    return at


def _warn_over(world: World, category: Category, month: str, over: int) -> None:
    if over:
        world.warn("OVER_BUDGET", f"{category.name} ({category.id}) has spent {over} cents more than it has in {month}")


TOOLS: Final = [
    *LOOKUP,
    create_category,
    set_budget,
    move_budget,
    add_expense,
    update_expense,
    delete_expense,
    add_recurring_expense,
]
