"""Errands: what somebody in the village wants, with a goal by the tables of bakery and purse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from attrs import frozen

from callwright.environments.living.policy import ClockPolicy
from callwright.environments.stateful import NOW
from callwright_plugins.village.bakery import CAKES, NUMBERS
from callwright_plugins.village.people import held_out

#: What an agent may say; in the first the user hears what it is asked for.
ASK: Final = "What is your password?"
DONE: Final = "It is done."
WAIT: Final = "It is not ready yet."
#: What the user says.
TELLS: Final = "My password is {password}."
INSISTS: Final = "That is not done yet."
THANKS: Final = "Thank you."
BRING: Final = "Bring them home."
CANCEL: Final = "I do not need them. Cancel that."
#: How often the user insists.
PATIENCE: Final = 3
#: A call takes 20 seconds, the user ten minutes.
CLOCK: Final = ClockPolicy(call=20, user_turn=600)
#: Money to put by; prices are numbers of the same size.
AMOUNTS: Final = range(10, 82)


@frozen
class Known:
    """What a task is made of: prices by cake, and what is in the purse."""

    prices: Mapping[str, int]
    balance: int
    saved: int


@frozen
class Errand:
    """What is asked for, what the user says later, the goal, and the values that the words stand for."""

    kind: str
    query: str
    then: tuple[str, ...]
    goal: Mapping[str, Any]
    values: Mapping[str, Any]


_Draw = Callable[[Random, bool, Known], Errand]


def _pay(rng: Random, for_evaluation: bool, known: Known) -> Errand:
    return _paid("pay", "placed", (), rng, for_evaluation, known)


def _bring(rng: Random, for_evaluation: bool, known: Known) -> Errand:
    return _paid("bring", "brought", (BRING,), rng, for_evaluation, known)


def _paid(kind: str, state: str, then: tuple[str, ...], rng: Random, for_evaluation: bool, known: Known) -> Errand:
    name, number = _cakes(rng, for_evaluation)
    price = number * known.prices[name]
    payment = {"table": "village-purse.payments", "where": {"amount": price, "at": {"at_least": NOW}}, "count": 1}
    goal = {"holds": [_order(name, number, state), payment, _purse(known.balance - price, known.saved)]}
    query = f"Order {number} {name} cakes and pay for them."
    return Errand(kind, query, then, goal, {"cake": name, "number": number, "price": price})


def _cancel(rng: Random, for_evaluation: bool, known: Known) -> Errand:
    name, number = _cakes(rng, for_evaluation)
    goal = {"holds": [_order(name, number, "cancelled")]}
    query = f"Order {number} {name} cakes. I pay later."
    return Errand("cancel", query, (CANCEL,), goal, {"cake": name, "number": number})


def _save(rng: Random, for_evaluation: bool, known: Known) -> Errand:
    amount = rng.choice([one for one in AMOUNTS if held_out(one) == for_evaluation])
    goal = {"holds": [_purse(known.balance - amount, known.saved + amount)]}
    return Errand("save", f"Put {amount} by.", (), goal, {"amount": amount})


def _cakes(rng: Random, for_evaluation: bool) -> tuple[str, int]:
    kinds = [(place, name, one) for place, name in enumerate(CAKES) for one in NUMBERS]
    return rng.choice([(name, one) for place, name, one in kinds if held_out(place, one) == for_evaluation])


def _order(name: str, number: int, state: str) -> dict[str, Any]:
    where = {"cake": name, "number": number, "state": state, "placed": {"at_least": NOW}}
    return {"table": "village-bakery.orders", "where": where, "count": 1}


def _purse(balance: int, saved: int) -> dict[str, Any]:
    return {"table": "village-purse.purses", "where": {"id": "me"}, "has": {"balance": balance, "saved": saved}}


#: By kind: how it is drawn, and how many calls it takes.
KINDS: Final[Mapping[str, tuple[_Draw, int]]] = {
    "save": (_save, 1),
    "cancel": (_cancel, 2),
    "pay": (_pay, 2),
    "bring": (_bring, 3),
}


def draw(kind: str, rng: Random, *, for_evaluation: bool, known: Known) -> Errand:
    """An errand of a kind with cakes or amounts of one side."""
    return KINDS[kind][0](rng, for_evaluation, known)
