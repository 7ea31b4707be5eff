"""What a cart costs: lines, coupons in their order, postage; and what each line pays of it."""

from __future__ import annotations

from attrs import frozen

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.shopping.rows import (
    CART,
    Address,
    Cart,
    CartItem,
    Category,
    Coupon,
    Product,
    ShippingMethod,
    Variant,
    Zone,
)
from callwright_plugins.mcp_environments.times import iso


@frozen
class Line:
    """A line of the cart with the rows that it is made of."""

    item: CartItem
    variant: Variant
    product: Product

    @property
    def total_cents(self) -> int:
        """Today's price times quantity."""
        return self.variant.price_cents * self.item.quantity


@frozen
class Price:
    """A priced cart: ``paid_cents`` has what each line pays after discounts, ``counted`` what each coupon took off."""

    lines: list[Line]
    paid_cents: list[int]
    counted: dict[str, int]
    #: Why a coupon that is on the cart counts nothing, as code and sentence.
    refused: dict[str, tuple[str, str]]
    shipping_cents: int

    @property
    def subtotal_cents(self) -> int:
        """The lines at full price."""
        return sum(line.total_cents for line in self.lines)

    @property
    def goods_cents(self) -> int:
        """The lines after discounts."""
        return sum(self.paid_cents)

    @property
    def total_cents(self) -> int:
        """Goods and postage."""
        return self.goods_cents + self.shipping_cents


def cart_of(world: World) -> Cart:
    """The cart of the session."""
    return world.need(Cart, CART)


def cart_lines(world: World) -> list[Line]:
    """The lines of the cart, in the order in which they were put in."""
    lines = []
    for item in world.rows(CartItem):
        variant = world.need(Variant, item.variant_id)
        lines.append(Line(item, variant, world.need(Product, variant.product_id)))
    return lines


def in_category(world: World, product: Product, category_id: str) -> bool:
    """Whether a product belongs to a category or to a category inside it; every product belongs to ``""``."""
    if not category_id or product.category_id == category_id:
        return True
    category = world.get(Category, product.category_id)
    return category is not None and category.parent_id == category_id


def coupon_problem(world: World, coupon: Coupon, lines: list[Line]) -> tuple[str, str] | None:
    """Why a coupon counts nothing on these lines now, as code and sentence; ``None`` if it counts."""
    if world.now >= coupon.expires_at:
        return "COUPON_EXPIRED", f"{coupon.code} expired at {iso(coupon.expires_at)}"
    if world.now < coupon.starts_at:
        return "COUPON_NOT_STARTED", f"{coupon.code} is valid from {iso(coupon.starts_at)}"
    if coupon.uses_left < 1:
        return "COUPON_USED", f"{coupon.code} has been used as often as it may be"
    eligible = [line for line in lines if in_category(world, line.product, coupon.category_id)]
    if not eligible:
        return "NOT_ELIGIBLE", f"{coupon.code} is for the category {coupon.category_id!r}, and no item is of it"
    spend = sum(line.total_cents for line in eligible)
    if spend < coupon.min_spend_cents:
        where = f" in {coupon.category_id!r}" if coupon.category_id else ""
        return "MIN_SPEND", f"{coupon.code} needs {coupon.min_spend_cents} cents of goods{where}; there are {spend}"
    return None


def price_cart(world: World, method: ShippingMethod = "standard") -> Price:
    """The cart at today's prices, with its coupons and the postage to its address (0 while it has none).

    Each coupon works on what the ones before it left of the lines that it is for; percentages are rounded down. Free
    postage depends on the goods after discounts.
    """
    cart, lines = cart_of(world), cart_lines(world)
    paid = [line.total_cents for line in lines]
    counted: dict[str, int] = {}
    refused: dict[str, tuple[str, str]] = {}
    free = False
    for code in cart.coupons:
        coupon = world.need(Coupon, code)
        problem = coupon_problem(world, coupon, lines)
        if problem is not None:
            refused[code] = problem
            continue
        free |= coupon.kind == "free_shipping"
        chosen = [n for n, line in enumerate(lines) if in_category(world, line.product, coupon.category_id)]
        left = sum(paid[n] for n in chosen)
        counted[code] = _worth(coupon, left)
        for n, share in zip(chosen, shares(counted[code], [paid[n] for n in chosen]), strict=True):
            paid[n] -= share
    shipping = 0
    address = world.get(Address, cart.address_id)
    if lines and address is not None and not free:
        shipping = postage(world.need(Zone, address.region), sum(paid), method)
    return Price(lines, paid, counted, refused, shipping)


def _worth(coupon: Coupon, left: int) -> int:
    """What a coupon takes off goods of ``left`` cents."""
    if coupon.kind == "free_shipping":
        return 0
    worth = left * coupon.value // 100 if coupon.kind == "percent" else coupon.value
    if coupon.max_discount_cents is not None:
        worth = min(worth, coupon.max_discount_cents)
    return min(worth, left)


def shares(amount: int, weights: list[int]) -> list[int]:
    """``amount`` in whole cents in proportion to ``weights``; no share exceeds its weight if the amount does not.

    Each share is what the weights up to it are due less what was given before, so the shares add up exactly.
    """
    whole, given, running = sum(weights), 0, 0
    parts = []
    for weight in weights:
        running += weight
        part = (amount * running // whole if whole else 0) - given
        given += part
        parts.append(part)
    return parts


def postage(zone: Zone, goods_cents: int, method: ShippingMethod) -> int:
    """What shipping costs; only standard shipping becomes free."""
    if method == "express":
        return zone.express_cents
    return 0 if goods_cents >= zone.free_from_cents else zone.standard_cents


def check_address(world: World, address: Address, lines: list[Line]) -> Zone:
    """The zone of an address to which all lines can go; fails with ``ADDRESS_UNSHIPPABLE``."""
    zone = world.need(Zone, address.region)
    if not zone.served:
        raise ToolError("ADDRESS_UNSHIPPABLE", f"the shop does not ship to {address.region} (address {address.id})")
    for line in lines:
        for held, taken, what in (
            (line.product.hazardous, zone.takes_hazardous, "hazardous"),
            (line.product.bulky, zone.takes_bulky, "bulky"),
        ):
            if held and not taken:
                raise ToolError(
                    "ADDRESS_UNSHIPPABLE",
                    f"{line.product.name} ({line.variant.id}) is {what} and cannot go to {address.region} (address "
                    f"{address.id}); remove {line.item.id} or choose another address",
                )
    return zone
