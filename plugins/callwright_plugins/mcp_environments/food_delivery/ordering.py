"""Tools that place orders and look after them: tracking, cancelling, tips, ratings."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.food_delivery.basket import BasketId, open_basket
from callwright_plugins.mcp_environments.food_delivery.browsing import rating_of
from callwright_plugins.mcp_environments.food_delivery.rows import (
    Address,
    Basket,
    CourierEvent,
    Item,
    Option,
    Order,
    OrderItem,
    OrderStatus,
    Payment,
    Profile,
    Promo,
    Rating,
    Restaurant,
)
from callwright_plugins.mcp_environments.food_delivery.service import (
    Bill,
    bill,
    check_open,
    check_served,
    schedule,
    unit_price,
    zone_for,
)
from callwright_plugins.mcp_environments.people import FIRST
from callwright_plugins.mcp_environments.times import DAY, MINUTE, iso

TIP_WINDOW: Final = DAY
RATING_WINDOW: Final = 14 * DAY
#: Minutes from the order until the restaurant confirms it, and until the kitchen begins.
CONFIRMED, PREPARING = 2, 5

OrderId = Annotated[
    str, Field(description="Order id, such as O00007, from place_order or list_past_orders.", max_length=40)
]
Stars = Annotated[int, Field(ge=1, le=5, description="Stars, 5 is best.")]


class OrderLine(TypedDict):
    """A line of an order."""

    item_id: str
    name: str
    options: list[str]
    quantity: int
    unit_price_cents: Annotated[int, Field(description="With its options.")]


class OrderView(TypedDict):
    """An order with what was charged."""

    order_id: str
    status: OrderStatus
    restaurant_id: str
    restaurant_name: str
    address_id: str
    placed_at: str
    items: list[OrderLine]
    payment: Payment
    promo_code: str | None
    subtotal_cents: Annotated[int, Field(description="Lines only.")]
    discount_cents: Annotated[int, Field(description="Of the promo, taken off.")]
    delivery_cents: Annotated[int, Field(description="Fee to the address.")]
    service_cents: Annotated[int, Field(description="Fee of the platform.")]
    total_cents: Annotated[int, Field(description="Subtotal less discount, with both fees; no tip.")]
    tip_cents: Annotated[int, Field(description="Beside the total.")]
    refunded_cents: Annotated[int, Field(description="So far.")]
    rated: Annotated[bool, Field(description="It can be rated once.")]


class Step(TypedDict):
    """A step that an order has taken."""

    status: OrderStatus
    at: str


class TrackView(TypedDict):
    """Where an order is. The courier is known once it is picked up; ``can_cancel`` ends when the kitchen begins."""

    order_id: str
    status: OrderStatus
    steps: list[Step]
    courier: Annotated[str | None, Field(description="null until it is picked up.")]
    expected_at: str | None
    delivered_at: str | None
    can_cancel: Annotated[bool, Field(description="Until the kitchen begins.")]


class Cancellation(TypedDict):
    """A cancelled order."""

    order_id: str
    status: OrderStatus
    refund_cents: Annotated[int, Field(description="What goes back.")]


class Tip(TypedDict):
    """A tip."""

    order_id: str
    tip_cents: Annotated[int, Field(description="Beside the total of the order.")]


class RatingView(TypedDict):
    """A rating, and what the restaurant's is now."""

    rating_id: str
    order_id: str
    food_stars: int
    courier_stars: int | None
    restaurant_rating: Annotated[float | None, Field(description="Of all ratings now.")]


