"""The scenarios of the shop: an ordinary customer, a bare one, and one for whom much is nearly right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.codes import own_codes
from callwright_plugins.mcp_environments.people import CITIES, FIRST, LAST, email_of, full_name, person
from callwright_plugins.mcp_environments.shopping.pricing import postage, shares
from callwright_plugins.mcp_environments.shopping.refunds import ON_ITS_WAY
from callwright_plugins.mcp_environments.shopping.rows import (
    CART,
    Address,
    Cart,
    CartItem,
    Category,
    Coupon,
    Order,
    OrderItem,
    PaymentMethod,
    Product,
    Profile,
    Review,
    Shipment,
    Variant,
    Zone,
)
from callwright_plugins.mcp_environments.times import DAY, HOUR

#: Departments, and in each: id, name, return days, restocking fee in percent, what is sold, and how it varies.
_DEPARTMENTS: Final = {
    "home": "Home and kitchen",
    "electronics": "Electronics",
    "clothing": "Clothing",
    "outdoor": "Sport and outdoor",
    "leisure": "Books and games",
}
_COLOURS: Final = ("black", "white", "red", "navy", "green", "sand")
_SIZES: Final = ("S", "M", "L", "XL")
_CATEGORIES: Final[tuple[tuple[str, str, str, int, int, tuple[str, ...], str], ...]] = (
    ("cookware", "Cookware", "home", 30, 0, ("frying pan", "saucepan", "casserole", "kettle", "wok"), "size_cm"),
    ("bedding", "Bedding", "home", 30, 0, ("duvet cover", "pillow", "blanket", "fitted sheet"), "colour"),
    ("furniture", "Furniture", "home", 14, 10, ("bookshelf", "desk", "armchair", "wardrobe"), "colour"),
    ("audio", "Audio", "electronics", 14, 15, ("headphones", "speaker", "turntable", "microphone"), "colour"),
    ("computing", "Computing", "electronics", 14, 15, ("keyboard", "monitor", "mouse", "laptop"), "storage"),
    ("power", "Batteries and power", "electronics", 14, 0, ("power bank", "battery pack", "charger"), "capacity"),
    ("shirts", "Shirts", "clothing", 60, 0, ("t-shirt", "linen shirt", "polo shirt"), "clothing"),
    ("shoes", "Shoes", "clothing", 60, 0, ("trainers", "boots", "sandals"), "shoe"),
    ("underwear", "Underwear", "clothing", 0, 0, ("socks", "boxer shorts", "thermal vest"), "clothing"),
    ("camping", "Camping", "outdoor", 30, 5, ("tent", "sleeping bag", "gas stove", "lantern"), "colour"),
    ("cycling", "Cycling", "outdoor", 30, 5, ("helmet", "bicycle", "pump", "lock"), "colour"),
    ("books", "Books", "leisure", 30, 0, ("novel", "atlas", "cookbook", "biography"), "binding"),
    ("games", "Board games", "leisure", 30, 0, ("strategy game", "card game", "puzzle"), "edition"),
)
_BRANDS: Final = (
    "Alder",
    "Borealis",
    "Castell",
    "Driftwood",
    "Elmo & Sons",
    "Fjord",
    "Granite",
    "Hearth",
    "Ilex",
    "Jura",
)
_SERIES: Final = ("Classic", "Pro", "Lite", "Plus", "Studio", "Trail", "Nordic", "Urban", "Prime", "Mini")
_BULKY: Final = ("bookshelf", "desk", "armchair", "wardrobe", "bicycle", "tent", "monitor")
_HAZARDOUS: Final = ("power bank", "battery pack", "gas stove", "laptop")
_TITLES: Final = ("Not for me", "Could be better", "Does its job", "Good value", "Would buy again")
_TEXTS: Final = (
    "It broke after a week.",
    "Smaller than it looks in the picture.",
    "Nothing special, but it works.",
    "Arrived quickly and feels solid.",
    "Exactly what I was looking for.",
)
_ZONES: Final = (
    Zone("mainland", True, True, True, 490, 1290, 5000, 3, 1),
    Zone("islands", True, True, False, 890, 1990, 10000, 5, 2),
    Zone("overseas", True, False, False, 1990, 4990, 20000, 12, 4),
    Zone("arctic", False, False, False, 0, 0, 0, 0, 0),
)
_OPTIONS: Final[dict[str, tuple[tuple[tuple[str, str], ...], ...]]] = {
    "size_cm": tuple((("diameter", f"{size} cm"),) for size in (20, 24, 28)),
    "colour": tuple((("colour", colour),) for colour in _COLOURS),
    "storage": tuple((("storage", size),) for size in ("256 GB", "512 GB", "1 TB")),
    "capacity": tuple((("capacity", size),) for size in ("5000 mAh", "10000 mAh", "20000 mAh")),
    "clothing": tuple((("colour", colour), ("size", size)) for colour in _COLOURS[:3] for size in _SIZES),
    "shoe": tuple((("size", str(size)),) for size in range(38, 46)),
    "binding": ((("binding", "paperback"),), (("binding", "hardcover"),), (("binding", "e-book"),)),
    "edition": ((("edition", "standard"),), (("edition", "deluxe"),)),
}


class _Numbers:
    """Ids in the order in which they are asked for, as :meth:`callwright.World.new_id` writes them."""

    def __init__(self) -> None:
        self._last: dict[type[Any], int] = {}

    def __call__(self, kind: type[Any]) -> str:
        self._last[kind] = self._last.get(kind, 0) + 1
        return table_of(kind).identifier(self._last[kind])


def _catalogue(rng: Random, number: _Numbers, count: int, *, scarce: float) -> Iterable[Product | Variant | Review]:
    """``count`` products; ``scarce`` is the share of variants without stock."""
    for n in range(count):
        category, _, _, _, _, kinds, varies = _CATEGORIES[n % len(_CATEGORIES)]
        what, brand, series = rng.choice(kinds), rng.choice(_BRANDS), rng.choice(_SERIES)
        product = Product(
            id=number(Product),
            name=f"{brand} {series} {what}",
            brand=brand,
            category_id=category,
            description=f"A {what} of the {series} series by {brand}.",
            order_limit=rng.choice((2, 5, 5, 10)),
            hazardous=what in _HAZARDOUS,
            bulky=what in _BULKY,
            discontinued=rng.random() < scarce / 4,
        )
        yield product
        price = rng.randrange(500, 30000, 5) + 99
        options = _OPTIONS[varies]
        for chosen in sorted(rng.sample(range(len(options)), min(len(options), rng.randint(2, 4)))):
            yield Variant(
                id=number(Variant),
                product_id=product.id,
                options=options[chosen],
                price_cents=price + chosen * rng.choice((0, 0, 100, 500)),
                stock=0 if rng.random() < scarce else rng.randint(1, 40),
                weight_g=rng.randrange(100, 5000, 50),
            )
        for _ in range(rng.choice((0, 1, 3, 5))):
            stars = rng.choice((1, 2, 3, 4, 4, 5, 5))
            yield Review(
                number(Review),
                product.id,
                full_name(rng),
                stars,
                _TITLES[stars - 1],
                _TEXTS[stars - 1],
                NOW - rng.randrange(1, 700 * 24) * HOUR,
            )


def _categories() -> Iterable[Category]:
    for name, title in _DEPARTMENTS.items():
        yield Category(name, title, "", 0, 0)
    for name, title, parent, days, fee, _, _ in _CATEGORIES:
        yield Category(name, title, parent, days, fee)


def _address(rng: Random, number: _Numbers, label: str, recipient: str, region: str) -> Address:
    street = f"{rng.randint(1, 180)} {rng.choice(LAST)} Street"
    return Address(number(Address), label, recipient, street, rng.choice(CITIES), f"{rng.randrange(10**5):05d}", region)


def _order(
    rng: Random,
    number: _Numbers,
    goods: Sequence[tuple[Product, Variant, int]],
    placed_at: int,
    address: Address,
    method: PaymentMethod,
    *,
    discount: int = 0,
    cancelled_at: int | None = None,
) -> list[Any]:
    """An order of the past; it is charged as the tools would have charged it."""
    zone = next(zone for zone in _ZONES if zone.region == address.region)
    totals = [variant.price_cents * quantity for _, variant, quantity in goods]
    parts = shares(discount, totals)
    shipping = postage(zone, sum(totals) - discount, "standard")
    total = sum(totals) - discount + shipping
    order = Order(
        id=number(Order),
        placed_at=placed_at,
        cancelled_at=cancelled_at,
        address_id=address.id,
        payment_method_id=method.id,
        coupons=(),
        subtotal_cents=sum(totals),
        discount_cents=discount,
        shipping_cents=shipping,
        total_cents=total,
        refunded_cents=total if cancelled_at is not None else 0,
        arrived_cents=total if cancelled_at is not None and cancelled_at + ON_ITS_WAY <= NOW else 0,
    )
    rows: list[Any] = [order]
    for (product, variant, quantity), full, off in zip(goods, totals, parts, strict=True):
        rows.append(
            OrderItem(
                id=number(OrderItem),
                order_id=order.id,
                variant_id=variant.id,
                product_name=product.name,
                quantity=quantity,
                unit_price_cents=variant.price_cents,
                paid_cents=full - off,
                returned=0,
                refunded_cents=0,
            )
        )
    rows.append(
        Shipment(
            id=number(Shipment),
            order_id=order.id,
            carrier="National Post",
            tracking_number=f"TRK{rng.randrange(10**9):09d}",
            method="standard",
            packed_at=placed_at + 4 * HOUR,
            shipped_at=placed_at + DAY,
            delivered_at=placed_at + DAY + zone.standard_days * DAY,
        )
    )
    return rows


def _goods(rng: Random, products: Sequence[Product], variants: Sequence[Variant]) -> list[tuple[Product, Variant, int]]:
    """One to three lines for an order; none is bulky or hazardous, so that they could go anywhere."""
    by_id = {product.id: product for product in products}
    fit = [one for one in variants if not (by_id[one.product_id].bulky or by_id[one.product_id].hazardous)]
    chosen = rng.sample(fit, min(len(fit), rng.randint(1, 3)))
    return [(by_id[variant.product_id], variant, rng.randint(1, 2)) for variant in chosen]


def _coupons(extra: Iterable[Coupon] = ()) -> Iterable[Coupon]:
    week = NOW + 7 * DAY
    yield Coupon("SPRING10", "percent", 10, "", 3000, 2000, True, NOW - 10 * DAY, week, 3)
    yield Coupon("TAKE5", "fixed", 500, "", 4000, None, True, NOW - 10 * DAY, week, 1)
    yield Coupon("FREESHIP", "free_shipping", 0, "", 1500, None, True, NOW - DAY, week, 2)
    yield Coupon("HOME20", "percent", 20, "home", 5000, 5000, False, NOW - DAY, week, 1)
    yield Coupon("BOOKWORM", "fixed", 300, "books", 0, None, True, NOW - DAY, week, 5)
    yield Coupon("BIGSPENDER", "fixed", 5000, "", 50000, None, False, NOW - DAY, week, 1)
    yield Coupon("WINTER15", "percent", 15, "", 0, None, True, NOW - 90 * DAY, NOW - 2 * DAY, 1)
    yield Coupon("EASTER10", "percent", 10, "", 0, None, True, NOW + 20 * DAY, NOW + 40 * DAY, 1)
    yield Coupon("WELCOME", "fixed", 1000, "", 2000, None, False, NOW - 300 * DAY, week, 0)
    yield from extra


def _typical_rows(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    first, last = person(rng)
    me = Profile("me", f"{first} {last}", email_of(first, last, 1))
    catalogue = list(_catalogue(rng, number, max(13, round(260 * scale)), scarce=0.12))
    products = [one for one in catalogue if isinstance(one, Product)]
    variants = [one for one in catalogue if isinstance(one, Variant)]
    addresses = [
        _address(rng, number, "home", me.name, "mainland"),
        _address(rng, number, "work", me.name, "mainland"),
        _address(rng, number, "parents", full_name(rng), "islands"),
        _address(rng, number, "holiday house", me.name, "overseas"),
        _address(rng, number, "research station", me.name, "arctic"),
    ]
    methods = [
        PaymentMethod(number(PaymentMethod), "card", "Visa", "4242", "123", NOW + 700 * DAY, False, 400_000),
        PaymentMethod(number(PaymentMethod), "card", "Mastercard", "5100", "456", NOW + 300 * DAY, False, 60_000),
        PaymentMethod(number(PaymentMethod), "card", "Visa", "0002", "789", NOW + 300 * DAY, True, 500_000),
        PaymentMethod(number(PaymentMethod), "card", "Amex", "0005", "1234", NOW - 30 * DAY, False, 500_000),
        PaymentMethod(number(PaymentMethod), "gift_card", "Shop gift card", "7781", "", NOW + 300 * DAY, False, 5_000),
    ]
    yield me
    yield from _categories()
    yield from catalogue
    yield from _ZONES
    yield from addresses
    yield from methods
    yield from _coupons()
    yield Cart(CART, (), "")
    ages = [HOUR, 6 * HOUR, 2 * DAY, 6 * DAY, 20 * DAY, 40 * DAY, 80 * DAY]
    for n in range(max(len(ages), round(24 * scale))):
        age = ages[n] if n < len(ages) else rng.randrange(1, 400 * 24) * HOUR
        placed = NOW - age
        yield from _order(
            rng,
            number,
            _goods(rng, products, variants),
            placed,
            addresses[n % 3],
            methods[n % 2],
            discount=rng.choice((0, 0, 250, 333)),
            cancelled_at=placed + HOUR if n >= len(ages) and rng.random() < 0.15 else None,
        )


def _sparse_rows(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    first, last = person(rng)
    yield Profile("me", f"{first} {last}", email_of(first, last, 1))
    yield from _categories()
    yield from _catalogue(rng, number, max(3, round(3 * scale)), scarce=0.0)
    yield from _ZONES
    yield _address(rng, number, "home", f"{first} {last}", "mainland")
    yield PaymentMethod(number(PaymentMethod), "gift_card", "Shop gift card", "1000", "", NOW + DAY, False, 100_000)
    yield Cart(CART, (), "")


def _adversarial_rows(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    first, last = person(rng)
    me = Profile("me", f"{first} {last}", email_of(first, last, 1))
    yield me
    yield from _categories()
    yield from _ZONES
    products: list[Product] = []
    variants: list[Variant] = []
    # Namesakes: one name, three products that differ in brand line, price, stock and where they may go.
    for n in range(max(20, round(60 * scale))):
        category, _, _, _, _, kinds, varies = _CATEGORIES[(n // 3) % len(_CATEGORIES)]
        what, brand = kinds[(n // 39) % len(kinds)], _BRANDS[(n // 3) % len(_BRANDS)]
        name = f"{brand} {('Classic', 'Classic II', 'Classic')[n % 3]} {what}"
        products.append(
            Product(
                id=number(Product),
                name=name,
                brand=brand,
                category_id=category,
                description=f"A {what}{' (renewed)' if n % 3 == 2 else ''} by {brand}.",
                order_limit=(1, 2, 5)[n % 3],
                hazardous=what in _HAZARDOUS,
                bulky=what in _BULKY,
                discontinued=n % 11 == 10,
            )
        )
        for k, options in enumerate(_OPTIONS[varies][:3]):
            stock = (0, 1, 2, 20)[rng.randrange(4)] if (n, k) != (0, 0) else 1
            variants.append(Variant(number(Variant), products[-1].id, options, 1999 + n % 3, stock, 500))
        yield Review(
            number(Review),
            products[-1].id,
            f"{FIRST[n % len(FIRST)]} Berg",
            1 + n % 5,
            "Hm",
            "See title.",
            NOW - n * DAY,
        )
    # The cart was filled some days ago: one line costs more now, of another there is less than it wants.
    variants[1] = Variant("V00002", products[0].id, variants[1].options, 2199, 20, 500)
    variants[3] = Variant("V00004", products[1].id, variants[3].options, 1999, 1, 500)
    yield from products
    yield from variants
    yield CartItem(number(CartItem), "V00002", 1, 1999)
    yield CartItem(number(CartItem), "V00004", 2, 1999)
    addresses = [
        _address(rng, number, "home", me.name, "arctic"),
        _address(rng, number, "home (new)", me.name, "mainland"),
        _address(rng, number, "home (old)", me.name, "islands"),
        _address(rng, number, "office", me.name, "overseas"),
    ]
    methods = [
        PaymentMethod(number(PaymentMethod), "card", "Visa", "4242", "123", NOW - DAY, False, 900_000),
        PaymentMethod(number(PaymentMethod), "card", "Visa", "4242", "321", NOW + 90 * DAY, True, 900_000),
        PaymentMethod(number(PaymentMethod), "card", "Visa", "4243", "132", NOW + 90 * DAY, False, 2_000),
        PaymentMethod(number(PaymentMethod), "card", "Visa", "4244", "231", NOW + 90 * DAY, False, 900_000),
        PaymentMethod(number(PaymentMethod), "gift_card", "Shop gift card", "4242", "", NOW + 60, False, 10_000),
    ]
    yield from addresses
    yield from methods
    yield from _coupons(
        (
            Coupon("SPRING1O", "percent", 1, "", 0, None, False, NOW - DAY, NOW + DAY, 1),  # a letter, not a zero
            Coupon("LASTCALL", "percent", 30, "", 0, None, True, NOW - DAY, NOW + 60, 1),
            Coupon("MIDNIGHT", "percent", 30, "", 0, None, True, NOW - DAY, NOW, 1),
            Coupon("EXACT", "fixed", 400, "", 2199, None, True, NOW - DAY, NOW + DAY, 1),
        )
    )
    yield Cart(CART, ("WINTER15",), addresses[2].id)
    plain = [product for product in products if not (product.bulky or product.hazardous)]
    of = {product.id: next(one for one in variants if one.product_id == product.id) for product in plain}
    # Around every limit: just before and after packing, shipping, delivery and the ends of return windows (30 days).
    ages = [4 * HOUR - 1, 4 * HOUR, DAY - 1, DAY, 4 * DAY - 1, 4 * DAY, 34 * DAY, 34 * DAY + 1, 18 * DAY + 1, 64 * DAY]
    for n, age in enumerate(ages):
        goods = [(plain[n % len(plain)], of[plain[n % len(plain)].id], 1 + n % 2)]
        yield from _order(rng, number, goods, NOW - age, addresses[1], methods[3 if n % 3 else 0])
    yield from _order(
        rng, number, [(plain[0], of[plain[0].id], 1)], NOW - 3 * HOUR, addresses[1], methods[3], cancelled_at=NOW - HOUR
    )


def _typical(rng: Random, scale: float) -> Iterable[Any]:
    return own_codes(_typical_rows(rng, scale), rng)


def _sparse(rng: Random, scale: float) -> Iterable[Any]:
    return own_codes(_sparse_rows(rng, scale), rng)


def _adversarial(rng: Random, scale: float) -> Iterable[Any]:
    return own_codes(_adversarial_rows(rng, scale), rng)


SCENARIOS: Final = {
    "typical": Scenario(_typical, "a customer with some orders and an empty cart in a shop of 260 products"),
    "sparse": Scenario(_sparse, "a new customer: no orders or coupons, one address, one gift card, three products"),
    "adversarial": Scenario(
        _adversarial, "namesakes, a stale cart, declined cards, look-alike coupons, and orders on every limit of time"
    ),
}
