"""One person's money: what parts charge is posted to the account in the part that is the bank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callwright.environments.composed.parts import Part
from callwright.environments.money.charges import Bank, Movement, movements
from callwright.environments.protocol import Outcome
from callwright.environments.world import World


class Purse:
    """The account of one composed session. It holds nothing: what is posted is known by each part."""

    __slots__ = ("_bank", "_opened", "_part")

    def __init__(self, part: Part, bank: Bank, opened: Callable[[Part], Any]) -> None:
        self._part, self._bank, self._opened = part, bank, opened

    def pays(self, part: Part) -> bool:
        """Whether calls of a part may cost something here."""
        return part is not self._part and part.charges is not None and part.world_now

    def call(self, part: Part, call: Callable[[], Outcome]) -> Outcome:
        """A call that may cost something. Where the bank does not pay, nothing of it has happened."""
        session = part.session
        before: World = session.world.fork()
        outcome = call()
        found = movements(session.world, part.charges, part.posted)
        if not found:
            return outcome
        cents = sum(one.cents for one in found)
        declined: str = part.charges.declined
        if declined and cents > 0:
            bank, account = self._account()
            available = 0 if account is None else self._bank.available(bank, account)
            if cents > available:
                session.enter(before)
                said = f"the bank does not pay {cents} cents: {available} can be spent from the account of the card"
                return Outcome("execution_error", None, declined, said)
        self._post(part, found)
        return outcome

    def settle(self, part: Part) -> bool:
        """Post what events of a part cost. Whether there was anything."""
        found = movements(part.session.world, part.charges, part.posted)
        self._post(part, found)
        return bool(found)

    def _account(self) -> tuple[World, str | None]:
        world: World = self._opened(self._part).world
        return world, self._bank.account(world)

    def _post(self, part: Part, found: list[Movement]) -> None:
        world, account = self._account()
        for one in found:
            part.posted[one.item] = part.posted.get(one.item, 0) + one.cents
            if account is not None:
                world.begin(read_only=False)
                self._bank.post(world, account, -one.cents, one.text, part.name)
                world.end()
