"""Tools of the cart: lines, coupons and where it is to go."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.shopping.pricing import (
    cart_lines,
    cart_of,
    check_address,
    coupon_problem,
    price_cart,
)
from callwright_plugins.mcp_environments.shopping.rows import (
    Address,
    CartItem,
    Coupon,
    CouponKind,
    Product,
    ShippingMethod,
    Variant,
    Zone,
)
from callwright_plugins.mcp_environments.shopping.views import CartView, cart_view
from callwright_plugins.mcp_environments.times import iso

ItemId = Annotated[str, Field(description="Cart item id, such as CI00003, from view_cart.", max_length=40)]
Code = Annotated[str, Field(description="Coupon code, such as MAPLE10, from list_coupons.", max_length=40)]
Method = Annotated[ShippingMethod, Field(description="How it is shipped; express costs more and is never free.")]


class CouponView(TypedDict):
    """A coupon and its conditions."""

    code: str
    kind: CouponKind
    percent: Annotated[int | None, Field(description="Off the price; null for a fixed amount.")]
    amount_cents: Annotated[int | None, Field(description="Off the price; null for a percentage.")]
    category_id: Annotated[str | None, Field(description="Only for this category; null: for all.")]
    min_spend_cents: int
    max_discount_cents: Annotated[int | None, Field(description="At most so much off; null: no bound.")]
    stackable: Annotated[bool, Field(description="Whether it goes with other coupons.")]
    starts_at: str
    expires_at: str
    uses_left: Annotated[int, Field(description="Orders that it can still be used for.")]


class AddressView(TypedDict):
    """A saved address."""

    address_id: str
    label: str
    recipient: str
    street: str
    city: str
    postcode: str
    region: str


class Cleared(TypedDict):
    """How many lines and coupons were taken away."""

    removed_items: int
    removed_coupons: int


@tool(read_only=True)
def view_cart(world: World, /, shipping_method: Method = "standard") -> CartView:
    """The cart as checkout would charge it: lines, coupons, postage to the chosen address, and the total."""
    return cart_view(world, price_cart(world, shipping_method))


@tool(read_only=True, discovery=True)
def list_coupons(
    world: World,
    /,
    valid_now: Annotated[
        bool, Field(description="Only coupons that have begun, not expired and have uses left.")
    ] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[CouponView]:
    """List the customer's coupons with their conditions. Expired ones are listed too unless valid_now is true."""
    now = world.now
    coupons = [
        coupon
        for coupon in world.rows(Coupon)
        if not valid_now or (coupon.starts_at <= now < coupon.expires_at and coupon.uses_left)
    ]
    return page(coupons, _coupon_view, limit, cursor)