@tool(cost="delivery_cents + service_cents", latency=4)
def place_order(
    world: World,
    /,
    basket_id: BasketId,
    payment: Annotated[Payment, Field(description="The saved card, or cash at the door.")] = "card",
    cvv: Annotated[
        str,
        Field(
            description="Security code of the saved card, three digits; not for cash.",
            pattern=r"^([0-9]{3})?$",
            json_schema_extra={"x-sensitive": True},
        ),
    ] = "",
) -> OrderView:
    """Order a basket. Fails with EMPTY_BASKET, RESTAURANT_CLOSED, ITEM_UNAVAILABLE, OUT_OF_ZONE, BELOW_MINIMUM, the
    code of a promo that no longer counts, BAD_CVV or CARD_DECLINED; then the basket stays as it is.
    """
    basket = open_basket(world, basket_id)
    restaurant = world.need(Restaurant, basket.restaurant_id)
    address = world.need(Address, basket.address_id)
    check_open(world, restaurant)
    zone_for(world, restaurant, address)
    priced = bill(world, basket)
    if not priced.lines:
        raise ToolError("EMPTY_BASKET", f"basket {basket.id} is empty; use add_item first")
    for line in priced.lines:
        check_served(world, world.need(Item, line.item_id))
        for name in line.option_ids:
            if world.need(Option, name).sold_out:
                raise ToolError(
                    "ITEM_UNAVAILABLE", f"an option of line {line.id} is sold out ({name}); remove the line"
                )
    if priced.subtotal_cents < priced.min_order_cents:
        raise ToolError(
            "BELOW_MINIMUM",
            f"{restaurant.name} delivers to {address.id} from {priced.min_order_cents} cents of food; the basket has "
            f"{priced.subtotal_cents}",
        )
    if priced.problem is not None:
        raise ToolError(priced.problem[0], f"{priced.problem[1]}; apply another code or start a new basket")
    if payment == "card":
        _charge(world, priced.total_cents, cvv)
    if basket.promo_code:
        world.update(world.need(Promo, basket.promo_code), used=True)
    order = _place(world, basket, priced, payment, restaurant, address)
    world.update(basket, state="ordered")
    return order_view(world, order)


@tool(read_only=True)
def track_order(world: World, /, order_id: OrderId) -> TrackView:
    """Where an order is now, the steps taken so far, and when it is expected."""
    order = _order(world, order_id)
    status, events = order_status(world, order), _events(world, order)
    end = events[-1]
    taken = [event for event in events if event.at <= (world.now if order.cancelled_at is None else order.cancelled_at)]
    steps: list[Step] = [{"status": event.status, "at": iso(event.at)} for event in taken]
    if order.cancelled_at is not None:
        steps.append({"status": "cancelled", "at": iso(order.cancelled_at)})
    return {
        "order_id": order.id,
        "status": status,
        "steps": steps,
        "courier": end.courier if status in ("picked_up", "delivered") else None,
        "expected_at": iso(end.at) if status not in ("delivered", "cancelled") else None,
        "delivered_at": iso(end.at) if status == "delivered" else None,
        "can_cancel": status in ("placed", "confirmed"),
    }


