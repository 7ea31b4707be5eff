"""Budget: its surface, every failure, golden edges, and cents that are all accounted for."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from environment_sessions import fails, need, ok, partial, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import NOW, StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.budget import environment
from callwright_plugins.mcp_environments.budget.months import begins, later, next_day
from callwright_plugins.mcp_environments.budget.rows import (
    CLOCK,
    Budget,
    Category,
    Expense,
    Month,
    RecurringRule,
    SessionClock,
)

ENV = environment()
DAY = 86_400
READ = {
    "list_categories",
    "list_expenses",
    "list_recurring_expenses",
    "get_category_status",
    "get_monthly_summary",
}
DISCOVERY = {"list_categories", "list_expenses", "list_recurring_expenses"}
DESTRUCTIVE = {"delete_expense"}
WRITE = {
    "create_category",
    "set_budget",
    "move_budget",
    "add_expense",
    "update_expense",
    "delete_expense",
    "add_recurring_expense",
}


@pytest.fixture
def session() -> StatefulSession:
    """Since January 1,000.00 a month; hard G90001 (rolls over), soft G90002, hard G90003, G90004 archived."""
    opened = ENV.open("sparse")
    world = opened.world
    for row in [*world.rows(Category), *world.rows(Budget), *world.rows(Expense)]:
        world.drop(row)
    world.put(SessionClock(CLOCK, "2026-01", 100_000))
    for number, (name, cap, rollover) in enumerate(
        [("Travel", True, True), ("Food", False, False), ("Rent", True, False), ("Old", False, False)], 1
    ):
        world.put(Category(f"G9000{number}", name, "home", cap, rollover, name == "Old"))
    for number, month in enumerate(("2026-01", "2026-02", "2026-03")):
        world.put(Budget("G90001", month, 10_000, 0))
        world.put(Budget("G90002", month, 30_000, 25_000 + 4_000 * number))
        world.put(Budget("G90003", month, 50_000, 50_000 if number < 2 else 0))
    return opened


def test_the_surface_is_the_one_of_the_paper() -> None:
    tools = ENV.tools
    assert set(tools) == READ | WRITE
    assert len(tools) == 12
    assert {name for name, spec in tools.items() if spec.read_only} == READ
    assert {name for name, spec in tools.items() if spec.discovery} == DISCOVERY
    assert {name for name, spec in tools.items() if spec.destructive} == DESTRUCTIVE


def test_it_keeps_the_rules_of_environments() -> None:
    check_component("environment", environment(), scenarios=tuple(ENV.scenarios))


# Rules ----------------------------------------------------------------------------------------------------------------


def test_what_is_left_rolls_over_or_goes_back(session: StatefulSession) -> None:
    travel = ok(session, "get_category_status", category_id="G90001")
    assert (travel["carried_cents"], travel["available_cents"]) == (20_000, 30_000)
    food = ok(session, "get_category_status", category_id="G90002")
    assert (food["carried_cents"], food["available_cents"]) == (0, -3_000)
    months = {m: ok(session, "get_monthly_summary", month=m) for m in ("2026-01", "2026-02", "2026-03", "2026-04")}
    # 10,000 stay each month; January's food gives back 5,000, February's 1,000, March lacks 3,000, and its rent is free
    assert [one["unallocated_cents"] for one in months.values()] == [10_000, 25_000, 36_000, 183_000]
    assert months["2026-03"]["overspent_category_ids"] == ["G90002"]
    assert [one["locked"] for one in months.values()] == [True, False, False, False]


def test_a_soft_category_warns_and_a_hard_one_refuses(session: StatefulSession) -> None:
    fails(session, "OVER_BUDGET", "add_expense", category_id="G90001", amount_cents=30_001)
    assert ok(session, "add_expense", category_id="G90001", amount_cents=30_000)["available_cents"] == 0
    over = partial(session, "OVER_BUDGET", "add_expense", category_id="G90002", amount_cents=100)
    assert over["available_cents"] == -3_100


def test_an_expense_of_last_month_counts_against_what_was_carried_over(session: StatefulSession) -> None:
    ok(session, "add_expense", category_id="G90001", amount_cents=25_000)
    fails(session, "OVER_BUDGET", "add_expense", category_id="G90001", amount_cents=5_001, day="2026-02-20")
    ok(session, "add_expense", category_id="G90001", amount_cents=5_000, day="2026-02-20")
    assert ok(session, "get_category_status", category_id="G90001")["available_cents"] == 0


def test_months_are_locked_ten_days_after_their_end(session: StatefulSession) -> None:
    add = {"category_id": "G90001", "amount_cents": 100}
    kept = ok(session, "add_expense", **add, day="2026-02-28")["expense_id"]
    fails(session, "MONTH_LOCKED", "add_expense", **add, day="2026-01-31")
    fails(session, "MONTH_LOCKED", "add_expense", **add, day="2025-12-31")
    wait(session, begins("2026-03") + 10 * DAY - NOW - 1)
    ok(session, "update_expense", expense_id=kept, amount_cents=200)
    wait(session, 1)
    fails(session, "MONTH_LOCKED", "add_expense", **add, day="2026-02-28")
    fails(session, "MONTH_LOCKED", "update_expense", expense_id=kept, amount_cents=100)
    fails(session, "MONTH_LOCKED", "delete_expense", expense_id=kept)
    fails(session, "MONTH_LOCKED", "set_budget", category_id="G90001", amount_cents=1, month="2026-02")
    fails(
        session,
        "MONTH_LOCKED",
        "move_budget",
        from_category_id="G90001",
        to_category_id="G90002",
        amount_cents=1,
        month="2026-02",
    )
    new = ok(session, "add_expense", **add)["expense_id"]
    fails(session, "MONTH_LOCKED", "update_expense", expense_id=new, day="2026-02-27")


def test_budgets_come_out_of_what_is_unallocated_now_and_later(session: StatefulSession) -> None:
    call = {"category_id": "G90003"}
    fails(session, "INSUFFICIENT_UNALLOCATED", "set_budget", **call, amount_cents=50_000 + 36_001)
    ok(session, "set_budget", **call, amount_cents=50_000 + 36_000)
    fails(session, "INSUFFICIENT_UNALLOCATED", "set_budget", category_id="G90001", amount_cents=10_001)


def test_a_later_month_that_gave_everything_away_is_not_robbed(session: StatefulSession) -> None:
    ok(session, "set_budget", category_id="G90001", amount_cents=183_000, month="2026-04")
    message = fails(session, "INSUFFICIENT_UNALLOCATED", "set_budget", category_id="G90001", amount_cents=10_001)
    assert "2026-04" in message
    move = {"from_category_id": "G90003", "to_category_id": "G90001"}
    fails(session, "INSUFFICIENT_UNALLOCATED", "move_budget", **move, amount_cents=1)
    ok(session, "set_budget", category_id="G90001", amount_cents=182_000, month="2026-04")
    ok(session, "move_budget", **move, amount_cents=1_000)


def test_a_budget_is_lowered_no_further_than_what_was_spent(session: StatefulSession) -> None:
    ok(session, "add_expense", category_id="G90003", amount_cents=40_000)
    fails(session, "OVER_BUDGET", "set_budget", category_id="G90003", amount_cents=39_999)
    ok(session, "set_budget", category_id="G90003", amount_cents=40_000)
    partial(session, "OVER_BUDGET", "set_budget", category_id="G90002", amount_cents=29_000)


FAILURES: list[tuple[str, str, dict[str, Any]]] = [
    ("NEGATIVE_AMOUNT", "add_expense", {"category_id": "G90001", "amount_cents": 0}),
    ("NEGATIVE_AMOUNT", "add_expense", {"category_id": "G90001", "amount_cents": -5}),
    ("NEGATIVE_AMOUNT", "set_budget", {"category_id": "G90001", "amount_cents": -1}),
    (
        "NEGATIVE_AMOUNT",
        "move_budget",
        {"from_category_id": "G90001", "to_category_id": "G90002", "amount_cents": -1},
    ),
    (
        "NEGATIVE_AMOUNT",
        "add_recurring_expense",
        {"category_id": "G90001", "amount_cents": 0, "first_day": "2026-03-05"},
    ),
    (
        "INSUFFICIENT_BUDGET",
        "move_budget",
        {"from_category_id": "G90001", "to_category_id": "G90002", "amount_cents": 30_001},
    ),
    ("SAME_CATEGORY", "move_budget", {"from_category_id": "G90001", "to_category_id": "G90001", "amount_cents": 1}),
    ("INVALID_STATE", "move_budget", {"from_category_id": "G90001", "to_category_id": "G90004", "amount_cents": 1}),
    ("INVALID_STATE", "add_expense", {"category_id": "G90004", "amount_cents": 1}),
    ("INVALID_STATE", "set_budget", {"category_id": "G90004", "amount_cents": 1}),
    ("NOT_FOUND", "add_expense", {"category_id": "G", "amount_cents": 1}),
    ("NOT_FOUND", "update_expense", {"expense_id": "E"}),
    ("NOT_FOUND", "delete_expense", {"expense_id": "E"}),
    ("NOT_FOUND", "get_category_status", {"category_id": "G"}),
    ("NOT_FOUND", "list_expenses", {"category_id": "G"}),
    ("NOT_FOUND", "list_recurring_expenses", {"category_id": "G"}),
    ("FUTURE_DATE", "add_expense", {"category_id": "G90001", "amount_cents": 1, "day": "2026-03-03"}),
    ("BAD_DATE", "add_expense", {"category_id": "G90001", "amount_cents": 1, "day": "today"}),
    (
        "BAD_DATE",
        "add_recurring_expense",
        {"category_id": "G90001", "amount_cents": 1, "first_day": "2026-03-01"},
    ),
    (
        "OVER_BUDGET",
        "add_recurring_expense",
        {"category_id": "G90001", "amount_cents": 30_001, "first_day": "2026-03-02"},
    ),
    ("BAD_MONTH", "get_monthly_summary", {"month": "2026-13"}),
    ("BAD_MONTH", "get_monthly_summary", {"month": "2025-12"}),
    ("BAD_MONTH", "set_budget", {"category_id": "G90001", "amount_cents": 1, "month": "2027-04"}),
    ("CATEGORY_EXISTS", "create_category", {"name": " tRAVEL "}),
    ("INVALID_NAME", "create_category", {"name": " "}),
    ("BAD_CURSOR", "list_categories", {"cursor": "7"}),
]


@pytest.mark.parametrize(
    ("code", "tool", "arguments"), FAILURES, ids=[f"{case[1]}-{case[0]}-{n}" for n, case in enumerate(FAILURES)]
)
def test_failures_leave_the_state_untouched(
    session: StatefulSession, code: str, tool: str, arguments: dict[str, Any]
) -> None:
    fails(session, code, tool, **arguments)


def test_there_are_not_endless_categories(session: StatefulSession) -> None:
    for number in range(196):
        ok(session, "create_category", name=f"New {number}")
    fails(session, "CATEGORY_LIMIT", "create_category", name="One more")


# Golden edges ---------------------------------------------------------------------------------------------------------


def test_create_set_add_update_delete(session: StatefulSession) -> None:
    new = ok(session, "create_category", name="Bicycle", hard_cap=True)["category_id"]
    spend = {"category_id": new, "amount_cents": 5_000, "description": "Tyre"}
    fails(session, "OVER_BUDGET", "add_expense", **spend)
    ok(session, "set_budget", category_id=new, amount_cents=6_000)
    made = ok(session, "add_expense", **spend)
    assert made["available_cents"] == 1_000
    fails(session, "OVER_BUDGET", "update_expense", expense_id=made["expense_id"], amount_cents=6_001)
    changed = ok(session, "update_expense", expense_id=made["expense_id"], amount_cents=6_000, description="Tyres")
    assert (changed["available_cents"], changed["description"]) == (0, "Tyres")
    fails(
        session,
        "OVER_BUDGET",
        "update_expense",
        expense_id=made["expense_id"],
        category_id="G90003",
        amount_cents=50_001,
    )
    moved = ok(session, "update_expense", expense_id=made["expense_id"], category_id="G90003")
    assert moved["available_cents"] == 44_000
    assert ok(session, "delete_expense", expense_id=made["expense_id"])["available_cents"] == 50_000
    fails(session, "NOT_FOUND", "delete_expense", expense_id=made["expense_id"])


def test_the_status_says_what_can_be_moved(session: StatefulSession) -> None:
    left = ok(session, "get_category_status", category_id="G90001")["available_cents"]
    move = {"from_category_id": "G90001", "to_category_id": "G90002"}
    fails(session, "INSUFFICIENT_BUDGET", "move_budget", **move, amount_cents=left + 1)
    moved = ok(session, "move_budget", **move, amount_cents=left)
    assert (moved["source"]["available_cents"], moved["target"]["available_cents"]) == (0, left - 3_000)


# What comes back ------------------------------------------------------------------------------------------------------


def test_recurring_expenses_are_entered_on_their_day_or_missed(session: StatefulSession) -> None:
    rule = ok(
        session,
        "add_recurring_expense",
        category_id="G90001",
        amount_cents=12_000,
        first_day="2026-03-02",
        every="week",
        times=4,
        description="Fare",
    )
    assert (rule["entered"], rule["next_day"], rule["times_left"]) == (1, "2026-03-09", 3)
    assert ok(session, "get_category_status", category_id="G90001")["upcoming_cents"] == 36_000
    wait(session, 30 * DAY)
    shown = ok(session, "list_recurring_expenses", category_id="G90001")["items"][0]
    assert (shown["status"], shown["entered"], shown["missed"], shown["next_day"]) == ("done", 2, 2, "")
    days = [one["day"] for one in ok(session, "list_expenses", query="fare")["items"]]
    assert days == ["2026-03-09", "2026-03-02"]


@given(st.dates(date(2026, 1, 1), date(2040, 12, 31)), st.integers(1, 40))
def test_months_are_stepped_as_a_calendar_does(first: date, steps: int) -> None:
    at = int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp())
    for step in range(1, steps + 1):
        at = next_day(at, "month", first.day)
        day = datetime.fromtimestamp(at, UTC).date()
        assert day.year * 12 + day.month == first.year * 12 + first.month + step
        assert day.day == first.day or (day.day < first.day and (day + timedelta(days=1)).day == 1)
    assert next_day(at, "week", first.day) == at + 7 * DAY


@given(st.lists(st.integers(1, 20 * DAY), min_size=1, max_size=6), st.sampled_from(["typical", "adversarial"]))
@settings(max_examples=20)
def test_when_somebody_looks_makes_no_difference(waits: list[int], scenario: str) -> None:
    looked, slept = ENV.open(scenario), ENV.open(scenario)
    for number, seconds in enumerate(waits):
        wait(looked, seconds)
        seen = ok(looked, "list_expenses")  # this settles a copy
        ok(looked, "create_category", name=f"new {number}")  # and this the state itself
        assert ok(looked, "list_expenses") == seen
    wait(slept, sum(waits))
    for number, _ in enumerate(waits):
        ok(slept, "create_category", name=f"new {number}")
    assert looked.digest() == slept.digest()


# Every cent -----------------------------------------------------------------------------------------------------------


def accounted(session: StatefulSession) -> None:
    """Income until a month = spent until then + what categories have + what is unallocated; from rows alone."""
    world = session.world
    clock = need(session, SessionClock, CLOCK)
    spent: dict[tuple[str, str], int] = defaultdict(int)
    for expense in world.rows(Expense):
        spent[expense.category_id, expense.month] += expense.amount_cents
        assert datetime.fromtimestamp(expense.day, UTC).strftime("%Y-%m") == expense.month
        need(session, Category, expense.category_id)
    given = {(row.category_id, row.month): row for row in world.rows(Budget)}
    for key, row in given.items():
        assert row.spent_cents == spent.pop(key, 0)
    assert not any(spent.values())
    month, total, gone = clock.first_month, 0, 0
    while month <= "2026-06":
        other = world.get(Month, month)
        total += other.income_cents if other else clock.income_cents
        gone += sum(row.spent_cents for (_, at), row in given.items() if at == month)
        summary = ok(session, "get_monthly_summary", month=month)
        held = sum(line["available_cents"] for line in summary["categories"])
        assert total == gone + held + summary["unallocated_cents"]
        month = later(month)


STEP = st.tuples(
    st.sampled_from(("set", "set", "move", "add", "add", "update", "delete", "create", "wait")),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from((1, 900, 5_000, 20_000, 60_000)),
    st.sampled_from(("2026-02", "2026-03", "2026-04")),
)


@given(st.lists(STEP, max_size=16))
@settings(max_examples=50)
def test_every_cent_is_accounted_for(steps: list[tuple[str, int, int, int, str]]) -> None:
    session = ENV.open("sparse")
    session.world.put(SessionClock(CLOCK, "2026-01", 100_000))
    session.world.put(Category("G90001", "Hard", "x", True, True))
    session.world.put(Category("G90002", "Cap", "x", True, False))
    expenses = ["E00001"]
    for nth, (what, first, second, amount, month) in enumerate(steps):
        names = [row.id for row in session.world.rows(Category)]
        one, two = names[first % len(names)], names[second % len(names)]
        if what == "wait":
            wait(session, 4 * DAY)
        elif what == "create":
            session.call("create_category", {"name": f"new {nth}", "hard_cap": first > 2, "rollover": second > 2})
        elif what == "set":
            session.call("set_budget", {"category_id": one, "amount_cents": amount, "month": month})
        elif what == "move":
            session.call(
                "move_budget",
                {"from_category_id": one, "to_category_id": two, "amount_cents": amount, "month": month},
            )
        elif what == "add":
            day = {"2026-02": "2026-02-15", "2026-03": "2026-03-01"}.get(month, "")
            outcome = session.call("add_expense", {"category_id": one, "amount_cents": amount, "day": day})
            if outcome.executed:
                expenses.append(outcome.value["expense_id"])
        elif what == "update":
            call = {"expense_id": expenses[first % len(expenses)], "amount_cents": amount, "category_id": two}
            session.call("update_expense", call)
        else:
            session.call("delete_expense", {"expense_id": expenses[first % len(expenses)]})
    accounted(session)
    for row in session.world.rows(Category):
        if row.hard_cap:
            for month in ("2026-02", "2026-03", "2026-04", "2026-05"):
                status = ok(session, "get_category_status", category_id=row.id, month=month)
                assert status["available_cents"] >= 0, (row, month)


# Scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 1])
def test_scenarios_are_whole(scenario: str, seed: int) -> None:
    session = ENV.open(scenario, seed)
    assert environment().open(scenario, seed).digest() == session.digest()
    accounted(session)
    world = session.world
    for rule in world.rows(RecurringRule):
        need(session, Category, rule.category_id)
        assert rule.next_day > world.now
    days = [row.day for row in world.rows(Expense)]
    assert days == sorted(days)
    assert max(days) <= world.now
    for row in world.rows(Category):
        if row.hard_cap:
            assert ok(session, "get_category_status", category_id=row.id)["available_cents"] >= 0
    assert ok(session, "get_monthly_summary")["unallocated_cents"] >= 0


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
def test_every_tool_works_somewhere(scenario: str) -> None:
    session = ENV.open(scenario)
    listed = [row for row in ok(session, "list_categories", limit=100)["items"] if not row["archived"]]
    old = max(
        listed, key=lambda one: ok(session, "get_category_status", category_id=one["category_id"])["available_cents"]
    )["category_id"]
    new = ok(session, "create_category", name="Brand new", group="fun", rollover=True)["category_id"]
    ok(session, "set_budget", category_id=new, amount_cents=0)
    if scenario != "adversarial":
        ok(session, "set_budget", category_id=new, amount_cents=5_000)
        ok(session, "move_budget", from_category_id=old, to_category_id=new, amount_cents=1)
    else:
        fails(session, "INSUFFICIENT_UNALLOCATED", "set_budget", category_id=new, amount_cents=5_000)
    made = ok(session, "add_expense", category_id=old, amount_cents=100, description="Trial")["expense_id"]
    ok(session, "update_expense", expense_id=made, amount_cents=50)
    ok(session, "list_expenses", category_id=old, month="2026-03", query="trial")
    ok(session, "delete_expense", expense_id=made)
    ok(session, "add_recurring_expense", category_id=new, amount_cents=1, first_day="2026-03-10")
    ok(session, "list_recurring_expenses")
    accounted(session)


def test_in_the_last_month_money_moves_whatever_is_unallocated() -> None:
    session, last = ENV.open(), "2027-03"
    listed = [row for row in ok(session, "list_categories", limit=100)["items"] if not row["archived"]]
    source = next(row["category_id"] for row in listed if not row["rollover"])
    target = next(row["category_id"] for row in listed if row["rollover"])
    given = ok(session, "get_category_status", category_id=source, month=last)["allocated_cents"]
    unallocated = ok(session, "get_monthly_summary", month=last)["unallocated_cents"]
    ok(session, "set_budget", category_id=source, amount_cents=given + unallocated, month=last)
    moved = {"from_category_id": source, "to_category_id": target, "amount_cents": 1_000}
    ok(session, "move_budget", **moved, month=last)
    assert ok(session, "get_monthly_summary", month=last)["unallocated_cents"] == 0
    accounted(session)
