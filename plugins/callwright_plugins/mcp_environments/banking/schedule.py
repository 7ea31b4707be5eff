"""Scheduled payments and holds: when they fall due or lapse, and what happens then.

Tools that write settle first whatever has fallen due; tools that only read look at a copy in which that is done. So
everybody sees payments made at their time, whenever somebody looks. Holds of card payments that nobody collects lapse
one to six days after sessions begin, but only where time moves: nobody's call brings that about.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.banking.access import need_account
from callwright_plugins.mcp_environments.banking.ledger import pay
from callwright_plugins.mcp_environments.banking.rows import CLOCK, NEVER, Account, BankClock, Payee, ScheduledPayment
from callwright_plugins.mcp_environments.times import DAY, WEEK


def current(world: World) -> World:
    """The world as it is now, for tools that only read."""
    if world.now < _clock(world).next_due:
        return world
    return world.ahead(settle)


def settle(world: World) -> None:
    """Make the payments that have fallen due, in the order of their times."""
    clock = _clock(world)
    if world.now < clock.next_due:
        return
    while True:
        pending = sorted((one.due_at, one.id) for one in world.find(ScheduledPayment, status="pending"))
        if not pending or pending[0][0] > world.now:
            break
        _run(world, world.need(ScheduledPayment, pending[0][1]))
    world.update(clock, next_due=pending[0][0] if pending else NEVER)


def next_lapse(world: World) -> tuple[int, str] | None:
    """When the next hold lapses, and of which account."""
    first = next(iter(world.prepared(Account, _held, _held)), None)
    return None if first is None or first[0] == NEVER else (world.base.now + first[0], first[1])


def lapse(world: World) -> int:
    """Let the next hold lapse. Returns its cents."""
    hold = next_lapse(world)
    assert hold is not None
    account = world.need(Account, hold[1])
    world.update(account, held_cents=0)
    return account.held_cents


def _held(account: Account) -> tuple[int, str]:
    """Seconds after which the hold of an account lapses."""
    number = int("".join(filter(str.isdigit, account.id)) or 0)
    return (1 + number % 6) * DAY if account.held_cents else NEVER, account.id


def note_due(world: World, at: int) -> None:
    """Remember that a payment falls due at a time."""
    clock = _clock(world)
    if at < clock.next_due:
        world.put(BankClock(CLOCK, at))


def next_due(at: int, repeat: str, anchor_day: int) -> int:
    """A week later, or on the anchor day of the next month (its last day where it is shorter)."""
    if repeat == "weekly":
        return at + WEEK
    moment = datetime.fromtimestamp(at, UTC)
    year, month = (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
    day = min(anchor_day, monthrange(year, month)[1])
    return int(moment.replace(year=year, month=month, day=day).timestamp())


def _run(world: World, one: ScheduledPayment) -> None:
    failure = ""
    try:
        payee = world.need(Payee, one.payee_id)
        account = need_account(world, one.account_id)
        pay(world, account, payee, one.amount_cents, one.due_at, one.description, convert=one.convert)
    except ToolError as error:  # everything is checked before the first row changes
        failure = error.code
    left = one.left - 1
    world.update(
        one,
        left=left,
        runs=one.runs + (not failure),
        last_failure=failure,
        status="pending" if left else "failed" if failure else "done",
        due_at=next_due(one.due_at, one.repeat, one.anchor_day) if left else one.due_at,
    )


def _clock(world: World) -> BankClock:
    return world.get(BankClock, CLOCK) or BankClock(CLOCK)
