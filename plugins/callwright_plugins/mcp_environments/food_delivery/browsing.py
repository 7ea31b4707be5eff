"""Tools that read: restaurants, menus, options, addresses, estimates."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.closed_sets import none_such
from callwright_plugins.mcp_environments.food_delivery.rows import (
    Address,
    District,
    Item,
    Menu,
    Option,
    OptionGroup,
    Promo,
    PromoKind,
    Restaurant,
    Zone,
)
from callwright_plugins.mcp_environments.food_delivery.service import (
    DAY_MINUTES,
    clock,
    distance_m,
    hhmm,
    is_open,
    is_served,
    next_opening,
    schedule,
    zone_for,
)
from callwright_plugins.mcp_environments.times import MINUTE, iso

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

RestaurantId = Annotated[
    str, Field(description="Restaurant id, such as R00012, from search_restaurants.", max_length=40)
]
ItemId = Annotated[str, Field(description="Item id, such as I00120, from get_menu.", max_length=40)]
AddressId = Annotated[str, Field(description="Address id, such as A00001, from list_addresses.", max_length=40)]


class RestaurantSummary(TypedDict):
    """A restaurant in a list; the delivery fields are null where no address was given."""

    restaurant_id: str
    name: str
    cuisine: str
    open_now: bool
    rating: Annotated[float | None, Field(description="1 to 5 stars; null: none.")]
    delivery_fee_cents: Annotated[int | None, Field(description="To address_id; null without one.")]
    min_order_cents: Annotated[int | None, Field(description="To address_id; null without one.")]
    delivery_minutes: Annotated[int | None, Field(description="To address_id; null without one.")]


class Hours(TypedDict):
    """Opening hours of a day, as UTC times; a close above 24:00 is in the night after."""

    day: str
    opens: Annotated[str, Field(description="UTC.")]
    closes: Annotated[str, Field(description="UTC; above 24:00: in the night after.")]


class PromoView(TypedDict):
    """A promo code that the restaurant advertises."""

    code: str
    kind: PromoKind
    percent: Annotated[int | None, Field(description="Off the subtotal; null: a fixed amount.")]
    amount_cents: Annotated[int | None, Field(description="Off the subtotal; null: a percentage.")]
    min_spend_cents: int
    first_order_only: Annotated[bool, Field(description="Only for a first order.")]
    expires_at: str


class ZoneView(TypedDict):
    """A district that a restaurant delivers to."""

    district: str
    fee_cents: Annotated[int, Field(description="Delivery.")]
    min_order_cents: Annotated[int, Field(description="Least subtotal.")]


class RestaurantView(TypedDict):
    """A restaurant in full; ``next_opening`` is null while it is open."""

    restaurant_id: str
    name: str
    cuisine: str
    district: str
    open_now: bool
    next_opening: Annotated[str | None, Field(description="When it opens next; null: it is open, or will not open.")]
    rating: Annotated[float | None, Field(description="1 to 5 stars; null: none.")]
    rating_count: Annotated[int, Field(description="How many.")]
    hours: list[Hours]
    zones: list[ZoneView]
    promos: list[PromoView]


class MenuItem(TypedDict):
    """An item of a menu."""

    item_id: str
    name: str
    description: str
    menu: str
    served: Annotated[str, Field(description="When the menu is served.")]
    price_cents: Annotated[int, Field(description="Without options.")]
    vegetarian: bool
    available_now: Annotated[bool, Field(description="Whether it is served at this hour and not sold out.")]
    has_required_options: Annotated[bool, Field(description="Options have to be chosen.")]


class OptionView(TypedDict):
    """An option."""

    option_id: str
    name: str
    delta_cents: Annotated[int, Field(description="What the option adds to the price, or takes off it.")]
    available: bool


class GroupView(TypedDict):
    """A group of options; at least ``min_choices`` and at most ``max_choices`` are taken."""

    group_id: str
    name: str
    min_choices: int
    max_choices: int
    options: list[OptionView]


class ItemOptions(TypedDict):
    """The choices for an item."""

    item_id: str
    name: str
    price_cents: Annotated[int, Field(description="Without options.")]
    groups: list[GroupView]


class AddressView(TypedDict):
    """A saved address."""

    address_id: str
    label: str
    street: str
    district: str


class Estimate(TypedDict):
    """What delivery costs and when an order placed now would arrive."""

    restaurant_id: str
    address_id: str
    fee_cents: Annotated[int, Field(description="Delivery.")]
    min_order_cents: Annotated[int, Field(description="Least subtotal.")]
    distance_m: Annotated[int, Field(description="From the restaurant to the address.")]
    prepare_minutes: int
    delivery_minutes: Annotated[int, Field(description="From the order on, preparing included.")]
    arrives_at: Annotated[str, Field(description="Of an order placed now (UTC).")]


@tool(read_only=True, discovery=True)
def search_restaurants(
    world: World,
    /,
    query: Annotated[str, Field(description="Part of a name or cuisine; empty for all.", max_length=60)] = "",
    cuisine: Annotated[
        str,
        Field(
            description="bakery, burgers, indian, italian, japanese, lebanese, mexican or thai; empty for all.",
            max_length=40,
        ),
    ] = "",
    address_id: Annotated[
        str, Field(description="Only restaurants that deliver to this address, with fee and time.", max_length=40)
    ] = "",
    open_now: Annotated[bool, Field(description="Only restaurants that take orders now.")] = False,
    min_rating: Annotated[float, Field(ge=0, le=5, description="Lowest mean rating; 0 for any.")] = 0,
    max_fee_cents: Annotated[
        int | None, Field(ge=0, description="Highest delivery fee in cents; needs address_id.")
    ] = None,
    sort: Annotated[
        Literal["name", "rating", "fee", "time"], Field(description="Order; fee and time need address_id.")
    ] = "name",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[RestaurantSummary]:
    """Find restaurants by name, cuisine, rating and whether they are open. With address_id only those that deliver
    there are listed, with fee, minimum order and time.
    """
    address = need_address(world, address_id) if address_id else None
    if address is None and (max_fee_cents is not None or sort in ("fee", "time")):
        raise ToolError("ADDRESS_REQUIRED", "fees and times depend on the address; give address_id (list_addresses)")
    found: list[tuple[Restaurant, Zone | None]] = []
    wanted = query.lower().strip()
    for restaurant, name in world.prepared(Restaurant, _with_name, _by_name):
        zone = world.get(Zone, (restaurant.id, address.district_id)) if address is not None else None
        if (
            (address is not None and zone is None)
            or (wanted and wanted not in name and wanted not in restaurant.cuisine)
            or (cuisine and cuisine.lower() != restaurant.cuisine)
            or (max_fee_cents is not None and zone is not None and zone.fee_cents > max_fee_cents)
            or (min_rating and (rating_of(restaurant) or 0) < min_rating)
            or (open_now and not is_open(restaurant, world.now))
        ):
            continue
        found.append((restaurant, zone))
    if sort == "rating":
        found.sort(key=lambda pair: (-(rating_of(pair[0]) or 0), pair[0].id))
    elif sort == "fee":
        found.sort(key=lambda pair: (pair[1].fee_cents if pair[1] else 0, pair[0].id))
    elif sort == "time" and address is not None:
        found.sort(key=lambda pair: (schedule(world, pair[0], address.district_id).total, pair[0].id))
    if not found and (unknown := none_such(world, Restaurant, "cuisine", cuisine)):
        world.warn("UNKNOWN_VALUE", unknown)
    return page(found, lambda pair: _summary(world, *pair), limit, cursor)


def _with_name(restaurant: Restaurant) -> tuple[Restaurant, str]:
    return restaurant, restaurant.name.lower()


def _by_name(restaurant: Restaurant) -> tuple[str, str]:
    return restaurant.name, restaurant.id


@tool(read_only=True)
def get_restaurant(world: World, /, restaurant_id: RestaurantId) -> RestaurantView:
    """A restaurant with opening hours (UTC), rating, the districts that it delivers to, and its promo codes."""
    restaurant = need_restaurant(world, restaurant_id)
    closed = not is_open(restaurant, world.now)
    opening = next_opening(restaurant, world.now) if closed else None
    return {
        "restaurant_id": restaurant.id,
        "name": restaurant.name,
        "cuisine": restaurant.cuisine,
        "district": world.need(District, restaurant.district_id).name,
        "open_now": not closed,
        "next_opening": iso(opening) if opening is not None else None,
        "rating": rating_of(restaurant),
        "rating_count": restaurant.rating_count,
        "hours": [
            {"day": _DAYS[day], "opens": hhmm(first), "closes": hhmm(last)} for day, first, last in restaurant.hours
        ],
        "zones": [
            {
                "district": world.need(District, zone.district_id).name,
                "fee_cents": zone.fee_cents,
                "min_order_cents": zone.min_order_cents,
            }
            for zone in world.find(Zone, restaurant_id=restaurant.id)
        ],
        "promos": [
            _promo_view(promo)
            for promo in world.rows(Promo)
            if promo.advertised and promo.restaurant_id in ("", restaurant.id)
        ],
    }


@tool(read_only=True, discovery=True)
def get_menu(
    world: World,
    /,
    restaurant_id: RestaurantId,
    query: Annotated[str, Field(description="Part of a name or description; empty for all.", max_length=60)] = "",
    vegetarian_only: Annotated[bool, Field(description="Only vegetarian items.")] = False,
    available_only: Annotated[bool, Field(description="Only items that can be ordered now.")] = False,
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Page[MenuItem]:
    """List what a restaurant sells, with base prices and whether each can be ordered at this time of the day."""
    restaurant = need_restaurant(world, restaurant_id)
    wanted = query.lower().strip()
    items = [
        item
        for item in world.find(Item, restaurant_id=restaurant.id)
        if (not wanted or wanted in item.name.lower() or wanted in item.description.lower())
        and (item.vegetarian or not vegetarian_only)
        and (not available_only or is_served(world, item))
    ]
    return page(items, lambda item: _menu_item(world, item), limit, cursor)


@tool(read_only=True)
def get_item_options(world: World, /, item_id: ItemId) -> ItemOptions:
    """The groups of options of an item: what must be chosen, what may be, and what each adds to the price."""
    item = need_item(world, item_id)
    return {
        "item_id": item.id,
        "name": item.name,
        "price_cents": item.price_cents,
        "groups": [
            {
                "group_id": group.id,
                "name": group.name,
                "min_choices": group.min_choices,
                "max_choices": group.max_choices,
                "options": [
                    {
                        "option_id": option.id,
                        "name": option.name,
                        "delta_cents": option.delta_cents,
                        "available": not option.sold_out,
                    }
                    for option in world.find(Option, group_id=group.id)
                ],
            }
            for group in world.find(OptionGroup, item_id=item.id)
        ],
    }


@tool(read_only=True, discovery=True)
def list_addresses(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[AddressView]:
    """List the customer's saved addresses with their districts."""
    return page(
        list(world.rows(Address)),
        lambda address: {
            "address_id": address.id,
            "label": address.label,
            "street": address.street,
            "district": world.need(District, address.district_id).name,
        },
        limit,
        cursor,
    )


