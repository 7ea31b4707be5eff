"""A shop and a bank whose tools are somebody else's: processes of sessions import this module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import callwright as cw
from callwright.environments.money.charges import Bank, Charge, Charges


@cw.row("purchases", prefix="P")
class Purchase:
    """Something that was bought."""

    id: str
    cents: int


@cw.row("accounts", prefix="A")
class Account:
    """What somebody has."""

    id: str
    cents: int


@cw.tool(latency=4)
def buy(world: cw.World, /, cents: int) -> dict[str, int]:
    """Buy something."""
    world.put(Purchase(world.new_id(Purchase), cents))
    return {"process": os.getpid(), "bought": world.count(Purchase)}


@cw.tool(read_only=True)
def bought(world: cw.World, /) -> int:
    """How much was bought."""
    return world.count(Purchase)


@cw.tool(read_only=True)
def balance(world: cw.World, /) -> int:
    """What is left."""
    return world.need(Account, "A1").cents


def nothing(rng: Random, scale: float) -> Iterator[Purchase]:
    """No purchase yet."""
    return iter(())


def accounts(rng: Random, scale: float) -> Iterator[Account]:
    """One account."""
    yield Account("A1", 1000)


def paid(world: cw.World, purchase: Purchase) -> int:
    """The price."""
    return purchase.cents


def told(world: cw.World, purchase: Purchase) -> str:
    """What the statement says."""
    return "a purchase"


def account(world: cw.World) -> str | None:
    """The only one."""
    return "A1"


def available(world: cw.World, account_id: str) -> int:
    """All of it."""
    return world.need(Account, account_id).cents


def post(world: cw.World, account_id: str, cents: int, text: str, other: str) -> None:
    """The new balance."""
    row = world.need(Account, account_id)
    world.update(row, cents=row.cents + cents)


SHOP = cw.StatefulEnvironment(
    "shop",
    rows=[Purchase],
    tools=[buy, bought],
    scenarios={"typical": cw.Scenario(nothing)},
    charges=Charges((Charge(Purchase, paid, told),), declined="DECLINED"),
)
BANK = cw.StatefulEnvironment(
    "bank",
    rows=[Account],
    tools=[balance],
    scenarios={"typical": cw.Scenario(accounts)},
    bank=Bank(account, available, post),
)
