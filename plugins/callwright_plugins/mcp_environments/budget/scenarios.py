"""The household's worlds: nine months of a family, a first day, and one full of traps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import attrs

from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.budget.months import begins, later, span
from callwright_plugins.mcp_environments.budget.rows import (
    CLOCK,
    NEVER,
    Budget,
    Category,
    Expense,
    Month,
    RecurringRule,
    SessionClock,
)
from callwright_plugins.mcp_environments.people import CITIES
from callwright_plugins.mcp_environments.times import DAY

#: Name, group, usual budget in cents, hard cap, rollover.
_HOUSEHOLD: Final = (
    ("Rent", "home", 120_000, True, False),
    ("Groceries", "food", 60_000, False, False),
    ("Eating out", "food", 20_000, True, False),
    ("Electricity", "home", 9_000, False, True),
    ("Internet", "home", 4_500, True, False),
    ("Car", "transport", 18_000, False, True),
    ("Train tickets", "transport", 9_000, False, False),
    ("Holiday", "fun", 25_000, True, True),
    ("Cinema", "fun", 5_000, True, False),
    ("Books", "fun", 4_000, False, True),
    ("Clothes", "personal", 12_000, True, True),
    ("Pharmacy", "health", 5_000, False, False),
    ("Dentist", "health", 8_000, True, True),
    ("Gifts", "personal", 6_000, False, True),
    ("School", "family", 15_000, False, False),
    ("Pets", "family", 7_000, True, False),
)
_MORE: Final = ("Garden", "Music", "Sports", "Repairs", "Insurance", "Charity", "Hobby", "Coffee")
_RULES: Final = (
    ("Rent", 118_000, "month"),
    ("Internet", 4_490, "month"),
    ("Electricity", 7_800, "month"),
    ("Cinema", 1_200, "week"),
    ("Pets", 2_900, "month"),
    ("Car", 5_500, "month"),
    ("School", 3_000, "week"),
    ("Groceries", 8_000, "week"),
)
FIRST: Final = "2025-07"


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """A family since July: at scale 1, 20 categories, some 1,300 expenses, 8 recurring ones."""
    categories = _categories(rng, _n(20, scale))
    yield from (category for category, _ in categories)
    usual = sum(budget for _, budget in categories) + 30_000
    yield Month("2025-12", usual + 80_000)
    yield from _past(rng, categories, span(FIRST, "2026-03"), 7)
    rules = _rules([category for category, _ in categories])
    yield from rules
    yield SessionClock(CLOCK, FIRST, usual, min((rule.next_day for rule in rules), default=NEVER))


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """The first month: three categories, of which one has a budget; one expense; nothing recurs."""
    categories = _categories(rng, _n(3, scale))
    yield from (category for category, _ in categories)
    first, budget = categories[0]
    spent = rng.randrange(500, 2_000)
    yield Budget(first.id, "2026-03", budget, spent)
    yield Expense("E00001", first.id, "2026-03", begins("2026-03"), spent, "First of all")
    yield SessionClock(CLOCK, "2026-03", budget + 100_000)


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Look-alike and archived categories, envelopes that are empty to the cent, months about to be locked."""
    pairs: list[tuple[Category, int]] = []
    for category, budget in _categories(rng, _n(12, scale)):
        number = len(pairs) + 1
        pairs.append((_with(category, id=f"G{number:05d}"), budget))
        pairs.append((_with(category, id=f"G{number + 1:05d}", name=category.name + "s", hard_cap=True), budget))
        pairs.append((_with(category, id=f"G{number + 2:05d}", name=f"{category.name} (old)", archived=True), 0))
    yield from (category for category, _ in pairs)
    yield from _past(rng, pairs, span("2025-11", "2026-03"), 4, to_the_cent=True)
    rules = [
        _with(rule, amount_cents=rule.amount_cents * 3, id=f"Q{number:05d}")
        for number, rule in enumerate(_rules([category for category, _ in pairs]), 1)
    ]
    yield from rules
    yield SessionClock(
        CLOCK, "2025-11", sum(budget for _, budget in pairs), min((rule.next_day for rule in rules), default=NEVER)
    )


def _n(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def _with(row: Any, **changes: Any) -> Any:
    return attrs.evolve(row, **changes)


def _categories(rng: Random, count: int) -> list[tuple[Category, int]]:
    found: list[tuple[Category, int]] = []
    for number in range(1, count + 1):
        if number <= len(_HOUSEHOLD):
            name, group, budget, cap, rollover = _HOUSEHOLD[number - 1]
        else:
            extra = number - len(_HOUSEHOLD) - 1
            name, group = _MORE[extra % len(_MORE)], "other"
            if extra >= len(_MORE):
                name = f"{name} {extra // len(_MORE) + 1}"
            budget, cap, rollover = rng.randint(20, 90) * 100, rng.random() < 0.5, rng.random() < 0.5
        found.append((Category(f"G{number:05d}", name, group, cap, rollover), budget))
    return found


def _past(
    rng: Random,
    categories: Sequence[tuple[Category, int]],
    months: Sequence[str],
    each: int,
    *,
    to_the_cent: bool = False,
) -> Iterator[Any]:
    """Budgets of all months, and expenses up to today, in the order of their days; hard caps are kept."""
    found: list[tuple[int, str, str, int, str]] = []
    for category, budget in categories:
        carried = 0
        for month in months:
            first, last = begins(month), min(begins(later(month)), NOW // DAY * DAY + DAY) - DAY
            spent = 0
            left = carried + budget
            count = rng.randint(each // 2, each + each // 2) if last - first > 5 * DAY else rng.randint(0, 1)
            for nth in range(count if budget else 0):
                amount = rng.randint(1, max(1, budget // max(1, each) * 2))
                if category.hard_cap or to_the_cent:
                    amount = min(amount, left - spent)
                    if to_the_cent and nth == count - 1:
                        amount = left - spent
                if amount > 0:
                    spent += amount
                    day = first + rng.randint(0, (last - first) // DAY) * DAY
                    found.append((day, category.id, month, amount, f"{category.name} {rng.choice(CITIES)}"))
            if budget or spent:
                yield Budget(category.id, month, budget, spent)
            carried = left - spent if category.rollover else 0
    for number, (day, category_id, month, amount, text) in enumerate(sorted(found), 1):
        yield Expense(f"E{number:05d}", category_id, month, day, amount, text)


def _rules(categories: Sequence[Category]) -> list[RecurringRule]:
    by_name = {category.name: category.id for category in categories}
    found: list[RecurringRule] = []
    for number, (name, amount, every) in enumerate(_RULES):
        if name in by_name:
            day = NOW // DAY * DAY + (1 + number * 3) * DAY
            anchor = datetime.fromtimestamp(day, UTC).day
            rule_id = f"Q{len(found) + 1:05d}"
            left = None if number % 3 else 12
            found.append(RecurringRule(rule_id, by_name[name], name, amount, every, day, anchor, left, "active"))
    return found


SCENARIOS: Final = {
    "typical": Scenario(typical, "a family with 20 categories since July 2025"),
    "sparse": Scenario(sparse, "a budget on its first days: three categories, one expense"),
    "adversarial": Scenario(adversarial, "look-alike and archived categories, envelopes empty to the cent"),
}
