"""Tools of the basket: opening it, lines with options, promo codes."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.food_delivery.browsing import (
    AddressId,
    ItemId,
    RestaurantId,
    need_address,
    need_item,
    need_restaurant,
)
from callwright_plugins.mcp_environments.food_delivery.rows import (
    Basket,
    BasketItem,
    BasketState,
    Item,
    Option,
    OptionGroup,
    Profile,
    Promo,
    Restaurant,
)
from callwright_plugins.mcp_environments.food_delivery.service import (
    bill,
    check_open,
    check_served,
    is_served,
    promo_problem,
    unit_price,
    zone_for,
)

#: Most units of a line.
MOST: Final = 20

BasketId = Annotated[str, Field(description="Basket id, such as B00001, from start_basket.", max_length=40)]


class LineView(TypedDict):
    """A line of a basket."""

    basket_item_id: str
    item_id: str
    name: str
    options: list[str]
    note: str
    quantity: int
    unit_price_cents: Annotated[int, Field(description="With its options.")]
    line_total_cents: Annotated[int, Field(description="With its options, all pieces.")]
    available_now: Annotated[bool, Field(description="Whether it is served at this hour and not sold out.")]


class BasketView(TypedDict):
    """A basket with everything that an order would charge; ``missing_cents`` is what the minimum order still needs."""

    basket_id: str
    state: BasketState
    restaurant_id: str
    restaurant_name: str
    address_id: str
    items: list[LineView]
    promo_code: str | None
    promo_problem: Annotated[str, Field(description="Why the promo does not count; empty if it does.")]
    subtotal_cents: Annotated[int, Field(description="Lines only.")]
    discount_cents: Annotated[int, Field(description="Of the promo, taken off.")]
    delivery_cents: Annotated[int, Field(description="Fee to the address.")]
    service_cents: Annotated[int, Field(description="Fee of the platform.")]
    total_cents: Annotated[int, Field(description="Subtotal less discount, with both fees; no tip.")]
    min_order_cents: Annotated[int, Field(description="Least subtotal.")]
    missing_cents: Annotated[int, Field(description="What the food lacks of the minimum order.")]
    saved_card_last4: str


@tool(read_only=True)
def view_basket(
    world: World,
    /,
    basket_id: Annotated[str, Field(description="Basket id; empty for the open basket.", max_length=40)] = "",
) -> BasketView:
    """A basket with its lines, fees and promo, and what is missing for the minimum order. Fails with NO_BASKET if none
    is open.
    """
    if basket_id:
        return basket_view(world, _need_basket(world, basket_id))
    opened = world.find(Basket, state="open")
    if not opened:
        raise ToolError("NO_BASKET", "no basket is open; use start_basket")
    return basket_view(world, opened[0])


@tool
def start_basket(
    world: World,
    /,
    restaurant_id: RestaurantId,
    address_id: AddressId,
    replace: Annotated[bool, Field(description="Discard the open basket even if there are items in it.")] = False,
) -> BasketView:
    """Open a basket at a restaurant for an address. Fails with RESTAURANT_CLOSED, with OUT_OF_ZONE if it does not
    deliver there, and with BASKET_OPEN if another basket has items and replace is false.
    """
    restaurant, address = need_restaurant(world, restaurant_id), need_address(world, address_id)
    check_open(world, restaurant)
    zone_for(world, restaurant, address)
    for other in world.find(Basket, state="open"):
        lines = world.find(BasketItem, basket_id=other.id)
        if lines and not replace:
            raise ToolError(
                "BASKET_OPEN",
                f"basket {other.id} at {other.restaurant_id} has {len(lines)} lines; order it or set replace to true",
            )
        world.update(other, state="discarded")
    made = Basket(world.new_id(Basket), restaurant.id, address.id, promo_code="", state="open")
    return basket_view(world, world.put(made))


@tool
def add_item(
    world: World,
    /,
    basket_id: BasketId,
    item_id: ItemId,
    quantity: Annotated[int, Field(ge=1, le=MOST, description="How many.")] = 1,
    option_ids: Annotated[
        list[str] | None,
        Field(max_length=20, description="Ids of the chosen options, from get_item_options; null for none."),
    ] = None,
    note: Annotated[str, Field(max_length=140, description="A wish for the kitchen.")] = "",
) -> BasketView:
    """Put an item with options into a basket; the same item with the same options and note becomes more. Fails with
    ITEM_UNAVAILABLE, REQUIRED_OPTION_MISSING, TOO_MANY_OPTIONS, WRONG_RESTAURANT or QUANTITY_LIMIT.
    """
    basket, item = open_basket(world, basket_id), need_item(world, item_id)
    if item.restaurant_id != basket.restaurant_id:
        raise ToolError(
            "WRONG_RESTAURANT", f"{item.name} ({item.id}) is sold by {item.restaurant_id}, not {basket.restaurant_id}"
        )
    check_served(world, item)
    chosen = _choose(world, item, option_ids or [])
    for line in world.find(BasketItem, basket_id=basket.id):
        if (line.item_id, line.option_ids, line.note) == (item.id, chosen, note):
            if line.quantity + quantity > MOST:
                raise ToolError("QUANTITY_LIMIT", f"line {line.id} holds {line.quantity}; a line takes at most {MOST}")
            world.update(line, quantity=line.quantity + quantity)
            break
    else:
        world.put(BasketItem(world.new_id(BasketItem), basket.id, item.id, chosen, quantity, note))
    return basket_view(world, basket)


@tool(destructive=True)
def remove_item(
    world: World,
    /,
    basket_id: BasketId,
    basket_item_id: Annotated[
        str, Field(description="Line of the basket, such as BI00002, from view_basket.", max_length=40)
    ],
    quantity: Annotated[
        int | None, Field(ge=1, le=MOST, description="How many to take out; null for the whole line.")
    ] = None,
) -> BasketView:
    """Take a line, or some units of it, out of a basket. Fails with QUANTITY_LIMIT if there are fewer units."""
    basket = open_basket(world, basket_id)
    line = world.get(BasketItem, basket_item_id)
    if line is None or line.basket_id != basket.id:
        raise ToolError("NOT_FOUND", f"basket {basket.id} has no line {basket_item_id!r}; use view_basket")
    if quantity is not None and quantity > line.quantity:
        raise ToolError("QUANTITY_LIMIT", f"line {line.id} holds {line.quantity}, fewer than {quantity}")
    if quantity is None or quantity == line.quantity:
        world.drop(line)
    else:
        world.update(line, quantity=line.quantity - quantity)
    return basket_view(world, basket)


@tool(idempotent=True)
def apply_promo(
    world: World,
    /,
    basket_id: BasketId,
    code: Annotated[str, Field(description="Promo code, such as MAPLE20.", min_length=1, max_length=40)],
) -> BasketView:
    """Use a promo code for a basket, in place of any other. Fails with EMPTY_BASKET, PROMO_EXPIRED, PROMO_USED,
    PROMO_NOT_HERE (another restaurant's), PROMO_FIRST_ORDER or PROMO_MIN_SPEND.
    """
    basket = open_basket(world, basket_id)
    promo = world.need(Promo, code.strip().upper(), message=f"there is no promo code {code!r}")
    priced = bill(world, basket)
    if not priced.lines:
        raise ToolError("EMPTY_BASKET", f"put something into basket {basket.id} before applying {promo.code}")
    problem = promo_problem(world, promo, basket.restaurant_id, priced.subtotal_cents)
    if problem is not None:
        raise ToolError(*problem)
    return basket_view(world, world.update(basket, promo_code=promo.code))


def _need_basket(world: World, basket_id: str) -> Basket:
    return world.need(Basket, basket_id, message=f"there is no basket {basket_id!r}; use start_basket")


def open_basket(world: World, basket_id: str) -> Basket:
    """The basket, if it is open; fails with ``BASKET_CLOSED`` if it was ordered or discarded."""
    basket = _need_basket(world, basket_id)
    if basket.state != "open":
        raise ToolError("BASKET_CLOSED", f"basket {basket.id} was {basket.state}; use start_basket for a new one")
    return basket


def _choose(world: World, item: Item, option_ids: list[str]) -> tuple[str, ...]:
    """The chosen options in the order of the menu, if they are a whole and possible choice."""
    groups = world.find(OptionGroup, item_id=item.id)
    offered = {option.id: option for group in groups for option in world.find(Option, group_id=group.id)}
    for name in option_ids:
        if name not in offered:
            raise ToolError("NOT_FOUND", f"{item.name} ({item.id}) has no option {name!r}; use get_item_options")
        if offered[name].sold_out:
            raise ToolError("ITEM_UNAVAILABLE", f"the option {offered[name].name} ({name}) is sold out")
        if option_ids.count(name) > 1:
            raise ToolError("TOO_MANY_OPTIONS", f"the option {offered[name].name} ({name}) is named more than once")
    for group in groups:
        count = sum(offered[name].group_id == group.id for name in option_ids)
        if count < group.min_choices:
            names = ", ".join(
                f"{one.id} {one.name}" for one in world.find(Option, group_id=group.id) if not one.sold_out
            )
            raise ToolError(
                "REQUIRED_OPTION_MISSING",
                f"{item.name} ({item.id}) needs {group.min_choices} of {group.name!r}, not {count}; there are: {names}",
            )
        if count > group.max_choices:
            raise ToolError(
                "TOO_MANY_OPTIONS",
                f"{item.name} ({item.id}) takes at most {group.max_choices} of {group.name!r}, not {count}",
            )
    return tuple(name for name in offered if name in option_ids)


def line_view(world: World, line: BasketItem) -> LineView:
    """A line of a basket."""
    item, price = world.need(Item, line.item_id), unit_price(world, line)
    options = [world.need(Option, name) for name in line.option_ids]
    return {
        "basket_item_id": line.id,
        "item_id": item.id,
        "name": item.name,
        "options": [option.name for option in options],
        "note": line.note,
        "quantity": line.quantity,
        "unit_price_cents": price,
        "line_total_cents": price * line.quantity,
        "available_now": is_served(world, item) and not any(option.sold_out for option in options),
    }


def basket_view(world: World, basket: Basket) -> BasketView:
    """A basket with its bill."""
    priced = bill(world, basket)
    return {
        "basket_id": basket.id,
        "state": basket.state,
        "restaurant_id": basket.restaurant_id,
        "restaurant_name": world.need(Restaurant, basket.restaurant_id).name,
        "address_id": basket.address_id,
        "items": [line_view(world, line) for line in priced.lines],
        "promo_code": basket.promo_code or None,
        "promo_problem": priced.problem[1] if priced.problem else "",
        "subtotal_cents": priced.subtotal_cents,
        "discount_cents": priced.discount_cents,
        "delivery_cents": priced.delivery_cents,
        "service_cents": priced.service_cents,
        "total_cents": priced.total_cents,
        "min_order_cents": priced.min_order_cents,
        "missing_cents": max(priced.min_order_cents - priced.subtotal_cents, 0),
        "saved_card_last4": world.need(Profile, "me").card_last4,
    }


BASKET: Final[list[FunctionTool]] = [view_basket, start_basket, add_item, remove_item, apply_promo]
