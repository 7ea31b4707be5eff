"""The bank's worlds: an ordinary branch, an almost empty one, and one full of traps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import attrs

from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.banking.iban import make_iban, own_iban
from callwright_plugins.mcp_environments.banking.rows import (
    CLOCK,
    NEVER,
    Account,
    AuthToken,
    BankClock,
    Card,
    Credential,
    Customer,
    FxRate,
    Payee,
    ScheduledPayment,
    Transaction,
)
from callwright_plugins.mcp_environments.people import CITIES, FIRST, LAST, company, email_of
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE

CURRENCIES: Final = ("EUR", "EUR", "EUR", "USD", "GBP", "CHF")
#: Mid rates for one euro, in millionths.
_PER_EURO: Final = {"EUR": 1_000_000, "USD": 1_083_400, "GBP": 856_200, "CHF": 941_700}
_SHOPS: Final = ("Groceries", "Train ticket", "Bookshop", "Coffee", "Pharmacy", "Fuel", "Restaurant", "Cinema")
_BILLS: Final = ("Rent", "Electricity", "Insurance", "Internet", "Gym", "Phone")


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """An ordinary branch: at scale 1, 120 customers with some 260 accounts and 2,600 movements."""
    customers = [_customer(rng, number, rng.choice(FIRST), rng.choice(LAST)) for number in range(1, _n(120, scale) + 1)]
    yield from customers
    yield from (_credential(rng, customer) for customer in customers)
    yield from _rates(("EUR", "USD", "GBP", "CHF"))
    accounts: list[Account] = []
    for customer in customers:
        for nth in range(rng.choice((1, 2, 2, 3))):
            accounts.append(_account(rng, len(accounts) + 1, customer, nth))
    payees = _payees(rng, customers, accounts, each=(1, 4))
    yield from _history(rng, accounts, 10)
    yield from _cards(rng, accounts)
    yield from payees
    yield from _schedule(rng, accounts, payees)


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """A branch on its first day: a customer without account, one without payees, one with one of everything."""
    customers = [_customer(rng, number, rng.choice(FIRST), rng.choice(LAST)) for number in range(1, _n(3, scale) + 1)]
    yield from customers
    yield from (_credential(rng, customer) for customer in customers)
    yield from _rates(("EUR", "USD"))
    owners = customers[1:] or customers
    accounts = [_account(rng, number + 1, owner, 0) for number, owner in enumerate(owners)]
    payees = _payees(rng, owners[-1:], accounts, each=(1, 1))
    yield from _history(rng, accounts[-1:], 3)
    yield from (_with(account, balance_cents=0, held_cents=0) for account in accounts[:-1])
    yield from _cards(rng, accounts[-1:])
    yield from payees
    yield BankClock(CLOCK)


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Names shared by several customers, and accounts frozen, closed, empty, on hold or at their limit."""
    names = [(rng.choice(FIRST), rng.choice(LAST)) for _ in range(_n(12, scale))]
    customers: list[Customer] = []
    for first, last in names:
        for variant in ((first, last), (first, last), (first, last + "s"), (first[:-1] + "y", last)):
            customers.append(_customer(rng, len(customers) + 1, *variant))
    customers = [_with(one, two_factor=number % 2 == 0) for number, one in enumerate(customers)]
    yield from customers
    for number, customer in enumerate(customers):
        secret = _credential(rng, customer)
        if number % 6 == 5:
            secret = _with(secret, locked_until=NOW + 6 * HOUR)
        elif number % 6 in (3, 4):
            secret = _with(secret, failed=2)
        yield secret
        if number % 4 == 0:
            yield AuthToken(f"tok_{rng.getrandbits(96):024x}", customer.id, NOW - HOUR, NOW - HOUR + 15 * MINUTE)
    yield from _rates(("EUR", "USD", "GBP"))
    accounts: list[Account] = []
    for customer in customers:
        for nth in range(3):
            accounts.append(_account(rng, len(accounts) + 1, customer, nth))
    rows = list(_history(rng, accounts, 4))
    made = {row.id: row for row in rows if isinstance(row, Account)}
    for number, account in enumerate(made.values()):
        match number % 8:
            case 1:
                account = _with(account, status="frozen")
            case 2:
                account = _with(account, status="closed")
            case 3:
                account = _with(account, held_cents=max(0, account.balance_cents), overdraft_cents=0)
            case 4:
                account = _with(account, spent_day=NOW // DAY, spent_cents=account.daily_limit_cents - 1)
            case 5:
                account = _with(account, daily_limit_cents=0)
        made[account.id] = account
    yield from made.values()
    yield from (row for row in rows if not isinstance(row, Account))
    for number, card in enumerate(_cards(rng, accounts)):
        yield _with(card, status=("active", "frozen", "lost", "stolen")[number % 4], last4=f"{number // 4 % 10:04d}")
    payees = _payees(rng, customers, accounts, each=(2, 4))
    states: tuple[dict[str, Any], ...] = ({}, {"matches": False}, {"verified_at": NOW + 5 * HOUR}, {"verified_at": NOW})
    payees = [_with(payee, **states[number % 4]) for number, payee in enumerate(payees)]
    yield from payees
    yield from _schedule(rng, accounts, payees)


def _n(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def _with(row: Any, **changes: Any) -> Any:
    return attrs.evolve(row, **changes)


def _customer(rng: Random, number: int, first: str, last: str) -> Customer:
    return Customer(
        id=f"C{number:05d}",
        first=first,
        last=last,
        email=email_of(first, last, number),
        phone=f"+49 30 {rng.randrange(10**6, 10**7)}",
        city=rng.choice(CITIES),
        birth_date=f"{rng.randint(1940, 2006)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
        two_factor=rng.random() < 0.25,
    )


def _credential(rng: Random, customer: Customer) -> Credential:
    return Credential(
        customer_id=customer.id,
        pin=f"{rng.randrange(10_000):04d}",
        otps=tuple(f"{code:06d}" for code in sorted(rng.sample(range(10**6), 5))),
    )


def _rates(currencies: Sequence[str]) -> Iterator[FxRate]:
    for base in currencies:
        for quote in currencies:
            if base != quote:
                mid = _PER_EURO[quote] * 1_000_000 // _PER_EURO[base]
                yield FxRate(f"{base}/{quote}", base, quote, mid, 50)


def _account(rng: Random, number: int, customer: Customer, nth: int) -> Account:
    kind = "checking" if nth == 0 else rng.choice(("checking", "savings", "savings", "business"))
    currency = "EUR" if nth == 0 else rng.choice(CURRENCIES)
    return Account(
        id=f"A{number:05d}",
        customer_id=customer.id,
        kind=kind,
        currency=currency,
        nickname=rng.choice(("Everyday", "Household", "Holiday", "Rainy day", "Main", "Car")),
        iban=own_iban(number),
        balance_cents=0,
        held_cents=rng.choice((0, 0, 0, 2_500, 10_000)) if kind == "checking" else 0,
        overdraft_cents=rng.choice((0, 0, 50_000)) if kind == "checking" else 0,
        daily_limit_cents=rng.choice((100_000, 200_000, 200_000, 500_000)),
        status="active" if rng.random() < 0.95 else rng.choice(("frozen", "closed")),
        opened_at=NOW - rng.randint(200, 3000) * DAY,
    )


def _history(rng: Random, accounts: Iterable[Account], each: int) -> Iterator[Any]:
    """The accounts with their balances, and the movements that led there, in the order of their times."""
    balances: dict[str, int] = {}
    found: list[tuple[int, str, str, int, str, str]] = []
    for account in accounts:
        found.append((NOW - 91 * DAY, account.id, "deposit", rng.randint(200, 9_000) * 100, "First deposit", "counter"))
        for _ in range(rng.randint(each // 2, each + each // 2)):
            at = NOW - rng.randint(1, 90 * 24 * 60) * MINUTE
            if rng.random() < 0.3:
                found.append((at, account.id, "transfer_in", rng.randint(50_00, 3_000_00), "Salary", company(rng)))
            elif account.kind != "savings":
                shop = rng.choice(_SHOPS)
                found.append((at, account.id, "card", -rng.randint(2_00, 150_00), shop, f"{shop} {rng.choice(CITIES)}"))
            else:
                found.append((at, account.id, "deposit", rng.randint(10_00, 200_00), "Savings", "counter"))
    found.sort()
    for number, (at, account_id, kind, amount, text, other) in enumerate(found, 1):
        amount = max(amount, -balances.get(account_id, 0))  # nobody went below zero
        if amount == 0:
            amount = 1_00
            kind, text, other = "deposit", "Refund", "counter"
        balances[account_id] = balances.get(account_id, 0) + amount
        yield Transaction(f"T{number:05d}", account_id, kind, amount, balances[account_id], at, text, other)
    for account in accounts:
        yield _with(
            account, balance_cents=balances[account.id], held_cents=min(account.held_cents, balances[account.id])
        )


def _cards(rng: Random, accounts: Sequence[Account]) -> Iterator[Card]:
    number = 0
    for account in accounts:
        if account.kind == "savings":
            continue
        for _ in range(rng.choice((1, 1, 2))):
            number += 1
            yield Card(
                id=f"K{number:05d}",
                account_id=account.id,
                customer_id=account.customer_id,
                last4=f"{rng.randrange(10_000):04d}",
                status=rng.choice(("active",) * 8 + ("frozen", "lost")),
                expires=f"{rng.randint(2026, 2029)}-{rng.randint(1, 12):02d}",
            )


def _payees(
    rng: Random, customers: Sequence[Customer], accounts: Sequence[Account], each: tuple[int, int]
) -> list[Payee]:
    names = {customer.id: customer.name for customer in customers}
    found: list[Payee] = []
    for customer in customers:
        taken: set[str] = set()
        for _ in range(rng.randint(*each)):
            target = rng.choice(accounts)
            if rng.random() < 0.4 and target.customer_id != customer.id and target.customer_id in names:
                name, iban, currency = names[target.customer_id], target.iban, target.currency
            else:
                digits = f"{rng.randrange(10**8):08d}{rng.randrange(10**10):010d}"
                name, iban, currency = company(rng), make_iban("DE", digits), rng.choice(CURRENCIES[:4])
            if iban in taken:
                continue
            taken.add(iban)
            added = NOW - rng.randint(2, 400) * DAY
            payee_id = f"P{len(found) + 1:05d}"
            found.append(Payee(payee_id, customer.id, name, iban, currency, added, added + DAY))
    return found


def _schedule(rng: Random, accounts: Sequence[Account], payees: Sequence[Payee]) -> Iterator[Any]:
    """Payments to come, of customers with a payee and an account that may pay; and the clock."""
    first = NEVER
    paying = {account.customer_id: account for account in accounts if account.kind != "savings"}
    number = 0
    for payee in payees:
        account = paying.get(payee.customer_id)
        if account is None or rng.random() < 0.7 or account.currency != payee.currency:
            continue
        number += 1
        repeat = rng.choice(("once", "monthly", "monthly", "weekly"))
        day = rng.randint(1, 28)
        due = NOW - 9 * HOUR + day * DAY + 6 * HOUR
        first = min(first, due)
        yield ScheduledPayment(
            id=f"S{number:05d}",
            customer_id=payee.customer_id,
            account_id=account.id,
            payee_id=payee.id,
            amount_cents=rng.randint(5, 900) * 100,
            description=rng.choice(_BILLS),
            due_at=due,
            repeat=repeat,
            left=1 if repeat == "once" else rng.randint(2, 24),
            anchor_day=datetime.fromtimestamp(due, UTC).day,
            status="pending",
        )
    yield BankClock(CLOCK, first)


SCENARIOS: Final = {
    "typical": Scenario(typical, "an ordinary branch with 120 customers"),
    "sparse": Scenario(sparse, "a branch on its first day: hardly anything is there"),
    "adversarial": Scenario(adversarial, "namesakes, locked customers, frozen accounts, exhausted limits"),
}
