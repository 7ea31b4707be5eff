"""What the budget does by itself: recurring expenses are entered on their days."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.environments.living.events import EventKind, Moment, Notice
from callwright.environments.world import World
from callwright_plugins.mcp_environments.budget.recurring import settle
from callwright_plugins.mcp_environments.budget.rows import CLOCK, Category, RecurringRule, SessionClock
from callwright_plugins.mcp_environments.times import iso_date


def _due(world: World, since: Moment) -> Moment | None:
    return world.need(SessionClock, CLOCK).next_due, CLOCK


def _run(world: World, key: str) -> list[RecurringRule]:
    """The rules that fell due, as they were before."""
    due = [rule for rule in world.find(RecurringRule, status="active") if rule.next_day <= world.now]
    settle(world)
    return due


def _tells(world: World, key: str, due: list[RecurringRule]) -> Iterable[Notice]:
    for was in due:
        rule = world.need(RecurringRule, was.id)
        category = world.need(Category, rule.category_id).name
        what = f"The recurring expense {rule.description!r} ({rule.id}) of {rule.amount_cents} cents in {category}"
        if rule.entered > was.entered:
            yield Notice(f"{what} was entered for {iso_date(was.next_day)}.")
        if rule.missed > was.missed:
            yield Notice(f"{what} was not entered for {iso_date(was.next_day)}: the category has a hard cap.")
        if rule.status != was.status:
            yield Notice(f"{what} is over: it was the last time.")


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind(
        "recurring_expense",
        "A recurring expense is entered, or a hard cap keeps it out: the owner of the budget is told.",
        _due,
        _tells,
        _run,
    ),
)