@tool(read_only=True)
def get_delivery_estimate(world: World, /, restaurant_id: RestaurantId, address_id: AddressId) -> Estimate:
    """What delivery from a restaurant to an address costs, and when an order placed now would arrive. Kitchens are
    slower at lunch and dinner time. Fails with OUT_OF_ZONE if the restaurant does not deliver there.
    """
    restaurant, address = need_restaurant(world, restaurant_id), need_address(world, address_id)
    zone = zone_for(world, restaurant, address)
    steps = schedule(world, restaurant, address.district_id)
    return {
        "restaurant_id": restaurant.id,
        "address_id": address.id,
        "fee_cents": zone.fee_cents,
        "min_order_cents": zone.min_order_cents,
        "distance_m": distance_m(world, restaurant, address.district_id),
        "prepare_minutes": steps.prepare,
        "delivery_minutes": steps.total,
        "arrives_at": iso(world.now + steps.total * MINUTE),
    }


def need_restaurant(world: World, restaurant_id: str) -> Restaurant:
    """The restaurant; fails with ``NOT_FOUND``."""
    return world.need(
        Restaurant, restaurant_id, message=f"there is no restaurant {restaurant_id!r}; use search_restaurants"
    )


def need_address(world: World, address_id: str) -> Address:
    """The address; fails with ``NOT_FOUND``."""
    return world.need(Address, address_id, message=f"there is no address {address_id!r}; use list_addresses")


