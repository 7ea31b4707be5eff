"""The bakery: cakes are ordered, baked while time passes, and brought home."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.living.events import EventKind, Moment, Notice, after
from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.rows import row
from callwright.environments.stateful import Scenario, StatefulEnvironment, Toolsets
from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.village.people import PERSON

CAKES: Final = ("apple", "carrot", "cherry", "honey", "lemon", "plum", "poppy", "walnut")
#: What a cake costs, and how many of one kind can be ordered at once.
PRICES: Final = range(2, 10)
NUMBERS: Final = range(2, 10)
#: Minutes in which an order is baked.
BAKING: Final = (5, 15, 25, 35, 45)
#: Orders are called O10 to O99.
IDS: Final = range(10, 100)

Id = Annotated[str, Field(max_length=8, description="The order, as order_cake calls it.")]


@row("cakes", key="name")
class Cake:
    """A kind of cake and its price."""

    name: str
    price: int


@row("ovens", bookkeeping=True)
class Oven:
    """How many minutes an order takes today."""

    id: str
    minutes: int


@row("orders", stamps=("placed",), relative={"baked": "placed"})
class Order:
    """An order: placed, brought or cancelled; it can be brought from ``baked`` on."""

    id: str
    cake: str
    number: int
    price: int
    placed: int
    baked: int
    state: str = "placed"


class CakeView(TypedDict):
    """A kind of cake."""

    cake: str
    price: int


class Placed(TypedDict):
    """A new order, what it costs, and how many minutes it takes."""

    order: str
    price: int
    minutes: int


class OrderState(TypedDict):
    """An order: placed, brought or cancelled."""

    order: str
    state: str


@tool(read_only=True, discovery=True)
def list_cakes(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[CakeView]:
    """List the cakes and what one of each costs."""
    return page(list(world.rows(Cake)), lambda cake: {"cake": cake.name, "price": cake.price}, limit, cursor)


@tool
def order_cake(
    world: World,
    /,
    cake: Annotated[str, Field(max_length=20, description="The kind; see list_cakes.")],
    number: Annotated[int, Field(ge=1, le=20, description="How many.")],
) -> Placed:
    """Order cakes; they are baked at once. The bakery does not take money: it is paid from the purse. Fails with
    NOT_FOUND."""
    kind = world.need(Cake, cake, message=f"there is no {cake} cake")
    free = [f"O{one}" for one in IDS if world.get(Order, f"O{one}") is None]
    if not free:
        raise ToolError("FULL", "the book of orders is full")
    minutes = world.need(Oven, "oven").minutes
    order = Order(world.random().choice(free), cake, number, number * kind.price, world.now, world.now + 60 * minutes)
    world.put(order)
    return {"order": order.id, "price": order.price, "minutes": minutes}


@tool
def bring_order(world: World, /, order: Id) -> OrderState:
    """Have an order brought home. Fails with NOT_FOUND, NOT_BAKED, OVER."""
    wanted = _open(world, order)
    if world.now < wanted.baked:
        raise ToolError("NOT_BAKED", "it is still in the oven")
    return _over(world, wanted, "brought")


@tool(destructive=True)
def cancel_order(world: World, /, order: Id) -> OrderState:
    """Cancel an order. Fails with NOT_FOUND, OVER."""
    return _over(world, _open(world, order), "cancelled")


def _open(world: World, order: str) -> Order:
    found = world.need(Order, order, message="there is no such order")
    if found.state != "placed":
        raise ToolError("OVER", "that order is over")
    return found


def _over(world: World, order: Order, state: str) -> OrderState:
    world.update(order, state=state)
    return {"order": order.id, "state": state}


def _moment(order: Order) -> Moment:
    return order.baked, order.id


def _due(world: World, since: Moment) -> Moment | None:
    waiting = sorted(_moment(order) for order in world.find(Order, state="placed"))
    return next(iter(after(waiting, since)), None)


def _tells(world: World, order: str, came: Any) -> Iterable[Notice]:
    yield Notice(f"{order} is baked.")


def baking(rng: Random, scale: float) -> Iterable[Any]:
    """A price for each cake, and some orders of other days."""
    yield from (Cake(name, rng.choice(PRICES)) for name in CAKES)
    yield Oven("oven", rng.choice(BAKING))
    for number in rng.sample(IDS, max(1, round(3 * scale))):
        name, count, at = rng.choice(CAKES), rng.choice(NUMBERS), 1_772_000_000 - 3600 * rng.randrange(900)
        yield Order(f"O{number}", name, count, count * 5, at, at + 900, rng.choice(("brought", "cancelled")))


def nothing_ordered(rng: Random, scale: float) -> Iterable[Any]:
    """The same on the first day: there are no orders."""
    yield from (one for one in baking(rng, scale) if not isinstance(one, Order))


def slow(rng: Random, scale: float) -> Iterable[Any]:
    """An oven that takes two hours."""
    yield from (Oven(one.id, 120) if isinstance(one, Oven) else one for one in baking(rng, scale))


SCENARIOS: Final = {
    "day": Scenario(baking, "a day with orders of other days in the book"),
    "first": Scenario(nothing_ordered, "the first day, without orders"),
    "slow": Scenario(slow, "a day on which the oven takes two hours"),
}
POLICY: Final = Policy(
    "You order cakes for one person.",
    (
        Rule("An order is brought when it is baked.", "NOT_BAKED"),
        Rule("What was brought or cancelled is over.", "OVER"),
    ),
)
EVENTS: Final = (EventKind("baked", "An order is baked: whoever ordered it is told.", _due, _tells),)


def _signed_in(world: World) -> str:
    return PERSON


def environment(*, toolsets: Toolsets = (), scale: float = 1.0) -> StatefulEnvironment:
    """The environment; ``toolsets`` and ``scale`` as in :class:`callwright.StatefulEnvironment`."""
    return StatefulEnvironment(
        "village-bakery",
        rows=(Cake, Oven, Order),
        tools=(list_cakes, order_cake, bring_order, cancel_order),
        scenarios=SCENARIOS,
        toolsets=toolsets,
        scale=scale,
        policy=POLICY,
        person=_signed_in,
        events=EVENTS,
    )
