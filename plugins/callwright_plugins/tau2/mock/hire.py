"""The world of the domain: bicycles are hired by the hour; the agent is at the desk, the user stands at the lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.rows import row
from callwright.environments.stateful import Scenario, StatefulEnvironment
from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool

#: Euros an hour, and hours that a hire has at most.
PRICE: Final = 4
LONGEST: Final = 24

HireId = Annotated[str, Field(max_length=8, description="The hire, such as H1.")]


@row("hires")
class Hire:
    """A hire: its customer, bicycle and hours; ``open`` or ``ended``, or waiting for a ``mechanic``."""

    id: str
    customer: str
    bicycle: str
    hours: int
    state: str = "open"


@row("locks", key="bicycle")
class Lock:
    """The lock of a bicycle, with the code that opens it; an empty battery takes no code."""

    bicycle: str
    locked: bool
    code: str
    charged: bool = True


class HireView(TypedDict):
    """A hire as the desk sees it."""

    hire: str
    customer: str
    bicycle: str
    hours: int
    price: int
    state: str


class LockView(TypedDict):
    """A lock as whoever stands before it sees it."""

    bicycle: str
    locked: bool
    display: str


class NewCode(TypedDict):
    """A new code for a lock."""

    hire: str
    code: str


# The desk -------------------------------------------------------------------------------------------------------------


@tool(read_only=True)
def find_hires(
    world: World, /, customer: Annotated[str, Field(max_length=60, description="A full name.")]
) -> list[str]:
    """Find the hires of a customer."""
    return [one.id for one in world.rows(Hire) if one.customer.casefold() == customer.casefold()]


@tool(read_only=True)
def hire_details(world: World, /, hire: HireId) -> HireView:
    """Look at a hire. Fails with NOT_FOUND."""
    return _view(world.need(Hire, hire))


@tool
def extend_hire(
    world: World, /, hire: HireId, hours: Annotated[int, Field(ge=1, le=100, description="How many hours more.")]
) -> HireView:
    """Let a hire last longer. Fails with NOT_FOUND, ENDED, TOO_LONG."""
    found = _open(world, hire)
    if found.hours + hours > LONGEST:
        raise ToolError("TOO_LONG", f"a hire has at most {LONGEST} hours")
    return _view(world.update(found, hours=found.hours + hours))


@tool
def new_code(world: World, /, hire: HireId) -> NewCode:
    """Give the lock of a hire a new code. Fails with NOT_FOUND, ENDED."""
    found = _open(world, hire)
    lock = world.need(Lock, found.bicycle)
    code = f"{(int(lock.code) * 7 + 1234) % 10_000:04d}"
    world.update(lock, code=code)
    return {"hire": found.id, "code": code}


@tool
def end_hire(world: World, /, hire: HireId) -> HireView:
    """End a hire whose bicycle is locked. Fails with NOT_FOUND, ENDED, NOT_LOCKED."""
    found = _open(world, hire)
    if not world.need(Lock, found.bicycle).locked:
        raise ToolError("NOT_LOCKED", "the bicycle is not locked")
    return _view(world.update(found, state="ended"))


@tool
def send_mechanic(
    world: World, /, hire: HireId, note: Annotated[str, Field(max_length=200, description="What is wrong.")]
) -> HireView:
    """Send somebody who mends the bicycle or its lock. Fails with NOT_FOUND, ENDED."""
    return _view(world.update(_open(world, hire), state="mechanic"))


def _open(world: World, hire: str) -> Hire:
    found = world.need(Hire, hire)
    if found.state != "open":
        raise ToolError("ENDED", f"{hire} is not open: {found.state}")
    return found


def _view(found: Hire) -> HireView:
    return {
        "hire": found.id,
        "customer": found.customer,
        "bicycle": found.bicycle,
        "hours": found.hours,
        "price": found.hours * PRICE,
        "state": found.state,
    }


# The user -------------------------------------------------------------------------------------------------------------

Bicycle = Annotated[str, Field(max_length=8, description="The bicycle, such as B1.")]


@tool(read_only=True)
def look_at_lock(world: World, /, bicycle: Bicycle) -> LockView:
    """Look at the lock of a bicycle. Fails with NOT_FOUND."""
    return _seen(world.need(Lock, bicycle))


@tool
def close_lock(world: World, /, bicycle: Bicycle) -> LockView:
    """Close the lock of a bicycle. Fails with NOT_FOUND."""
    return _seen(world.update(world.need(Lock, bicycle), locked=True))


@tool
def type_code(
    world: World, /, bicycle: Bicycle, code: Annotated[str, Field(max_length=8, description="Four digits.")]
) -> LockView:
    """Open the lock of a bicycle with a code. Fails with NOT_FOUND, DARK, WRONG_CODE."""
    lock = world.need(Lock, bicycle)
    if not lock.charged:
        raise ToolError("DARK", "the display stays dark")
    if code != lock.code:
        raise ToolError("WRONG_CODE", "the lock blinks red")
    return _seen(world.update(lock, locked=False))


@tool(hidden=True)
def drain_battery(world: World, /, bicycle: Bicycle) -> LockView:
    """Let the battery of a lock run empty, for tasks that begin so. Fails with NOT_FOUND."""
    return _seen(world.update(world.need(Lock, bicycle), charged=False))


def _seen(lock: Lock) -> LockView:
    return {"bicycle": lock.bicycle, "locked": lock.locked, "display": "green" if lock.charged else "dark"}


# The whole ------------------------------------------------------------------------------------------------------------


def hires(rng: Random, scale: float) -> Iterable[Any]:
    """Always the same few hires."""
    yield Hire("H1", "Ada Brandt", "B1", 3)
    yield Hire("H2", "Ben Castell", "B2", 5)
    yield Hire("H3", "Cleo Dahl", "B3", 20)
    yield Hire("H4", "Ada Brandt", "B4", 2, "ended")
    for number, locked in enumerate((True, False, True, True), 1):
        yield Lock(f"B{number}", locked, f"{1111 * number:04d}")


def lock_is(world: World, bicycle: str, locked: bool) -> bool:
    """Whether a lock is closed, or open, as stated."""
    return world.need(Lock, bicycle).locked is locked


def hire_is(world: World, hire: str, state: str) -> bool:
    """Whether a hire is in a state."""
    return world.need(Hire, hire).state == state


#: What the tasks' assertions ask, by name.
ASSERTIONS: Final[Mapping[str, Callable[..., bool]]] = {"lock_is": lock_is, "hire_is": hire_is}

POLICY: Final = Policy(
    "You are at the desk of a bicycle hire, where an hour costs 4 euros, and write with a customer.",
    (
        Rule("A hire has at most 24 hours; nobody gets more.", "TOO_LONG"),
        Rule("A hire ends when the bicycle is locked, which the customer does.", "NOT_LOCKED"),
        Rule("What has ended stays so.", "ENDED"),
    ),
)


def environment() -> StatefulEnvironment:
    """The environment."""
    return StatefulEnvironment(
        "tau2-mock",
        rows=(Hire, Lock),
        tools=(find_hires, hire_details, extend_hire, new_code, end_hire, send_mechanic),
        user_tools=(look_at_lock, close_lock, type_code, drain_battery),
        scenarios={"day": Scenario(hires, "a few hires of one day")},
        policy=POLICY,
    )