def need_item(world: World, item_id: str) -> Item:
    """The item; fails with ``NOT_FOUND``."""
    return world.need(Item, item_id, message=f"there is no item {item_id!r}; use get_menu")


def rating_of(restaurant: Restaurant) -> float | None:
    """The mean stars to one decimal, or ``None`` without ratings."""
    return round(restaurant.rating_sum / restaurant.rating_count, 1) if restaurant.rating_count else None


def _summary(world: World, restaurant: Restaurant, zone: Zone | None) -> RestaurantSummary:
    return {
        "restaurant_id": restaurant.id,
        "name": restaurant.name,
        "cuisine": restaurant.cuisine,
        "open_now": is_open(restaurant, world.now),
        "rating": rating_of(restaurant),
        "delivery_fee_cents": zone.fee_cents if zone else None,
        "min_order_cents": zone.min_order_cents if zone else None,
        "delivery_minutes": schedule(world, restaurant, zone.district_id).total if zone else None,
    }


def _menu_item(world: World, item: Item) -> MenuItem:
    menu = world.need(Menu, item.menu_id)
    whole_day = menu.from_minute == 0 and menu.to_minute == DAY_MINUTES
    return {
        "item_id": item.id,
        "name": item.name,
        "description": item.description,
        "menu": menu.name,
        "served": "all day" if whole_day else f"{hhmm(menu.from_minute)}-{hhmm(menu.to_minute)}",
        "price_cents": item.price_cents,
        "vegetarian": item.vegetarian,
        "available_now": not item.sold_out and menu.from_minute <= clock(world.now)[1] < menu.to_minute,
        "has_required_options": any(group.min_choices for group in world.find(OptionGroup, item_id=item.id)),
    }


def _promo_view(promo: Promo) -> PromoView:
    return {
        "code": promo.code,
        "kind": promo.kind,
        "percent": promo.value if promo.kind == "percent" else None,
        "amount_cents": promo.value if promo.kind == "fixed" else None,
        "min_spend_cents": promo.min_spend_cents,
        "first_order_only": promo.first_order_only,
        "expires_at": iso(promo.expires_at),
    }


BROWSING: Final[list[FunctionTool]] = [
    search_restaurants,
    get_restaurant,
    get_menu,
    get_item_options,
    list_addresses,
    get_delivery_estimate,
]