@tool(read_only=True, discovery=True)
def list_past_orders(
    world: World,
    /,
    restaurant_id: Annotated[str, Field(description="Only orders at this restaurant; empty for all.")] = "",
    status: Annotated[OrderStatus | None, Field(description="Only orders in this state; null for all.")] = None,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[OrderView]:
    """List the customer's orders, newest first, also those under way."""
    orders = world.find(Order, restaurant_id=restaurant_id) if restaurant_id else list(world.rows(Order))
    orders = [order for order in orders if status is None or order_status(world, order) == status]
    orders.sort(key=lambda order: (order.placed_at, order.id), reverse=True)
    return page(orders, lambda order: order_view(world, order), limit, cursor)


@tool(destructive=True, latency=2, irreversible=True)
def cancel_order(world: World, /, order_id: OrderId) -> Cancellation:
    """Cancel an order before the kitchen begins; all that was paid by card is refunded, and its promo code can be used
    again. Fails with ORDER_PREPARING afterwards, and with INVALID_STATE if it is over.
    """
    order = _order(world, order_id)
    status = order_status(world, order)
    if status in ("preparing", "picked_up"):
        raise ToolError(
            "ORDER_PREPARING", f"order {order.id} is {status.replace('_', ' ')} and can no longer be cancelled"
        )
    if status in ("delivered", "cancelled"):
        raise ToolError("INVALID_STATE", f"order {order.id} is {status} already")
    refund = order.tip_cents + (order.total_cents if order.payment == "card" else 0)
    _pay_back(world, refund)
    if order.promo_code:
        world.update(world.need(Promo, order.promo_code), used=False)
    world.update(order, cancelled_at=world.now, refunded_cents=refund)
    return {"order_id": order.id, "status": "cancelled", "refund_cents": refund}


@tool(latency=2, irreversible=True)
def tip_courier(
    world: World,
    /,
    order_id: OrderId,
    amount_cents: Annotated[int, Field(ge=50, le=10_000, description="The tip in cents, charged to the saved card.")],
) -> Tip:
    """Tip the courier of an order, once, until a day after delivery. Fails with ALREADY_TIPPED, TIP_WINDOW_CLOSED,
    INVALID_STATE for a cancelled order, or CARD_DECLINED.
    """
    order = _order(world, order_id)
    if order.cancelled_at is not None:
        raise ToolError("INVALID_STATE", f"order {order.id} was cancelled; nobody delivers it")
    if order.tip_cents:
        raise ToolError("ALREADY_TIPPED", f"order {order.id} has a tip of {order.tip_cents} cents")
    end = _events(world, order)[-1].at + TIP_WINDOW
    if world.now > end:
        raise ToolError("TIP_WINDOW_CLOSED", f"order {order.id} could be tipped until {iso(end)}")
    _charge(world, amount_cents)
    world.update(order, tip_cents=amount_cents)
    return {"order_id": order.id, "tip_cents": amount_cents}


@tool(irreversible=True)
def rate_order(
    world: World,
    /,
    order_id: OrderId,
    food_stars: Stars,
    courier_stars: Annotated[
        int | None, Field(ge=1, le=5, description="Stars for the courier, 5 is best; null for none.")
    ] = None,
    comment: Annotated[str, Field(max_length=500, description="What to say of it.")] = "",
) -> RatingView:
    """Rate a delivered order, once, within 14 days. Fails with NOT_DELIVERED, ALREADY_RATED or RATING_WINDOW_CLOSED."""
    order = _order(world, order_id)
    status = order_status(world, order)
    if status != "delivered":
        raise ToolError("NOT_DELIVERED", f"order {order.id} is {status.replace('_', ' ')}; rate it after delivery")
    if world.find(Rating, order_id=order.id):
        raise ToolError("ALREADY_RATED", f"order {order.id} has been rated")
    end = _events(world, order)[-1].at + RATING_WINDOW
    if world.now > end:
        raise ToolError("RATING_WINDOW_CLOSED", f"order {order.id} could be rated until {iso(end)}")
    made = Rating(
        world.new_id(Rating), order.id, order.restaurant_id, food_stars, courier_stars, comment, rated_at=world.now
    )
    world.put(made)
    restaurant = world.need(Restaurant, order.restaurant_id)
    restaurant = world.update(
        restaurant, rating_sum=restaurant.rating_sum + food_stars, rating_count=restaurant.rating_count + 1
    )
    return {
        "rating_id": made.id,
        "order_id": order.id,
        "food_stars": food_stars,
        "courier_stars": courier_stars,
        "restaurant_rating": rating_of(restaurant),
    }


def order_status(world: World, order: Order) -> OrderStatus:
    """Where an order is now."""
    if order.cancelled_at is not None:
        return "cancelled"
    now, last = world.now, None
    for event in world.find(CourierEvent, order_id=order.id):
        if event.at <= now and (last is None or event.at >= last.at):
            last = event
    assert last is not None, "the first step of an order is the order itself"
    return last.status


def order_view(world: World, order: Order) -> OrderView:
    """An order."""
    return {
        "order_id": order.id,
        "status": order_status(world, order),
        "restaurant_id": order.restaurant_id,
        "restaurant_name": world.need(Restaurant, order.restaurant_id).name,
        "address_id": order.address_id,
        "placed_at": iso(order.placed_at),
        "items": [
            {
                "item_id": line.item_id,
                "name": line.name,
                "options": list(line.options),
                "quantity": line.quantity,
                "unit_price_cents": line.unit_price_cents,
            }
            for line in world.find(OrderItem, order_id=order.id)
        ],
        "payment": order.payment,
        "promo_code": order.promo_code or None,
        "subtotal_cents": order.subtotal_cents,
        "discount_cents": order.discount_cents,
        "delivery_cents": order.delivery_cents,
        "service_cents": order.service_cents,
        "total_cents": order.total_cents,
        "tip_cents": order.tip_cents,
        "refunded_cents": order.refunded_cents,
        "rated": world.count(Rating, order_id=order.id) > 0,
    }


def _order(world: World, order_id: str) -> Order:
    return world.need(Order, order_id, message=f"there is no order {order_id!r}; use list_past_orders")


def _events(world: World, order: Order) -> list[CourierEvent]:
    """The steps of an order by time; the first is the order itself and the last the delivery."""
    return sorted(world.find(CourierEvent, order_id=order.id), key=lambda event: event.at)


def _charge(world: World, amount: int, cvv: str | None = None) -> None:
    """Take an amount from the saved card. A tip needs no security code: ``None``."""
    me = world.need(Profile, "me")
    if cvv is not None and cvv != me.card_cvv:
        what = "wrong" if cvv else "missing"
        raise ToolError(
            "BAD_CVV", f"the security code of the card ending in {me.card_last4} is {what}; ask the customer"
        )
    if amount > me.card_available_cents:
        raise ToolError(
            "CARD_DECLINED", f"the card ending in {me.card_last4} cannot pay {amount} cents; pay cash or less"
        )
    world.update(me, card_available_cents=me.card_available_cents - amount)


def _pay_back(world: World, amount: int) -> None:
    me = world.need(Profile, "me")
    world.update(me, card_available_cents=me.card_available_cents + amount)


def _place(
    world: World, basket: Basket, priced: Bill, payment: Payment, restaurant: Restaurant, address: Address
) -> Order:
    order = world.put(
        Order(
            id=world.new_id(Order),
            restaurant_id=restaurant.id,
            address_id=address.id,
            placed_at=world.now,
            cancelled_at=None,
            payment=payment,
            promo_code=basket.promo_code,
            subtotal_cents=priced.subtotal_cents,
            discount_cents=priced.discount_cents,
            delivery_cents=priced.delivery_cents,
            service_cents=priced.service_cents,
            total_cents=priced.total_cents,
            tip_cents=0,
            refunded_cents=0,
        )
    )
    for line in priced.lines:
        world.put(
            OrderItem(
                id=world.new_id(OrderItem),
                order_id=order.id,
                item_id=line.item_id,
                name=world.need(Item, line.item_id).name,
                options=tuple(world.need(Option, name).name for name in line.option_ids),
                quantity=line.quantity,
                unit_price_cents=unit_price(world, line),
            )
        )
    steps = schedule(world, restaurant, address.district_id)
    courier = world.random().choice(FIRST)
    for status, minutes in steps_of(steps.prepare, steps.ride):
        at = world.now + minutes * MINUTE
        world.put(CourierEvent(world.new_id(CourierEvent), order.id, at, status, courier))
    return order


def steps_of(prepare: int, ride: int) -> list[tuple[OrderStatus, int]]:
    """The steps of an order in minutes after it was placed."""
    return [
        ("placed", 0),
        ("confirmed", CONFIRMED),
        ("preparing", PREPARING),
        ("picked_up", PREPARING + prepare),
        ("delivered", PREPARING + prepare + ride),
    ]


ORDERING: Final[list[FunctionTool]] = [
    place_order,
    track_order,
    list_past_orders,
    cancel_order,
    tip_courier,
    rate_order,
]
