"""What the tools of the shop show of its rows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.pricing import Line, Price, cart_of
from callwright_plugins.mcp_environments.shopping.rows import (
    Category,
    Order,
    OrderItem,
    Product,
    Review,
    Shipment,
    Variant,
)
from callwright_plugins.mcp_environments.times import iso

OrderStatus = Literal["placed", "packed", "shipped", "delivered", "cancelled"]


class VariantView(TypedDict):
    """A variant and whether it can be had."""

    variant_id: str
    options: dict[str, str]
    price_cents: int
    stock: int
    weight_g: int


class ProductSummary(TypedDict):
    """A product in a list."""

    product_id: str
    name: str
    brand: str
    category_id: str
    price_from_cents: Annotated[int, Field(description="Of the cheapest variant.")]
    rating: Annotated[float | None, Field(description="1 to 5 stars; null: no reviews.")]
    review_count: int
    in_stock: bool
    variant_ids: list[str]


class ProductView(ProductSummary):
    """A product in full."""

    description: str
    order_limit: Annotated[int, Field(description="Most units in one order.")]
    hazardous: bool
    bulky: Annotated[bool, Field(description="Costs more to ship.")]
    discontinued: bool
    return_days: Annotated[int, Field(description="After delivery; 0: final sale.")]
    restocking_fee_percent: int
    variants: list[VariantView]


class CartLineView(TypedDict):
    """A line of the cart."""

    cart_item_id: str
    variant_id: str
    product_id: str
    product_name: str
    options: dict[str, str]
    quantity: Annotated[int, Field(description="Pieces.")]
    unit_price_cents: Annotated[int, Field(description="Of today.")]
    line_total_cents: Annotated[int, Field(description="Without discount.")]
    available: Annotated[bool, Field(description="Whether there is enough of it.")]
    price_changed_from_cents: Annotated[
        int | None, Field(description="The price when it was put into the cart, if that was another.")
    ]


class CouponOnCart(TypedDict):
    """A coupon on the cart: what it takes off, and why it does not count where it does not."""

    code: str
    discount_cents: Annotated[int, Field(description="What it takes off now.")]
    counts: Annotated[bool, Field(description="Whether it takes anything off the price as the cart is now.")]
    problem: Annotated[str, Field(description="Why it does not; empty if it does.")]


class CartView(TypedDict):
    """The cart with everything that checkout would charge."""

    items: list[CartLineView]
    coupons: list[CouponOnCart]
    address_id: str | None
    subtotal_cents: Annotated[int, Field(description="Lines only.")]
    discount_cents: Annotated[int, Field(description="Of all coupons, taken off the subtotal.")]
    shipping_cents: Annotated[int, Field(description="Standard postage.")]
    total_cents: Annotated[int, Field(description="Subtotal less discount, with shipping.")]


class OrderSummary(TypedDict):
    """An order in a list."""

    order_id: str
    status: OrderStatus
    placed_at: str
    item_count: Annotated[int, Field(description="Pieces.")]
    total_cents: Annotated[int, Field(description="With shipping, discount taken off; refunds are not.")]
    refunded_cents: Annotated[int, Field(description="So far.")]


class OrderItemView(TypedDict):
    """A line of an order."""

    order_item_id: str
    variant_id: str
    product_name: str
    quantity: Annotated[int, Field(description="Pieces ordered.")]
    unit_price_cents: Annotated[int, Field(description="Of the day of the order, without discount.")]
    paid_cents: Annotated[int, Field(description="For the whole line, discount taken off.")]
    returned: Annotated[int, Field(description="Pieces.")]


class OrderView(OrderSummary):
    """An order in full."""

    items: list[OrderItemView]
    coupons: list[str]
    address_id: str
    payment_method_id: str
    subtotal_cents: Annotated[int, Field(description="Lines only.")]
    discount_cents: Annotated[int, Field(description="Taken off the subtotal.")]
    shipping_cents: Annotated[int, Field(description="Postage.")]


def variant_view(variant: Variant) -> VariantView:
    """A variant."""
    return {
        "variant_id": variant.id,
        "options": dict(variant.options),
        "price_cents": variant.price_cents,
        "stock": variant.stock,
        "weight_g": variant.weight_g,
    }


def rating_of(reviews: list[Review]) -> float | None:
    """The mean of the stars to one decimal, or ``None`` without reviews."""
    return round(sum(review.stars for review in reviews) / len(reviews), 1) if reviews else None


def stars(world: World) -> dict[str, tuple[float | None, int]]:
    """The mean stars of every product with reviews, and how many there are."""
    reviews: dict[str, list[Review]] = {}
    for review in world.rows(Review):
        reviews.setdefault(review.product_id, []).append(review)
    return {name: (rating_of(listed), len(listed)) for name, listed in reviews.items()}


def product_summary(world: World, product: Product) -> ProductSummary:
    """A product in a list."""
    variants = world.find(Variant, product_id=product.id)
    rating, reviews = world.derived(stars, Review).get(product.id, (None, 0))
    return {
        "product_id": product.id,
        "name": product.name,
        "brand": product.brand,
        "category_id": product.category_id,
        "price_from_cents": min((variant.price_cents for variant in variants), default=0),
        "rating": rating,
        "review_count": reviews,
        "in_stock": not product.discontinued and any(variant.stock for variant in variants),
        "variant_ids": [variant.id for variant in variants],
    }


def product_view(world: World, product: Product) -> ProductView:
    """A product in full."""
    category = world.need(Category, product.category_id)
    return {
        **product_summary(world, product),
        "description": product.description,
        "order_limit": product.order_limit,
        "hazardous": product.hazardous,
        "bulky": product.bulky,
        "discontinued": product.discontinued,
        "return_days": category.return_days,
        "restocking_fee_percent": category.restocking_fee_percent,
        "variants": [variant_view(variant) for variant in world.find(Variant, product_id=product.id)],
    }


def line_view(line: Line) -> CartLineView:
    """A line of the cart."""
    item, variant, product = line.item, line.variant, line.product
    changed = item.added_price_cents != variant.price_cents
    return {
        "cart_item_id": item.id,
        "variant_id": variant.id,
        "product_id": product.id,
        "product_name": product.name,
        "options": dict(variant.options),
        "quantity": item.quantity,
        "unit_price_cents": variant.price_cents,
        "line_total_cents": line.total_cents,
        "available": not product.discontinued and variant.stock >= item.quantity,
        "price_changed_from_cents": item.added_price_cents if changed else None,
    }


def cart_view(world: World, price: Price) -> CartView:
    """The priced cart."""
    cart = cart_of(world)
    return {
        "items": [line_view(line) for line in price.lines],
        "coupons": [
            {
                "code": code,
                "discount_cents": price.counted.get(code, 0),
                "counts": code in price.counted,
                "problem": price.refused[code][1] if code in price.refused else "",
            }
            for code in cart.coupons
        ],
        "address_id": cart.address_id or None,
        "subtotal_cents": price.subtotal_cents,
        "discount_cents": price.subtotal_cents - price.goods_cents,
        "shipping_cents": price.shipping_cents,
        "total_cents": price.total_cents,
    }


def shipment_of(world: World, order: Order) -> Shipment:
    """The one shipment of an order."""
    return world.find(Shipment, order_id=order.id)[0]


def order_status(world: World, order: Order) -> OrderStatus:
    """Where an order is now."""
    if order.cancelled_at is not None:
        return "cancelled"
    shipment = shipment_of(world, order)
    if world.now >= shipment.delivered_at:
        return "delivered"
    if world.now >= shipment.shipped_at:
        return "shipped"
    return "packed" if world.now >= shipment.packed_at else "placed"


def order_summary(world: World, order: Order) -> OrderSummary:
    """An order in a list."""
    return {
        "order_id": order.id,
        "status": order_status(world, order),
        "placed_at": iso(order.placed_at),
        "item_count": sum(item.quantity for item in world.find(OrderItem, order_id=order.id)),
        "total_cents": order.total_cents,
        "refunded_cents": order.refunded_cents,
    }


def order_item_view(item: OrderItem) -> OrderItemView:
    """A line of an order."""
    return {
        "order_item_id": item.id,
        "variant_id": item.variant_id,
        "product_name": item.product_name,
        "quantity": item.quantity,
        "unit_price_cents": item.unit_price_cents,
        "paid_cents": item.paid_cents,
        "returned": item.returned,
    }


def order_view(world: World, order: Order) -> OrderView:
    """An order in full."""
    return {
        **order_summary(world, order),
        "items": [order_item_view(item) for item in world.find(OrderItem, order_id=order.id)],
        "coupons": list(order.coupons),
        "address_id": order.address_id,
        "payment_method_id": order.payment_method_id,
        "subtotal_cents": order.subtotal_cents,
        "discount_cents": order.discount_cents,
        "shipping_cents": order.shipping_cents,
    }
