"""Tools that turn the cart into orders, and look after orders: checkout, tracking, cancelling, returning."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.shopping.cart import Method
from callwright_plugins.mcp_environments.shopping.pricing import Price, cart_of, check_address, price_cart
from callwright_plugins.mcp_environments.shopping.refunds import give_back, settle
from callwright_plugins.mcp_environments.shopping.rows import (
    Address,
    Category,
    Coupon,
    Order,
    OrderItem,
    PaymentKind,
    PaymentMethod,
    Product,
    Return,
    ReturnReason,
    Shipment,
    ShippingMethod,
    Variant,
    Zone,
)
from callwright_plugins.mcp_environments.shopping.views import (
    OrderStatus,
    OrderSummary,
    OrderView,
    order_status,
    order_summary,
    order_view,
    shipment_of,
)
from callwright_plugins.mcp_environments.times import DAY, HOUR, iso, iso_date

PACKING: Final = 4 * HOUR  # from the order until it is packed
COLLECTION: Final = 20 * HOUR  # from then until the carrier takes it

OrderId = Annotated[str, Field(description="Order id, such as O00007, from list_orders or checkout.", max_length=40)]


class PaymentView(TypedDict):
    """A payment method; the security code is not shown, nor what is available on a card."""

    payment_method_id: str
    kind: PaymentKind
    brand: str
    last4: str
    expires_on: str
    balance_cents: Annotated[int | None, Field(description="Of gift cards only.")]


class Event(TypedDict):
    """A step of an order that has been taken."""

    status: OrderStatus
    at: str


class TrackView(TypedDict):
    """Where an order is, and when it is expected; ``delivered_at`` is null until then."""

    order_id: str
    status: OrderStatus
    carrier: str
    tracking_number: str | None
    events: list[Event]
    expected_at: str | None
    delivered_at: Annotated[str | None, Field(description="null: not yet.")]


class Cancellation(TypedDict):
    """A cancelled order and what goes back to the payment method."""

    order_id: str
    status: OrderStatus
    refund_cents: Annotated[int, Field(description="To the payment method.")]


class ReturnView(TypedDict):
    """A return and its refund."""

    return_id: str
    order_id: str
    order_item_id: str
    quantity: Annotated[int, Field(description="Pieces.")]
    fee_cents: Annotated[int, Field(description="Restocking fee, taken off the refund.")]
    refund_cents: Annotated[int, Field(description="Fee taken off.")]
    restocked: Annotated[bool, Field(description="Whether it is sold again.")]


@tool(read_only=True, discovery=True)
def list_payment_methods(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[PaymentView]:
    """List the saved cards and gift cards. Only gift cards tell how much is left on them."""
    return page(
        list(world.ahead(settle).rows(PaymentMethod)),
        lambda method: {
            "payment_method_id": method.id,
            "kind": method.kind,
            "brand": method.brand,
            "last4": method.last4,
            "expires_on": iso_date(method.expires_at),
            "balance_cents": method.available_cents if method.kind == "gift_card" else None,
        },
        limit,
        cursor,
    )


@tool(read_only=True, discovery=True)
def list_orders(
    world: World,
    /,
    status: Annotated[OrderStatus | None, Field(description="Only orders in this state; null for all.")] = None,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[OrderSummary]:
    """List the customer's orders, newest first."""
    orders = [order for order in world.rows(Order) if status is None or order_status(world, order) == status]
    orders.sort(key=lambda order: (order.placed_at, order.id), reverse=True)
    return page(orders, lambda order: order_summary(world, order), limit, cursor)


@tool(read_only=True)
def get_order(world: World, /, order_id: OrderId) -> OrderView:
    """An order with its lines and what was charged. The lines' ids are what request_return needs."""
    return order_view(world, _order(world, order_id))


@tool(read_only=True)
def track_order(world: World, /, order_id: OrderId) -> TrackView:
    """Where an order is, with the steps taken so far. The tracking number is there once it is shipped."""
    order = _order(world, order_id)
    status, shipment = order_status(world, order), shipment_of(world, order)
    steps: list[tuple[OrderStatus, int]] = [
        ("placed", order.placed_at),
        ("packed", shipment.packed_at),
        ("shipped", shipment.shipped_at),
        ("delivered", shipment.delivered_at),
    ]
    if order.cancelled_at is not None:
        steps = [step for step in steps if step[1] <= order.cancelled_at]
        steps.append(("cancelled", order.cancelled_at))
    return {
        "order_id": order.id,
        "status": status,
        "carrier": shipment.carrier,
        "tracking_number": shipment.tracking_number if status in ("shipped", "delivered") else None,
        "events": [{"status": name, "at": iso(at)} for name, at in steps if at <= world.now],
        "expected_at": None if status == "cancelled" else iso(shipment.delivered_at),
        "delivered_at": iso(shipment.delivered_at) if status == "delivered" else None,
    }


