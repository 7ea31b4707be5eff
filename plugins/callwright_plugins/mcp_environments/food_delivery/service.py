"""When a restaurant is open and a menu served, how long a delivery takes, and what a basket costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.food_delivery.rows import (
    Address,
    Basket,
    BasketItem,
    District,
    Item,
    Menu,
    Option,
    Order,
    Promo,
    Restaurant,
    Zone,
)
from callwright_plugins.mcp_environments.times import DAY, MINUTE, iso

METRES_A_MINUTE: Final = 250  # a bicycle at 15 km/h
DAY_MINUTES: Final = 1440
#: Minutes of the day in which kitchens take half as long again.
BUSY: Final = ((12 * 60, 14 * 60), (18 * 60, 21 * 60))
SERVICE_PERCENT: Final = 5
SERVICE_LIMITS: Final = (99, 399)


def clock(now: int) -> tuple[int, int]:
    """Weekday (Monday = 0) and minute of the day in UTC."""
    days, seconds = divmod(now, DAY)
    return (days + 3) % 7, seconds // MINUTE  # 1 January 1970 was a Thursday


def within_hours(hours: Sequence[tuple[int, int, int]], now: int) -> bool:
    """Whether opening hours cover a time; the last minute is not part of them."""
    weekday, minute = clock(now)
    return any(
        (day == weekday and first <= minute < last)
        or (day == (weekday - 1) % 7 and first <= minute + DAY_MINUTES < last)  # the night of the day before
        for day, first, last in hours
    )


def next_opening(restaurant: Restaurant, now: int) -> int | None:
    """When a restaurant that is closed takes orders again, within a week; ``None`` if it does not."""
    start = max(now, restaurant.paused_until)
    if within_hours(restaurant.hours, start):
        return start
    midnight = start - start % DAY
    weekday, _ = clock(start)
    openings = [
        midnight + (day - weekday) % 7 * DAY + first * MINUTE + (7 * DAY if late else 0)
        for day, first, _ in restaurant.hours
        for late in (False, True)
    ]
    return min((opening for opening in openings if opening > start), default=None)


def is_open(restaurant: Restaurant, now: int) -> bool:
    """Whether a restaurant takes orders."""
    return now >= restaurant.paused_until and within_hours(restaurant.hours, now)


def check_open(world: World, restaurant: Restaurant) -> None:
    """Fails with ``RESTAURANT_CLOSED``."""
    if not is_open(restaurant, world.now):
        opening = next_opening(restaurant, world.now)
        when = f"it takes orders again at {iso(opening)}" if opening is not None else "it has no opening hours"
        raise ToolError("RESTAURANT_CLOSED", f"{restaurant.name} ({restaurant.id}) is closed; {when}")


def is_served(world: World, item: Item) -> bool:
    """Whether an item can be ordered at this time of the day."""
    menu = world.need(Menu, item.menu_id)
    return not item.sold_out and menu.from_minute <= clock(world.now)[1] < menu.to_minute


def check_served(world: World, item: Item) -> None:
    """Fails with ``ITEM_UNAVAILABLE``."""
    if item.sold_out:
        raise ToolError("ITEM_UNAVAILABLE", f"{item.name} ({item.id}) is sold out")
    if not is_served(world, item):
        menu = world.need(Menu, item.menu_id)
        raise ToolError(
            "ITEM_UNAVAILABLE",
            f"{item.name} ({item.id}) is on the menu {menu.name!r}, served from {hhmm(menu.from_minute)} to "
            f"{hhmm(menu.to_minute)} UTC",
        )


def hhmm(minute: int) -> str:
    """``07:30``; minutes past midnight count on: ``25:00`` is one o'clock in the night after."""
    return f"{minute // 60:02d}:{minute % 60:02d}"


def zone_for(world: World, restaurant: Restaurant, address: Address) -> Zone:
    """The delivery zone of an address; fails with ``OUT_OF_ZONE``."""
    zone = world.get(Zone, (restaurant.id, address.district_id))
    if zone is None:
        where = world.need(District, address.district_id).name
        raise ToolError(
            "OUT_OF_ZONE", f"{restaurant.name} ({restaurant.id}) does not deliver to {where} ({address.id})"
        )
    return zone


