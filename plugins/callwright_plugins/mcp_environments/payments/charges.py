"""What the merchant takes in: captures, less refunds. Only euros go to the account."""

from __future__ import annotations

from typing import Final

from callwright.environments.money.charges import Charge, Charges
from callwright.environments.world import World
from callwright_plugins.mcp_environments.payments.rows import Customer, Payment


def paid(world: World, payment: Payment) -> int:
    """Income, and so below zero."""
    return payment.refunded_cents - payment.captured_cents if payment.currency == "EUR" else 0


def told(world: World, payment: Payment) -> str:
    """On the statement."""
    return f"Payments of {world.need(Customer, payment.customer_id).name}"


CHARGES: Final = Charges((Charge(Payment, paid, told),))