@tool(cost="shipping_cents", latency=4)
def checkout(
    world: World,
    /,
    payment_method_id: Annotated[
        str, Field(description="Payment method id, such as PM00001, from list_payment_methods.", max_length=40)
    ],
    cvv: Annotated[
        str,
        Field(
            description="Security code of the card, three or four digits; gift cards need none.",
            pattern=r"^([0-9]{3,4})?$",
            json_schema_extra={"x-sensitive": True},
        ),
    ] = "",
    shipping_method: Method = "standard",
) -> OrderView:
    """Order what is in the cart and charge the payment method. Needs an address (set_shipping_address). Fails with
    EMPTY_CART, ADDRESS_REQUIRED, ADDRESS_UNSHIPPABLE, OUT_OF_STOCK, the code of a coupon that no longer counts,
    BAD_CVV or CARD_DECLINED; then nothing is ordered or charged.
    """
    cart, price = cart_of(world), price_cart(world, shipping_method)
    if not price.lines:
        raise ToolError("EMPTY_CART", "the cart is empty; use add_to_cart first")
    address = world.get(Address, cart.address_id)
    if address is None:
        raise ToolError("ADDRESS_REQUIRED", "the cart has no shipping address; use set_shipping_address first")
    zone = check_address(world, address, price.lines)
    for line in price.lines:
        if line.product.discontinued or line.variant.stock < line.item.quantity:
            stock = 0 if line.product.discontinued else line.variant.stock
            raise ToolError(
                "OUT_OF_STOCK",
                f"{stock} of {line.product.name} ({line.variant.id}) are left, and {line.item.id} wants "
                f"{line.item.quantity}; change or remove it",
            )
    for code, (problem, sentence) in price.refused.items():
        raise ToolError(problem, f"{sentence}; use remove_coupon for {code} or change the cart")
    settle(world)
    method = _charge(world, payment_method_id, cvv, price.total_cents)
    world.update(method, available_cents=method.available_cents - price.total_cents)
    order = _place(world, price, zone, address, method, shipping_method)
    for code in cart.coupons:
        coupon = world.need(Coupon, code)
        world.update(coupon, uses_left=coupon.uses_left - 1)
    for line in price.lines:
        world.update(line.variant, stock=line.variant.stock - line.item.quantity)
        world.drop(line.item)
    world.update(cart, coupons=())
    return order_view(world, order)


@tool(destructive=True, latency=2, irreversible=True)
def cancel_order(world: World, /, order_id: OrderId) -> Cancellation:
    """Cancel an order that is not shipped yet. The goods go back into stock and the price to the payment method; once
    it is packed the postage is kept. Fails with ORDER_SHIPPED afterwards (then use request_return).
    """
    order = _order(world, order_id)
    status = order_status(world, order)
    if status == "cancelled":
        raise ToolError("INVALID_STATE", f"order {order.id} is cancelled already")
    if status in ("shipped", "delivered"):
        raise ToolError(
            "ORDER_SHIPPED",
            f"order {order.id} is {status} and cannot be cancelled; items can be returned after delivery",
        )
    refund = order.total_cents - (order.shipping_cents if status == "packed" else 0)
    for item in world.find(OrderItem, order_id=order.id):
        variant = world.need(Variant, item.variant_id)
        world.update(variant, stock=variant.stock + item.quantity)
    for code in order.coupons:
        coupon = world.need(Coupon, code)
        world.update(coupon, uses_left=coupon.uses_left + 1)
    give_back(world, order, refund)
    world.update(world.need(Order, order.id), cancelled_at=world.now)
    return {"order_id": order.id, "status": "cancelled", "refund_cents": refund}