@tool(read_only=True, discovery=True)
def list_addresses(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[AddressView]:
    """List the saved shipping addresses. Whether the shop ships there is found out by set_shipping_address."""
    return page(
        list(world.rows(Address)),
        lambda address: {
            "address_id": address.id,
            "label": address.label,
            "recipient": address.recipient,
            "street": address.street,
            "city": address.city,
            "postcode": address.postcode,
            "region": address.region,
        },
        limit,
        cursor,
    )


@tool
def add_to_cart(
    world: World,
    /,
    variant_id: Annotated[
        str, Field(description="Variant id, such as V00031, from search_products or get_product.", max_length=40)
    ],
    quantity: Annotated[int, Field(ge=1, le=99, description="How many units.")] = 1,
) -> CartView:
    """Put units of a variant into the cart; a variant that is there already becomes more. Fails with OUT_OF_STOCK if
    the stock does not cover all units in the cart, and with QUANTITY_LIMIT above the product's limit for one order.
    """
    variant = world.need(Variant, variant_id, message=f"there is no variant {variant_id!r}; get_product lists them")
    product = world.need(Product, variant.product_id)
    present = next(iter(world.find(CartItem, variant_id=variant.id)), None)
    wanted = quantity + (present.quantity if present else 0)
    _check_quantity(world, product, variant, wanted)
    if present is not None:
        world.update(present, quantity=wanted)
    else:
        world.put(CartItem(world.new_id(CartItem), variant.id, wanted, variant.price_cents))
    return cart_view(world, price_cart(world))


@tool(idempotent=True)
def update_cart_item(
    world: World,
    /,
    cart_item_id: ItemId,
    quantity: Annotated[int, Field(ge=1, le=99, description="The new number of units; to have none, remove it.")],
) -> CartView:
    """Set how many units of a line are wanted. Fails like add_to_cart, and with NOT_FOUND for a line that is gone."""
    item = _item(world, cart_item_id)
    variant = world.need(Variant, item.variant_id)
    _check_quantity(world, world.need(Product, variant.product_id), variant, quantity)
    world.update(item, quantity=quantity)
    return cart_view(world, price_cart(world))


@tool(destructive=True)
def remove_from_cart(world: World, /, cart_item_id: ItemId) -> CartView:
    """Take a line out of the cart. Coupons stay, but may no longer count."""
    world.drop(_item(world, cart_item_id))
    return cart_view(world, price_cart(world))


@tool(destructive=True, idempotent=True)
def clear_cart(world: World, /) -> Cleared:
    """Take all lines and coupons out of the cart; the shipping address stays."""
    cart, items = cart_of(world), list(world.rows(CartItem))
    for item in items:
        world.drop(item)
    world.update(cart, coupons=())
    return {"removed_items": len(items), "removed_coupons": len(cart.coupons)}


@tool
def apply_coupon(world: World, /, code: Code) -> CartView:
    """Apply a coupon to the cart. Fails with EMPTY_CART, COUPON_EXPIRED, COUPON_NOT_STARTED, COUPON_USED, NOT_ELIGIBLE
    (no item of its category), MIN_SPEND, or NOT_STACKABLE beside a coupon that does not go with others.
    """
    cart, lines = cart_of(world), cart_lines(world)
    coupon = _coupon(world, code)
    if not lines:
        raise ToolError("EMPTY_CART", f"put something into the cart before applying {coupon.code}")
    if coupon.code in cart.coupons:
        raise ToolError("ALREADY_APPLIED", f"{coupon.code} is on the cart already")
    problem = coupon_problem(world, coupon, lines)
    if problem is not None:
        raise ToolError(*problem)
    alone = next((other for other in cart.coupons if not world.need(Coupon, other).stackable), None)
    if cart.coupons and (alone is not None or not coupon.stackable):
        raise ToolError(
            "NOT_STACKABLE",
            f"{alone or coupon.code} cannot be combined with other coupons; on the cart: {', '.join(cart.coupons)}",
        )
    world.update(cart, coupons=(*cart.coupons, coupon.code))
    return cart_view(world, price_cart(world))


@tool
def remove_coupon(world: World, /, code: Code) -> CartView:
    """Take a coupon off the cart. Fails with NOT_APPLIED if it is not on it."""
    cart, coupon = cart_of(world), _coupon(world, code)
    if coupon.code not in cart.coupons:
        raise ToolError("NOT_APPLIED", f"{coupon.code} is not on the cart")
    world.update(cart, coupons=tuple(other for other in cart.coupons if other != coupon.code))
    return cart_view(world, price_cart(world))


class Destination(TypedDict):
    """Where the cart goes, and what postage costs and how long it takes."""

    address_id: str
    region: str
    standard_cents: int
    standard_days: int
    express_cents: int
    express_days: int
    free_standard_from_cents: Annotated[int, Field(description="Subtotal from which standard costs nothing.")]


@tool(idempotent=True)
def set_shipping_address(
    world: World,
    /,
    address_id: Annotated[str, Field(description="Address id, such as A00002, from list_addresses.", max_length=40)],
) -> Destination:
    """Choose where the cart is shipped; checkout needs it. Fails with ADDRESS_UNSHIPPABLE for a region that the shop
    does not serve, or if an item of the cart may not go there.
    """
    address = world.need(Address, address_id, message=f"there is no address {address_id!r}; use list_addresses")
    zone: Zone = check_address(world, address, cart_lines(world))
    world.update(cart_of(world), address_id=address.id)
    return {
        "address_id": address.id,
        "region": zone.region,
        "standard_cents": zone.standard_cents,
        "standard_days": zone.standard_days,
        "express_cents": zone.express_cents,
        "express_days": zone.express_days,
        "free_standard_from_cents": zone.free_from_cents,
    }


def _item(world: World, cart_item_id: str) -> CartItem:
    return world.need(CartItem, cart_item_id, message=f"the cart has no line {cart_item_id!r}; use view_cart")


def _coupon(world: World, code: str) -> Coupon:
    """Codes are written in capitals; customers need not type them so."""
    return world.need(Coupon, code.strip().upper(), message=f"there is no coupon {code!r}; use list_coupons")


def _check_quantity(world: World, product: Product, variant: Variant, wanted: int) -> None:
    if product.discontinued:
        raise ToolError("OUT_OF_STOCK", f"{product.name} ({variant.id}) is no longer sold")
    if wanted > variant.stock:
        raise ToolError("OUT_OF_STOCK", f"{variant.stock} of {product.name} ({variant.id}) are in stock, not {wanted}")
    others = sum(
        item.quantity
        for sibling in world.find(Variant, product_id=product.id)
        if sibling.id != variant.id
        for item in world.find(CartItem, variant_id=sibling.id)
    )
    if wanted + others > product.order_limit:
        raise ToolError(
            "QUANTITY_LIMIT",
            f"an order takes at most {product.order_limit} of {product.name} over all variants, not {wanted + others}",
        )


def _coupon_view(coupon: Coupon) -> CouponView:
    return {
        "code": coupon.code,
        "kind": coupon.kind,
        "percent": coupon.value if coupon.kind == "percent" else None,
        "amount_cents": coupon.value if coupon.kind == "fixed" else None,
        "category_id": coupon.category_id or None,
        "min_spend_cents": coupon.min_spend_cents,
        "max_discount_cents": coupon.max_discount_cents,
        "stackable": coupon.stackable,
        "starts_at": iso(coupon.starts_at),
        "expires_at": iso(coupon.expires_at),
        "uses_left": coupon.uses_left,
    }


CART_TOOLS: Final[list[FunctionTool]] = [
    view_cart,
    list_coupons,
    list_addresses,
    add_to_cart,
    update_cart_item,
    remove_from_cart,
    clear_cart,
    apply_coupon,
    remove_coupon,
    set_shipping_address,
]
