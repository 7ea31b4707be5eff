"""Charges: how much the person has paid by the rows of an environment, and what a bank does with it.

    CHARGES = Charges((Charge(Order, paid_for, told_of),), declined="CARD_DECLINED")

``paid_for(world, order)`` is what has been paid for an order by now, less what came back. What it has become more or
less since the scenario is what the session's calls and events cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from callwright.environments.rows import key_text
from callwright.environments.world import World

#: A charge by its number and the key of its row.
Item: TypeAlias = tuple[int, str]


@frozen
class Charge:
    """Rows by which the person pays: ``paid(world, row)`` in cents, negative for what the person gets.

    ``text(world, row)`` is what the statement says. It should name no ids that the session made.
    """

    rows: type[Any]
    paid: Callable[[World, Any], int] = field(repr=False)
    text: Callable[[World, Any], str] = field(repr=False)


@frozen
class Charges:
    """The charges of an environment, in the order in which they are posted.

    ``declined`` is the code of the failure that a tool has where the bank does not pay; without it the bank always
    does, and the account goes below what can be spent.
    """

    of: tuple[Charge, ...]
    declined: str = ""


@frozen
class Bank:
    """What an environment does as the bank of the person.

    ``account(world)`` is the person's account, ``None`` if there is none: as the scenario has it, of whose first state
    it is asked once. ``available(world, account)`` what can be
    charged to it now (0 if it is blocked); ``post(world, account, cents, text, other)`` writes a movement, whose cents
    are negative where the person pays.
    """

    account: Callable[[World], str | None] = field(repr=False)
    available: Callable[[World, str], int] = field(repr=False)
    post: Callable[[World, str, int, str, str], None] = field(repr=False)


@frozen
class Movement:
    """Cents that the person pays (or gets, if negative), and what for."""

    item: Item
    cents: int
    text: str


def movements(world: World, charges: Charges, posted: Mapping[Item, int]) -> list[Movement]:
    """What has been paid since the scenario and is not ``posted``: in the order of the charges, then of the keys."""
    found: list[Movement] = []
    changes = world.changes()
    first: World | None = None
    for number, charge in enumerate(charges.of):
        changed = changes.get(charge.rows)
        if changed is None:
            if not posted:
                continue
            changed = {}
        base = world.base.rows(charge.rows)
        open_items = {(number, key_text(key)): key for key in changed}
        for item in posted:  # a row that is again as it was at first
            if item[0] == number and item not in open_items:
                open_items[item] = next((key for key in base if key_text(key) == item[1]), None)
        for item in sorted(open_items):
            key = open_items[item]
            row, before = world.get(charge.rows, key), base.get(key)
            cents = 0 if row is None else charge.paid(world, row)
            if before is not None:
                first = first or World(world.base)
                cents -= charge.paid(first, before)
            cents -= posted.get(item, 0)
            if cents:
                shown = before if row is None else row
                found.append(Movement(item, cents, "" if shown is None else charge.text(world, shown)))
    return found