@tool(cost="fee_cents", latency=2, irreversible=True)
def request_return(
    world: World,
    /,
    order_id: OrderId,
    order_item_id: Annotated[
        str, Field(description="Line of the order, such as OI00009, from get_order.", max_length=40)
    ],
    quantity: Annotated[int, Field(ge=1, le=99, description="How many units go back.")],
    reason: Annotated[
        ReturnReason, Field(description="Why. A change of mind or a wrong size may cost a restocking fee.")
    ],
) -> ReturnView:
    """Return units of a delivered order; the refund goes to the payment method that paid. Fails with NOT_DELIVERED,
    NOT_RETURNABLE (final sale), RETURN_WINDOW_CLOSED, or QUANTITY_LIMIT if fewer units are left to return.
    """
    order = _order(world, order_id)
    status = order_status(world, order)
    if status != "delivered":
        raise ToolError("NOT_DELIVERED", f"order {order.id} is {status}; only delivered items can be returned")
    item = world.get(OrderItem, order_item_id)
    if item is None or item.order_id != order.id:
        raise ToolError("NOT_FOUND", f"order {order.id} has no line {order_item_id!r}; get_order lists them")
    variant = world.need(Variant, item.variant_id)
    category = world.need(Category, world.need(Product, variant.product_id).category_id)
    faulty = reason in ("damaged", "defective")
    days = max(category.return_days, 14) if faulty else category.return_days
    if not days:
        raise ToolError("NOT_RETURNABLE", f"{category.name} is final sale; only damaged or defective items go back")
    delivered = shipment_of(world, order).delivered_at
    if world.now > delivered + days * DAY:
        raise ToolError(
            "RETURN_WINDOW_CLOSED", f"order {order.id} could be returned until {iso(delivered + days * DAY)}"
        )
    if item.returned + quantity > item.quantity:
        raise ToolError(
            "QUANTITY_LIMIT", f"{item.quantity - item.returned} of line {item.id} are left to return, not {quantity}"
        )
    # What all returned units are worth, less what earlier returns of this line were worth: rounding never adds up.
    worth = item.paid_cents * (item.returned + quantity) // item.quantity
    worth -= item.paid_cents * item.returned // item.quantity
    own_wish = reason in ("changed_mind", "wrong_size")
    fee = worth * category.restocking_fee_percent // 100 if own_wish else 0
    if not faulty:
        world.update(variant, stock=variant.stock + quantity)
    refund = worth - fee
    world.update(item, returned=item.returned + quantity, refunded_cents=item.refunded_cents + refund)
    give_back(world, order, refund)
    made = Return(
        world.new_id(Return), order.id, item.id, quantity, reason, world.now, fee, refund, restocked=not faulty
    )
    world.put(made)
    return {
        "return_id": made.id,
        "order_id": order.id,
        "order_item_id": item.id,
        "quantity": quantity,
        "fee_cents": fee,
        "refund_cents": refund,
        "restocked": not faulty,
    }


def _order(world: World, order_id: str) -> Order:
    return world.need(Order, order_id, message=f"there is no order {order_id!r}; use list_orders")


def _charge(world: World, payment_method_id: str, cvv: str, amount: int) -> PaymentMethod:
    """The payment method, if ``amount`` can be charged to it."""
    method = world.need(
        PaymentMethod,
        payment_method_id,
        message=f"there is no payment method {payment_method_id!r}; use list_payment_methods",
    )
    name = f"{method.brand} ending in {method.last4} ({method.id})"
    if method.kind == "card" and cvv != method.cvv:
        raise ToolError(
            "BAD_CVV", f"the security code of {name} is {'missing' if not cvv else 'wrong'}; ask the customer"
        )
    if world.now >= method.expires_at:
        raise ToolError("CARD_DECLINED", f"{name} expired on {iso_date(method.expires_at)}; use another payment method")
    if method.blocked:
        raise ToolError("CARD_DECLINED", f"the bank refuses {name}; use another payment method")
    if amount > method.available_cents:
        raise ToolError("CARD_DECLINED", f"{amount} cents are more than {name} can pay; use another payment method")
    return method


def _place(
    world: World, price: Price, zone: Zone, address: Address, method: PaymentMethod, shipping_method: ShippingMethod
) -> Order:
    order = world.put(
        Order(
            id=world.new_id(Order),
            placed_at=world.now,
            cancelled_at=None,
            address_id=address.id,
            payment_method_id=method.id,
            coupons=cart_of(world).coupons,
            subtotal_cents=price.subtotal_cents,
            discount_cents=price.subtotal_cents - price.goods_cents,
            shipping_cents=price.shipping_cents,
            total_cents=price.total_cents,
            refunded_cents=0,
            arrived_cents=0,
        )
    )
    for line, paid in zip(price.lines, price.paid_cents, strict=True):
        world.put(
            OrderItem(
                id=world.new_id(OrderItem),
                order_id=order.id,
                variant_id=line.variant.id,
                product_name=line.product.name,
                quantity=line.item.quantity,
                unit_price_cents=line.variant.price_cents,
                paid_cents=paid,
                returned=0,
                refunded_cents=0,
            )
        )
    days = zone.express_days if shipping_method == "express" else zone.standard_days
    shipped = world.now + PACKING + COLLECTION
    shipment = world.new_id(Shipment)
    world.put(
        Shipment(
            id=shipment,
            order_id=order.id,
            carrier="Swift Parcel" if shipping_method == "express" else "National Post",
            tracking_number=f"TRK{world.random().randrange(10**9):09d}",
            method=shipping_method,
            packed_at=world.now + PACKING,
            shipped_at=shipped,
            delivered_at=shipped + days * DAY,
        )
    )
    return order


ORDERING: Final[list[FunctionTool]] = [
    list_payment_methods,
    list_orders,
    get_order,
    track_order,
    checkout,
    cancel_order,
    request_return,
]
