"""A clothes shop: products, stock, carts, shipping, checkout and refunds."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import REFERENCE_ONLY, Domain, PersonName, Row, fail, says
from callwright_plugins.depthbench.world import mixed, naming, per_world, roll, stream

DOMAIN: Final = Domain("shopping")
ITEMS: Final = (
    "denim jacket",
    "hoodie",
    "linen shirt",
    "rain coat",
    "running shoes",
    "wool sweater",
    "cotton socks",
    "baseball cap",
)
Item = Literal[
    "denim jacket",
    "hoodie",
    "linen shirt",
    "rain coat",
    "running shoes",
    "wool sweater",
    "cotton socks",
    "baseball cap",
]
BRANDS: Final = ("Alder", "Fjordline", "Kestrel", "Northway")
Brand = Literal["Alder", "Fjordline", "Kestrel", "Northway"]
COLOURS: Final = ("black", "blue", "green", "grey", "red", "white")
Colour = Literal["black", "blue", "green", "grey", "red", "white"]
SIZES: Final = ("S", "M", "L", "XL")
Size = Literal["S", "M", "L", "XL"]
#: Coupon -> share taken off; 0 for one that has expired.
COUPONS: Final = {"SAVE10": 0.10, "SPRING15": 0.15, "WELCOME5": 0.05, "VIP20": 0.20, "WINTER25": 0.0}
METHODS: Final = ("standard", "express", "courier")
Method = Literal["standard", "express", "courier"]
COUNTRIES: Final = ("France", "Germany", "Italy", "Japan", "Norway", "Spain", "United Kingdom", "United States")
Sku = Annotated[str, says(description="Product code, such as 'SKU-10432'")]


class ProductCode(TypedDict):
    """A product and its code."""

    item: Item
    brand: Brand
    colour: Colour
    size: Size
    sku: Sku


class Price(TypedDict):
    """What a product costs."""

    sku: Sku
    name: str
    price: float


class Stock(TypedDict):
    """How many there are."""

    sku: Sku
    available: int
    warehouse: str


class Reviews(TypedDict):
    """What buyers say."""

    sku: Sku
    reviews: int
    average: float
    summary: str


class CartItem(TypedDict):
    """So many of a product."""

    sku: Sku
    quantity: Annotated[int, says(minimum=1, maximum=20)]


class CartLine(TypedDict):
    """A line of a cart."""

    sku: Sku
    name: str
    quantity: int
    amount: float


class Cart(TypedDict):
    """A cart."""

    cart_id: str
    lines: list[CartLine]
    subtotal: float
    discount: float
    total: float


class Shipping(TypedDict):
    """What sending costs."""

    cart_id: str
    country: str
    method: Method
    cost: float
    days: int


class Address(TypedDict):
    """Where a parcel goes."""

    name: PersonName
    street: Annotated[str, says(minLength=1, maxLength=80)]
    city: Annotated[str, says(minLength=1, maxLength=60)]
    postcode: Annotated[str, says(pattern="^[A-Za-z0-9 -]{3,10}$")]


class CardPayment(TypedDict):
    """A card, by the token that stands for it."""

    token: Annotated[str, says(pattern="^tok_[a-z0-9]{6}$", description="Payment token, such as 'tok_a1b2c3'")]
    save_card: NotRequired[bool]


class Order(TypedDict):
    """A placed order."""

    order_id: str
    total: float
    ship_to: str
    method: Method
    paid: bool


class OrderRefund(TypedDict):
    """A refund."""

    order_id: str
    refund: float
    method: str
    days: int


CartResult = Annotated[Cart, REFERENCE_ONLY]
OrderResult = Annotated[Order, REFERENCE_ONLY]


@per_world()
def products() -> dict[tuple[str, str, str, str], Row]:
    """Most variants of every item; the others are not made."""
    rng = stream("products")
    codes = naming(rng, "products")
    made: dict[tuple[str, str, str, str], Row] = {}
    number = 10_000
    for item in ITEMS:
        for brand in BRANDS:
            base = 12 + rng.random() * 90
            for colour in COLOURS:
                for size in SIZES:
                    number += 1 + int(codes.random() * 7)
                    if codes.random() < 0.92:
                        price = round(base + SIZES.index(size) * 1.5 + rng.random() * 8, 2)
                        name = f"{brand} {item}, {colour}, {size}"
                        made[item, brand, colour, size] = {"sku": f"SKU-{number}", "name": name, "price": price}
    skus = mixed("products", [row["sku"] for row in made.values()])
    return {variant: {**row, "sku": sku} for (variant, row), sku in zip(made.items(), skus, strict=True)}


@per_world()
def by_sku() -> dict[str, Row]:
    """Every product by its code."""
    return {row["sku"]: row for row in products().values()}


def _the_product(sku: str) -> Row:
    row = by_sku().get(sku)
    if row is None:
        fail("unknown_product", f"there is no product {sku[:20]!r}")
    return row


def _available(sku: str) -> int:
    return roll(f"stock/{sku}", 45)


@DOMAIN.tool("retrieval", "sku")
def find_product_code(item: Item, brand: Brand, colour: Colour, size: Size) -> ProductCode:
    """The code of a product by item, brand, colour and size. Fails if that variant is not made."""
    row = products().get((item, brand, colour, size))
    if row is None:
        fail("no_such_variant", f"{brand} makes no {item} in {colour}, {size}")
    return {"item": item, "brand": brand, "colour": colour, "size": size, "sku": row["sku"]}


@DOMAIN.tool("information", "price")
def get_product_price(sku: Sku) -> Price:
    """Name and price of a product, in euros."""
    row = _the_product(sku)
    return {"sku": sku, "name": row["name"], "price": row["price"]}


@DOMAIN.tool("information", "available")
def check_product_stock(sku: Sku) -> Stock:
    """How many of a product are in stock, and where."""
    _the_product(sku)
    return {
        "sku": sku,
        "available": _available(sku),
        "warehouse": ("Ghent", "Leipzig", "Turin")[roll(f"house/{sku}", 3)],
    }


@DOMAIN.tool("information")
def get_product_reviews(sku: Sku) -> Reviews:
    """Number, average and gist of the reviews of a product."""
    _the_product(sku)
    seed = roll(f"reviews/{sku}", 1 << 20)
    average = round(2.8 + seed % 23 / 10, 1)
    summary = (
        "runs small" if seed % 5 == 0 else "well made" if average > 4 else "good value" if average > 3.4 else "mixed"
    )
    return {"sku": sku, "reviews": 3 + seed // 23 % 400, "average": average, "summary": summary}


@DOMAIN.tool("workflow", read_only=False)
def create_cart(
    items: Annotated[list[CartItem], says(minItems=1, maxItems=8)],
    coupon: Annotated[str, says(maxLength=20)] | None = None,
) -> Cart:
    """Put products into a new cart. Fails for unknown products, too few in stock, and unknown or expired coupons."""
    lines: list[CartLine] = []
    for item in sorted(items, key=lambda item: item["sku"]):
        row = _the_product(item["sku"])
        if item["quantity"] > _available(item["sku"]):
            fail("insufficient_stock", f"only {_available(item['sku'])} of {item['sku']} are in stock")
        amount = round(row["price"] * item["quantity"], 2)
        lines.append({"sku": item["sku"], "name": row["name"], "quantity": item["quantity"], "amount": amount})
    share = 0.0
    if coupon is not None:
        if coupon not in COUPONS:
            fail("unknown_coupon", f"there is no coupon {coupon!r}")
        share = COUPONS[coupon]
        if not share:
            fail("coupon_expired", f"the coupon {coupon} has expired")
    subtotal = round(sum(line["amount"] for line in lines), 2)
    key = "/".join(f"{line['sku']}*{line['quantity']}" for line in lines)
    return {
        "cart_id": f"cart_{roll(f'cart/{key}/{coupon}', 90_000) + 10_000}",
        "lines": lines,
        "subtotal": subtotal,
        "discount": round(subtotal * share, 2),
        "total": round(subtotal - round(subtotal * share, 2), 2),
    }


def _cart(cart: Any) -> tuple[str, float]:
    cart_id, total = cart.get("cart_id"), cart.get("total")
    if (
        not isinstance(cart_id, str)
        or isinstance(total, bool)
        or not isinstance(total, int | float)
        or not abs(total) < 1e12
    ):
        fail("not_a_table", "this tool takes a cart; pass on the result of the call that made it")
    return cart_id, total


@DOMAIN.tool("information", "cost")
def quote_shipping(
    cart: CartResult,
    country: Literal["France", "Germany", "Italy", "Japan", "Norway", "Spain", "United Kingdom", "United States"],
    method: Method,
) -> Shipping:
    """Cost and duration of sending a cart to a country."""
    cart_id, total = _cart(cart)
    far = 4.0 + 2.5 * COUNTRIES.index(country)
    cost = round((far + 0.02 * total) * {"standard": 1, "express": 2.2, "courier": 3.1}[method], 2)
    days = max(1, {"standard": 6, "express": 3, "courier": 1}[method] + COUNTRIES.index(country) // 3)
    return {"cart_id": cart_id, "country": country, "method": method, "cost": cost, "days": days}


@DOMAIN.tool("workflow", read_only=False)
def checkout_cart(cart: CartResult, address: Address, payment: CardPayment, method: Method = "standard") -> Order:
    """Pay for a cart and have it sent."""
    cart_id, total = _cart(cart)
    place = f"{address['name']}, {address['street']}, {address['postcode']} {address['city']}"
    number = roll(
        f"order/{cart_id}/{total}/{place}/{payment['token']}/{payment.get('save_card', False)}/{method}", 900_000
    )
    fee = {"standard": 4.9, "express": 11.5, "courier": 19.0}[method]
    return {
        "order_id": f"O{number + 100_000}",
        "total": round(total + fee, 2),
        "ship_to": place,
        "method": method,
        "paid": True,
    }


@DOMAIN.tool("workflow", "refund", read_only=False)
def request_order_refund(
    order: OrderResult, method: Literal["original card", "bank transfer", "store credit"]
) -> OrderRefund:
    """Ask for the money of an order back; store credit is refunded in full, the others less the shipping."""
    order_id, total = order.get("order_id"), order.get("total")
    if (
        not isinstance(order_id, str)
        or isinstance(total, bool)
        or not isinstance(total, int | float)
        or not abs(total) < 1e12
    ):
        fail("not_a_table", "this tool takes an order; pass on the result of the call that made it")
    kept = {"original card": 6.5, "bank transfer": 4.0, "store credit": 0.0}[method]
    days = {"original card": 5, "bank transfer": 3, "store credit": 0}[method]
    return {"order_id": order_id, "refund": round(max(0.0, total - kept), 2), "method": method, "days": days}
