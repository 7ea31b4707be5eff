"""The account of the customer at the counter as that to which other environments post what they charge."""

from __future__ import annotations

from typing import Final

from callwright.environments.money.charges import Bank
from callwright.environments.world import World
from callwright_plugins.mcp_environments.banking.knowledge import at_the_counter
from callwright_plugins.mcp_environments.banking.ledger import post
from callwright_plugins.mcp_environments.banking.rows import Account, Card
from callwright_plugins.mcp_environments.times import iso


def account_of_the_card(world: World) -> str | None:
    """The first account of the scenario that can pay, with a good card and in euros before others."""
    customer = at_the_counter(world)
    if customer is None:
        return None
    first = World(world.base)
    accounts = [one for one in first.find(Account, customer_id=customer.id) if one.kind != "savings"]
    found = min(accounts, key=lambda one: _rank(first, one), default=None)
    return None if found is None else found.id


def _rank(world: World, account: Account) -> tuple[bool, bool, bool]:
    return account.status != "active", not _good_cards(world, account), account.currency != "EUR"


def _good_cards(world: World, account: Account) -> list[Card]:
    month, cards = iso(world.now)[:7], world.find(Card, account_id=account.id)
    return [card for card in cards if card.status == "active" and card.expires >= month]


def chargeable(world: World, account_id: str) -> int:
    """What the account can pay now: nothing if it is not active, or if its cards were good and are not any more."""
    account = world.need(Account, account_id)
    had_card = bool(_good_cards(World(world.base), account))
    if account.status != "active" or (had_card and not _good_cards(world, account)):
        return 0
    return max(0, account.available_cents)


def enter(world: World, account_id: str, cents: int, text: str, other: str) -> None:
    """A movement of the card; daily limits are those of cash and transfers, not of cards."""
    post(world, world.need(Account, account_id), "card", cents, world.now, text, other)


BANK: Final = Bank(account_of_the_card, chargeable, enter)
