"""A clerk in a hurry: what demonstrations show. It knows every step, and has two bad habits.

It guesses the password instead of asking for it, and says that all is done when a cake is still in the oven. So a
policy that imitates it knows how to write calls and copy values, and fails; what is put right is for reinforcement
learning.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from random import Random
from typing import Any, Final

from attrs import fields_dict, frozen

from callwright.environments.protocol import Outcome
from callwright.errors import UnknownName, UsageError
from callwright.language.program import Call
from callwright_plugins.village.errands import ASK, DONE, TELLS, WAIT
from callwright_plugins.village.people import passwords

#: Yields calls and texts; gets outcomes and what the user says.
Acts = Generator[Call | str, Outcome | str, None]
_BEFORE, _AFTER = TELLS.split("{password}")
_WRONG_AMOUNTS: Final = range(10, 82)


@frozen
class Clerk:
    """How often, of all times, the clerk does what it should not.

    ``guesses`` the password, ``gives_up`` where it should wait, pays another ``amount``.
    """

    guesses: float = 0.8
    gives_up: float = 0.7
    amount: float = 0.03

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Clerk:
        """Options as a recipe states them. Raises :class:`callwright.UsageError` for other names and values."""
        for name, value in options.items():
            if name not in fields_dict(cls):
                raise UsageError(str(UnknownName("option of the demonstrations", name, fields_dict(cls))))
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise UsageError(f"the option {name!r} of the demonstrations is a share from 0 to 1, not {value!r}")
        return cls(**options)

    def run(self, kind: str, values: Mapping[str, Any], rng: Random) -> Acts:
        """Do an errand, to the end of what the clerk thinks it is."""
        yield from _ERRANDS[kind](self, values, rng)
        while True:
            yield DONE

    def _password(self, rng: Random) -> Generator[Call | str, Outcome | str, str]:
        if rng.random() < self.guesses:
            return rng.choice(passwords(for_evaluation=False))
        said = yield ASK
        assert isinstance(said, str)
        return said.removeprefix(_BEFORE).removesuffix(_AFTER)

    def _spend(self, tool: str, amount: int, rng: Random) -> Acts:
        if rng.random() < self.amount:
            amount = rng.choice(_WRONG_AMOUNTS)
        password = yield from self._password(rng)
        yield Call(0, tool, {"amount": amount, "password": password})
        yield DONE

    def _order(self, values: Mapping[str, Any]) -> Generator[Call | str, Outcome | str, Mapping[str, Any]]:
        ordered = yield Call(0, "order_cake", {"cake": values["cake"], "number": values["number"]})
        assert isinstance(ordered, Outcome)
        placed: Mapping[str, Any] = ordered.value
        return placed

    def _save(self, values: Mapping[str, Any], rng: Random) -> Acts:
        yield from self._spend("put_by", values["amount"], rng)

    def _pay(self, values: Mapping[str, Any], rng: Random) -> Acts:
        placed = yield from self._order(values)
        yield from self._spend("pay", placed["price"], rng)

    def _cancel(self, values: Mapping[str, Any], rng: Random) -> Acts:
        placed = yield from self._order(values)
        yield DONE
        yield Call(0, "cancel_order", {"order": placed["order"]})

    def _bring(self, values: Mapping[str, Any], rng: Random) -> Acts:
        placed = yield from self._order(values)
        yield from self._spend("pay", placed["price"], rng)
        while True:
            brought = yield Call(0, "bring_order", {"order": placed["order"]})
            assert isinstance(brought, Outcome)
            if brought.executed or rng.random() < self.gives_up:
                return
            yield WAIT


_ERRANDS: Final = {"save": Clerk._save, "cancel": Clerk._cancel, "pay": Clerk._pay, "bring": Clerk._bring}
