"""The tables of the delivery service. Money is in cents, distances are in metres, times in seconds of the clock."""

from __future__ import annotations

from typing import Any, Final, Literal

from callwright.environments.rows import row

BasketState = Literal["open", "ordered", "discarded"]
OrderStatus = Literal["placed", "confirmed", "preparing", "picked_up", "delivered", "cancelled"]
Payment = Literal["card", "cash"]
PromoKind = Literal["percent", "fixed", "free_delivery"]


@row("profile")
class Profile:
    """The signed-in customer with the saved card; the security code is never shown."""

    id: str
    name: str
    phone: str
    card_last4: str
    card_cvv: str
    card_available_cents: int


@row("districts")
class District:
    """A part of the city, and where its middle lies."""

    id: str
    name: str
    x_m: int
    y_m: int


@row("addresses", prefix="A")
class Address:
    """A saved address of the customer."""

    id: str
    label: str
    street: str
    district_id: str


@row("restaurants", prefix="R")
class Restaurant:
    """A restaurant. ``hours`` are (weekday from Monday = 0, first minute, last minute) of the day it opens on.

    A last minute above 1440 lies in the night after. Until ``paused_until`` it takes no orders.
    """

    id: str
    name: str
    cuisine: str
    district_id: str
    hours: tuple[tuple[int, int, int], ...]
    paused_until: int
    prepare_minutes: int
    rating_sum: int
    rating_count: int


@row("delivery_zones", key=("restaurant_id", "district_id"), index=("restaurant_id",))
class Zone:
    """A district that a restaurant delivers to."""

    restaurant_id: str
    district_id: str
    fee_cents: int
    min_order_cents: int


@row("menus", prefix="M", index=("restaurant_id",))
class Menu:
    """A part of a restaurant's menu and the minutes of the day in which it is served."""

    id: str
    restaurant_id: str
    name: str
    from_minute: int
    to_minute: int


@row("items", prefix="I", index=("restaurant_id",))
class Item:
    """A dish or drink; ``sold_out`` ones are back another day."""

    id: str
    restaurant_id: str
    menu_id: str
    name: str
    description: str
    price_cents: int
    vegetarian: bool
    sold_out: bool


@row("option_groups", prefix="G", index=("item_id",))
class OptionGroup:
    """A choice to make for an item; it is required if ``min_choices`` is above 0."""

    id: str
    item_id: str
    name: str
    min_choices: int
    max_choices: int


@row("options", prefix="OP", index=("group_id",))
class Option:
    """What can be chosen, with what it adds to the price (below zero: takes off)."""

    id: str
    group_id: str
    name: str
    delta_cents: int
    sold_out: bool


@row("promos", key="code")
class Promo:
    """A promo code. ``restaurant_id`` is empty for all of them; ``used`` ones cannot be used again."""

    code: str
    kind: PromoKind
    value: int
    min_spend_cents: int
    max_discount_cents: int | None
    restaurant_id: str
    first_order_only: bool
    advertised: bool
    expires_at: int
    used: bool


@row("baskets", prefix="B", index=("state",))
class Basket:
    """A basket for one restaurant and address; at most one is open."""

    id: str
    restaurant_id: str
    address_id: str
    promo_code: str
    state: BasketState


@row("basket_items", prefix="BI", index=("basket_id",))
class BasketItem:
    """A line of a basket; ``option_ids`` are in the order of the item's options."""

    id: str
    basket_id: str
    item_id: str
    option_ids: tuple[str, ...]
    quantity: int
    note: str


@row("orders", prefix="O", index=("restaurant_id",), stamps=("placed_at", "cancelled_at"))
class Order:
    """An order with what was charged. Its state follows from its events and the clock unless it was cancelled."""

    id: str
    restaurant_id: str
    address_id: str
    placed_at: int
    cancelled_at: int | None
    payment: Payment
    promo_code: str
    subtotal_cents: int
    discount_cents: int
    delivery_cents: int
    service_cents: int
    total_cents: int
    tip_cents: int
    refunded_cents: int


@row("order_items", prefix="OI", index=("order_id",))
class OrderItem:
    """A line of an order as it was bought."""

    id: str
    order_id: str
    item_id: str
    name: str
    options: tuple[str, ...]
    quantity: int
    unit_price_cents: int


# It follows from when the order was placed.
@row("courier_events", prefix="E", index=("order_id",), bookkeeping=("at",))
class CourierEvent:
    """A step of an order and when it happens; it may lie ahead."""

    id: str
    order_id: str
    at: int
    status: OrderStatus
    courier: str


@row("ratings", prefix="RT", index=("order_id",), stamps=("rated_at",))
class Rating:
    """What the customer thought of an order: 1 to 5 stars each."""

    id: str
    order_id: str
    restaurant_id: str
    food_stars: int
    courier_stars: int | None
    comment: str
    rated_at: int


ROWS: Final[list[type[Any]]] = [
    Profile,
    District,
    Address,
    Restaurant,
    Zone,
    Menu,
    Item,
    OptionGroup,
    Option,
    Promo,
    Basket,
    BasketItem,
    Order,
    OrderItem,
    CourierEvent,
    Rating,
]
