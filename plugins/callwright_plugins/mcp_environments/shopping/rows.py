"""The tables of the shop. Money is in cents, weights in grams, times in seconds of the session's clock."""

from __future__ import annotations

from typing import Any, Final, Literal

from callwright.environments.rows import row

CouponKind = Literal["percent", "fixed", "free_shipping"]
PaymentKind = Literal["card", "gift_card"]
ShippingMethod = Literal["standard", "express"]
ReturnReason = Literal["changed_mind", "wrong_size", "wrong_item", "damaged", "defective"]

#: The one cart of a session.
CART: Final = "CART"


@row("profile")
class Profile:
    """The signed-in customer; a scenario has one."""

    id: str
    name: str
    email: str


@row("categories", index=("parent_id",))
class Category:
    """A department of the shop, or a category in one (``parent_id`` names the department)."""

    id: str
    name: str
    parent_id: str
    #: Days after delivery in which items can be returned; 0 is final sale.
    return_days: int
    restocking_fee_percent: int


@row("products", prefix="P", index=("category_id",))
class Product:
    """What is sold, in one or more variants."""

    id: str
    name: str
    brand: str
    category_id: str
    description: str
    #: Most units in one order.
    order_limit: int
    hazardous: bool
    bulky: bool
    discontinued: bool


@row("variants", prefix="V", index=("product_id",))
class Variant:
    """A product in one size, colour and so on: ``options`` are pairs of name and value."""

    id: str
    product_id: str
    options: tuple[tuple[str, str], ...]
    price_cents: int
    stock: int
    weight_g: int


@row("reviews", prefix="RV", index=("product_id",))
class Review:
    """What a customer thought of a product: 1 to 5 stars."""

    id: str
    product_id: str
    author: str
    stars: int
    title: str
    text: str
    posted_at: int


@row("shipping_zones")
class Zone:
    """A region that addresses lie in, what postage costs there, and what may go there."""

    region: str
    served: bool
    takes_hazardous: bool
    takes_bulky: bool
    standard_cents: int
    express_cents: int
    #: Standard postage is free from this value of goods.
    free_from_cents: int
    standard_days: int
    express_days: int


@row("addresses", prefix="A")
class Address:
    """A saved shipping address of the customer."""

    id: str
    label: str
    recipient: str
    street: str
    city: str
    postcode: str
    region: str


@row("payment_methods", prefix="PM")
class PaymentMethod:
    """A saved card or gift card. ``cvv`` is never shown; ``available_cents`` is what may still be charged."""

    id: str
    kind: PaymentKind
    brand: str
    last4: str
    cvv: str
    expires_at: int
    blocked: bool
    available_cents: int


@row("coupons", key="code")
class Coupon:
    """A discount: ``value`` is percent or cents; an empty category is the whole shop."""

    code: str
    kind: CouponKind
    value: int
    category_id: str
    min_spend_cents: int
    max_discount_cents: int | None
    stackable: bool
    starts_at: int
    expires_at: int
    uses_left: int


@row("carts")
class Cart:
    """The customer's cart: coupons in the order in which they were applied, and where it is to go."""

    id: str
    coupons: tuple[str, ...]
    address_id: str


@row("cart_items", prefix="CI", index=("variant_id",))
class CartItem:
    """A line of the cart."""

    id: str
    variant_id: str
    quantity: int
    #: The price when it was put in; the cart charges today's price and tells of the difference.
    added_price_cents: int


@row("orders", prefix="O", stamps=("placed_at", "cancelled_at"))
class Order:
    """An order with what was charged; its state follows from its shipment and the clock unless it was cancelled.

    What is refunded is on its way for three days; ``arrived_cents`` of it are with the customer.
    """

    id: str
    placed_at: int
    cancelled_at: int | None
    address_id: str
    payment_method_id: str
    coupons: tuple[str, ...]
    subtotal_cents: int
    discount_cents: int
    shipping_cents: int
    total_cents: int
    refunded_cents: int
    arrived_cents: int


@row("order_items", prefix="OI", index=("order_id",))
class OrderItem:
    """A line of an order; ``paid_cents`` is its price after its share of the discounts."""

    id: str
    order_id: str
    variant_id: str
    product_name: str
    quantity: int
    unit_price_cents: int
    paid_cents: int
    returned: int
    refunded_cents: int


# The times follow from the method and from when the order was placed.
@row(
    "shipments",
    prefix="SH",
    index=("order_id",),
    generated=("tracking_number",),
    bookkeeping=("packed_at", "shipped_at", "delivered_at"),
)
class Shipment:
    """How and when an order travels; times may lie ahead."""

    id: str
    order_id: str
    carrier: str
    tracking_number: str
    method: ShippingMethod
    packed_at: int
    shipped_at: int
    delivered_at: int


@row("returns", prefix="RT", index=("order_id",), stamps=("requested_at",))
class Return:
    """Items that were sent back."""

    id: str
    order_id: str
    order_item_id: str
    quantity: int
    reason: ReturnReason
    requested_at: int
    fee_cents: int
    refund_cents: int
    restocked: bool


ROWS: Final[list[type[Any]]] = [
    Profile,
    Category,
    Product,
    Variant,
    Review,
    Zone,
    Address,
    PaymentMethod,
    Coupon,
    Cart,
    CartItem,
    Order,
    OrderItem,
    Shipment,
    Return,
]
