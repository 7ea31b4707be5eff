"""A world of somebody else, extended: ``banking`` with pledges, a table that every scenario of the bank has rows in.

cw.environment("banking-with-pledges")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Annotated, Any

from pydantic import Field

import callwright as cw
from callwright.environments.briefing.policy import Rule
from callwright.environments.stateful import extended
from callwright_plugins.mcp_environments.banking.rows import Account

AccountId = Annotated[str, Field(description="Id of an account, such as A00017.")]


@cw.row("pledges", prefix="P", index=("account_id",))
class Pledge:
    """Money of an account that was promised to somebody."""

    id: str
    account_id: str
    cents: int


def fill(rows: Sequence[Any], random: Random, scale: float) -> Iterator[Pledge]:
    """Every third account of a scenario has a pledge."""
    accounts = [row for row in rows if isinstance(row, Account)]
    for number, account in enumerate(accounts[::3], 1):
        yield Pledge(f"P{number:05d}", account.id, 100 * random.randrange(1, 50))


@cw.tool
def pledge(world: cw.World, /, account_id: AccountId, cents: Annotated[int, Field(gt=0)]) -> dict[str, str]:
    """Promise money of an account. Fails with PLEDGED_TOO_MUCH beyond what is on it."""
    account = world.need(Account, account_id)
    promised = sum(one.cents for one in world.find(Pledge, account_id=account_id))
    if promised + cents > account.balance_cents:
        raise cw.ToolError("PLEDGED_TOO_MUCH", f"{promised} cents of {account.balance_cents} are promised already")
    return {"id": world.put(Pledge(world.new_id(Pledge), account_id, cents)).id}


@cw.tool(read_only=True)
def list_pledges(world: cw.World, /, account_id: AccountId) -> list[dict[str, str | int]]:
    """The pledges of an account."""
    return [{"id": one.id, "cents": one.cents} for one in world.find(Pledge, account_id=account_id)]


def banking_with_pledges(registry: cw.Registry) -> cw.StatefulEnvironment:
    """Callwright's ``banking``, and pledges."""
    bank: cw.StatefulEnvironment = registry.create("environment", "banking")
    return extended(
        bank,
        "banking-with-pledges",
        rows=[Pledge],
        tools=[pledge, list_pledges],
        fill=fill,
        rules=[Rule("Nobody pledges more than is on the account.", "PLEDGED_TOO_MUCH")],
    )
