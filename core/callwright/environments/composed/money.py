"""One person's money: what parts charge is posted to the account in the part that is the bank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callwright.environments.composed.parts import Part
from callwright.environments.living.passing import most_told
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

    def call(self, part: Part, call: Callable[..., Outcome], tool: str, arguments: dict[str, Any]) -> Outcome:
        """A call that may cost something. Where the bank does not pay, nothing of it has happened."""
        session = part.session
        # Where time passes in it, too, the call is not the last thing that happened.
        before: World | None = session.world.fork() if part.takes_time else None
        outcome = call(tool, arguments)
        found = movements(session.world, part.charges, part.posted)
        if not found:
            return outcome
        bank, account = self._account()
        cents = sum([one.cents for one in found])
        declined: str = part.charges.declined
        if declined and cents > 0:
            available = 0 if account is None else self._bank.available(bank, account)
            if cents > available:
                told: tuple[str, ...] = ()
                if before is None:
                    session.world.take_back()
                else:  # but the time that it took has passed
                    taken = session.now - before.now
                    session.enter(before)
                    session.let_pass(taken)
                    told = most_told(session.take_notices())
                said = f"the bank does not pay {cents} cents: {available} can be spent from the account of the card"
                return Outcome("execution_error", None, declined, said, notices=told)
        self._post(part, found, bank, account)
        return outcome

    def settle(self, part: Part) -> bool:
        """Post what events of a part cost. Whether there was anything."""
        found = movements(part.session.world, part.charges, part.posted)
        if found:
            self._post(part, found, *self._account())
        return bool(found)

    def _account(self) -> tuple[World, str | None]:
        world: World = self._opened(self._part).world
        return world, world.derived(self._bank.account)

    def _post(self, part: Part, found: list[Movement], bank: World, account: str | None) -> None:
        for one in found:
            part.posted[one.item] = part.posted.get(one.item, 0) + one.cents
            if account is not None:
                bank.begin(read_only=False)
                self._bank.post(bank, account, -one.cents, one.text, part.name)
                bank.end()
