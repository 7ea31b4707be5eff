"""Rows of the bank. Amounts are cents of the row's currency, times seconds of the Unix clock (UTC)."""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row

#: The key of the only row of :class:`BankClock`, and a time that never comes (the end of the year 9999).
CLOCK: Final = "clock"
NEVER: Final = 253_402_300_799


@row("customers", prefix="C")
class Customer:
    """A person with accounts; ``two_factor`` asks for a one-time password besides the PIN."""

    id: str
    first: str
    last: str
    email: str
    phone: str
    city: str
    birth_date: str
    two_factor: bool

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"


# What signing in uses up and counts: no goal, and no damage that lasts.
@row("credentials", bookkeeping=("otps", "failed", "locked_until"))
class Credential:
    """What a customer must know; no tool shows it. ``failed`` counts wrong secrets in a row."""

    customer_id: str
    pin: str
    otps: tuple[str, ...]
    failed: int = 0
    locked_until: int = 0


# A proof of having signed in: to sign in once more, or not at all, leaves the bank as it was.
@row("auth_tokens", index=("customer_id",), bookkeeping=True)
class AuthToken:
    """A proof of identity until ``expires_at``."""

    token: str
    customer_id: str
    issued_at: int
    expires_at: int


# Movements say what was spent today.
@row(
    "accounts",
    prefix="A",
    index=("customer_id", "iban"),
    generated=("iban",),
    stamps=("opened_at",),
    bookkeeping=("spent_day", "spent_cents", "held_cents"),
)
class Account:
    """An account: ``spent_cents`` is what counted against the limit on ``spent_day`` (days since 1970).

    ``held_cents`` are reserved by whoever was paid by card, until that lapses; no tool changes them.
    """

    id: str
    customer_id: str
    kind: str  # checking, savings, business
    currency: str
    nickname: str
    iban: str
    balance_cents: int
    held_cents: int
    overdraft_cents: int
    daily_limit_cents: int
    status: str  # active, frozen, closed
    opened_at: int
    spent_day: int = 0
    spent_cents: int = 0

    @property
    def available_cents(self) -> int:
        """What can be spent: balance less holds plus overdraft."""
        return self.balance_cents - self.held_cents + self.overdraft_cents


@row("cards", prefix="K", index=("account_id",))
class Card:
    """A card of an account."""

    id: str
    account_id: str
    customer_id: str
    last4: str
    status: str  # active, frozen, lost, stolen
    expires: str  # the last month in which it is good: 2027-08


@row("payees", prefix="P", index=("customer_id",), stamps=("added_at",), relative={"verified_at": "added_at"})
class Payee:
    """Somebody a customer may pay, from ``verified_at`` on; ``matches`` is false if the account has another name."""

    id: str
    customer_id: str
    name: str
    iban: str
    currency: str
    added_at: int
    verified_at: int
    matches: bool = True


# The balance in between hangs on the order of movements that do not hang on each other.
@row("transactions", prefix="T", index=("account_id",), stamps=("at",), bookkeeping=("balance_after_cents",))
class Transaction:
    """One movement of an account; ``amount_cents`` is negative when money leaves."""

    id: str
    account_id: str
    kind: str  # deposit, withdrawal, transfer_in, transfer_out, payment, card
    amount_cents: int
    balance_after_cents: int
    at: int
    description: str
    counterparty: str


@row("scheduled_payments", prefix="S", index=("account_id", "status"))
class ScheduledPayment:
    """A payment to come, ``left`` times, next at ``due_at``; ``anchor_day`` is the day of the month it began on."""

    id: str
    customer_id: str
    account_id: str
    payee_id: str
    amount_cents: int
    description: str
    due_at: int
    repeat: str  # once, weekly, monthly
    left: int
    anchor_day: int
    status: str  # pending, done, failed, cancelled
    convert: bool = False
    runs: int = 0
    last_failure: str = ""


@row("fx_rates")
class FxRate:
    """Millionths of ``quote`` for one ``base`` in the middle; the bank keeps ``margin_bps`` hundredths of a percent."""

    pair: str  # EUR/USD
    base: str
    quote: str
    mid_e6: int
    margin_bps: int

    @property
    def customer_e6(self) -> int:
        """Millionths of ``quote`` that a customer gets for one ``base``."""
        return self.mid_e6 * (10_000 - self.margin_bps) // 10_000


# When to look again.
@row("bank_clock", bookkeeping=True)
class BankClock:
    """No scheduled payment falls due before ``next_due``."""

    id: str
    next_due: int = NEVER


ROWS: Final = (
    Customer,
    Credential,
    AuthToken,
    Account,
    Card,
    Payee,
    Transaction,
    ScheduledPayment,
    FxRate,
    BankClock,
)
