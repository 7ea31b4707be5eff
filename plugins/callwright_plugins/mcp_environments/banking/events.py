"""What the bank does by itself: holds that lapse, scheduled payments, and tokens that expire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from callwright.environments.living.events import SIGNED_IN, EventKind, Moment, Notice, after
from callwright.environments.world import World
from callwright_plugins.mcp_environments.banking.rows import (
    CLOCK,
    Account,
    AuthToken,
    BankClock,
    Payee,
    ScheduledPayment,
)
from callwright_plugins.mcp_environments.banking.schedule import lapse, next_lapse, settle


def _there(world: World, customer_id: str) -> str:
    """Whom to tell: customers who have identified themselves in this session are who is signed in."""
    tokens = world.find(AuthToken, customer_id=customer_id)
    return SIGNED_IN if any(token.issued_at >= world.base.now for token in tokens) else customer_id


def _hold_due(world: World, since: Moment) -> Moment | None:
    return next_lapse(world)


def _lapse(world: World, key: str) -> int:
    return lapse(world)


def _tells_lapse(world: World, key: str, cents: int) -> Iterable[Notice]:
    account = world.need(Account, key)
    yield Notice(
        f"A hold of {cents} cents on account {key} has lapsed; the money can be spent again.",
        _there(world, account.customer_id),
    )


def _payment_due(world: World, since: Moment) -> Moment | None:
    clock = world.get(BankClock, CLOCK)
    return None if clock is None else (clock.next_due, CLOCK)


def _pay(world: World, key: str) -> list[str]:
    due = sorted(
        (one.due_at, one.id) for one in world.find(ScheduledPayment, status="pending") if one.due_at <= world.now
    )
    settle(world)
    return [payment_id for _, payment_id in due]


def _tells_payments(world: World, key: str, ran: list[str]) -> Iterable[Notice]:
    for payment_id in ran:
        one = world.need(ScheduledPayment, payment_id)
        what = f"The scheduled payment {one.id} of {one.amount_cents} cents to {_payee(world, one)}"
        came = f"failed: {one.last_failure}" if one.last_failure else f"was made from account {one.account_id}"
        yield Notice(f"{what} {came}.", _there(world, one.customer_id))


def _payee(world: World, one: ScheduledPayment) -> str:
    payee = world.get(Payee, one.payee_id)
    return one.payee_id if payee is None else payee.name


def _expiry(token: AuthToken) -> Moment:
    return token.expires_at, token.token


def _token_due(world: World, since: Moment) -> Moment | None:
    return next(iter(after(world.prepared(AuthToken, _expiry, _expiry), since)), None)


def _tells_expiry(world: World, key: str, _: Any) -> Iterable[Notice]:
    token = world.need(AuthToken, key)
    yield Notice(
        f"The token of customer {token.customer_id} has expired; verify_identity gives another.",
        _there(world, token.customer_id),
    )


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind("hold_lapsed", "A hold lapses: its customer is told, if signed in.", _hold_due, _tells_lapse, _lapse),
    EventKind(
        "scheduled_payment",
        "A scheduled payment is made or fails: its customer is told, if signed in.",
        _payment_due,
        _tells_payments,
        _pay,
    ),
    EventKind("token_expired", "A token expires: its customer is told, if signed in.", _token_due, _tells_expiry),
)
