"""The purse: one person's money behind a password that only its owner knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.rows import row
from callwright.environments.stateful import Scenario, StatefulEnvironment, Toolsets
from callwright.environments.world import World
from callwright.tools.spec import Refused, ToolError, tool
from callwright_plugins.village.people import ANIMALS, COLOURS, PERSON

#: After so many wrong passwords the purse stays shut.
ATTEMPTS: Final = 3

Amount = Annotated[int, Field(ge=1, le=500, description="How much.")]
Password = Annotated[
    str, Field(max_length=30, description="What only its owner knows.", json_schema_extra={"x-sensitive": True})
]


# How often somebody guessed is no goal of anybody's.
@row("purses", bookkeeping=("wrong",))
class Purse:
    """What is in the purse and what is put by; ``wrong`` passwords were tried since the last right one."""

    id: str
    password: str
    balance: int
    saved: int = 0
    wrong: int = 0


@row("payments", prefix="P", stamps=("at",))
class Payment:
    """Money that left the purse."""

    id: str
    amount: int
    at: int


class Left(TypedDict):
    """What is in the purse."""

    balance: int


@tool(read_only=True, discovery=True)
def get_balance(world: World, /) -> Left:
    """What is in the purse."""
    return {"balance": world.need(Purse, "me").balance}


@tool
def pay(world: World, /, amount: Amount, password: Password) -> Left:
    """Pay from the purse. Fails with TOO_LITTLE. A wrong password is refused (BAD_PASSWORD); the third locks the purse
    (LOCKED)."""
    purse = _opened(world, amount, password)
    world.put(Payment(world.new_id(Payment), amount, world.now))
    return {"balance": world.update(purse, balance=purse.balance - amount).balance}


@tool
def put_by(world: World, /, amount: Amount, password: Password) -> Left:
    """Put money of the purse by, for later. Fails as pay does."""
    purse = _opened(world, amount, password)
    return {"balance": world.update(purse, balance=purse.balance - amount, saved=purse.saved + amount).balance}


def _opened(world: World, amount: int, password: str) -> Purse:
    purse = world.need(Purse, "me")
    if purse.wrong >= ATTEMPTS:
        raise ToolError("LOCKED", "the purse is locked")
    if password != purse.password:
        world.update(purse, wrong=purse.wrong + 1)
        raise Refused("BAD_PASSWORD", "that is not the password")
    if purse.wrong:
        purse = world.update(purse, wrong=0)
    if amount > purse.balance:
        raise ToolError("TOO_LITTLE", "that is more than there is")
    return purse


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """What the owner knows and no tool tells."""
    return {"password": world.need(Purse, "me").password} if entity == "me" else None


def _secret(rng: Random) -> str:
    return f"{rng.choice(COLOURS)} {rng.choice(ANIMALS)}"


def full(rng: Random, scale: float) -> Iterable[Any]:
    """A purse with enough in it."""
    yield Purse("me", _secret(rng), rng.randrange(100, 400), rng.randrange(50))
    for number in range(1, 1 + round(3 * scale)):
        yield Payment(f"P{number:05d}", rng.randrange(1, 90), 1_772_000_000 - 3600 * rng.randrange(900))


def empty(rng: Random, scale: float) -> Iterable[Any]:
    """A purse with next to nothing in it."""
    yield Purse("me", _secret(rng), rng.randrange(4))


def locked(rng: Random, scale: float) -> Iterable[Any]:
    """A purse for which two wrong passwords were tried."""
    yield Purse("me", _secret(rng), rng.randrange(100, 400), wrong=ATTEMPTS - 1)


SCENARIOS: Final = {
    "day": Scenario(full, "a purse with enough in it"),
    "first": Scenario(empty, "a purse that is nearly empty"),
    "slow": Scenario(locked, "a purse of which one more wrong password makes a locked one"),
}
POLICY: Final = Policy(
    "You pay for one person.",
    (
        Rule("The password is what the owner says; nobody guesses it.", "BAD_PASSWORD"),
        Rule("After three wrong passwords the purse stays shut.", "LOCKED"),
        Rule("No more is paid than there is.", "TOO_LITTLE"),
    ),
)


def _signed_in(world: World) -> str:
    return PERSON


def environment(*, toolsets: Toolsets = (), scale: float = 1.0) -> StatefulEnvironment:
    """The environment; ``toolsets`` and ``scale`` as in :class:`callwright.StatefulEnvironment`."""
    return StatefulEnvironment(
        "village-purse",
        rows=(Purse, Payment),
        tools=(get_balance, pay, put_by),
        scenarios=SCENARIOS,
        toolsets=toolsets,
        scale=scale,
        policy=POLICY,
        person=_signed_in,
        knowledge=known,
    )