def distance_m(world: World, restaurant: Restaurant, district_id: str) -> int:
    """How far a courier rides: along streets between the middles of districts, and 400 m inside one."""
    start, end = world.need(District, restaurant.district_id), world.need(District, district_id)
    return 400 + abs(start.x_m - end.x_m) + abs(start.y_m - end.y_m)


@frozen
class Schedule:
    """How long the steps of a delivery take, in minutes."""

    prepare: int
    ride: int

    @property
    def total(self) -> int:
        """From the order to the door: the kitchen begins after five minutes."""
        return 5 + self.prepare + self.ride


def schedule(world: World, restaurant: Restaurant, district_id: str) -> Schedule:
    """How long an order placed now takes."""
    _, minute = clock(world.now)
    busy = any(first <= minute < last for first, last in BUSY)
    prepare = restaurant.prepare_minutes * 3 // 2 if busy else restaurant.prepare_minutes
    return Schedule(prepare, -(-distance_m(world, restaurant, district_id) // METRES_A_MINUTE))


# Prices ---------------------------------------------------------------------------------------------------------------


def unit_price(world: World, line: BasketItem) -> int:
    """What one unit of a line costs with its options."""
    price = world.need(Item, line.item_id).price_cents
    return price + sum(world.need(Option, name).delta_cents for name in line.option_ids)


@frozen
class Bill:
    """What a basket costs. ``problem`` is why its promo counts nothing, as code and sentence."""

    lines: list[BasketItem]
    subtotal_cents: int
    discount_cents: int
    delivery_cents: int
    service_cents: int
    min_order_cents: int
    problem: tuple[str, str] | None

    @property
    def total_cents(self) -> int:
        """What is charged."""
        return self.subtotal_cents - self.discount_cents + self.delivery_cents + self.service_cents


def bill(world: World, basket: Basket) -> Bill:
    """The basket at today's prices. The service fee is 5 percent of the food within limits, before discounts."""
    lines = world.find(BasketItem, basket_id=basket.id)
    subtotal = sum(unit_price(world, line) * line.quantity for line in lines)
    zone = world.need(Zone, (basket.restaurant_id, world.need(Address, basket.address_id).district_id))
    low, high = SERVICE_LIMITS
    service = min(max(subtotal * SERVICE_PERCENT // 100, low), high) if lines else 0
    delivery, discount, problem = zone.fee_cents if lines else 0, 0, None
    if basket.promo_code:
        promo = world.need(Promo, basket.promo_code)
        problem = promo_problem(world, promo, basket.restaurant_id, subtotal)
        if problem is None and promo.kind == "free_delivery":
            delivery = 0
        elif problem is None:
            discount = subtotal * promo.value // 100 if promo.kind == "percent" else promo.value
            discount = min(discount, subtotal)
            if promo.max_discount_cents is not None:
                discount = min(discount, promo.max_discount_cents)
    return Bill(lines, subtotal, discount, delivery, service, zone.min_order_cents, problem)


def promo_problem(world: World, promo: Promo, restaurant_id: str, subtotal: int) -> tuple[str, str] | None:
    """Why a promo does not count, as code and sentence; ``None`` if it does."""
    if world.now >= promo.expires_at:
        return "PROMO_EXPIRED", f"{promo.code} expired at {iso(promo.expires_at)}"
    if promo.used:
        return "PROMO_USED", f"{promo.code} has been used"
    if promo.restaurant_id and promo.restaurant_id != restaurant_id:
        return "PROMO_NOT_HERE", f"{promo.code} is for {promo.restaurant_id} only, not for {restaurant_id}"
    if promo.first_order_only and any(order.cancelled_at is None for order in world.rows(Order)):
        return "PROMO_FIRST_ORDER", f"{promo.code} is for a first order, and there are earlier ones"
    if subtotal < promo.min_spend_cents:
        return "PROMO_MIN_SPEND", f"{promo.code} needs {promo.min_spend_cents} cents of food; there are {subtotal}"
    return None
