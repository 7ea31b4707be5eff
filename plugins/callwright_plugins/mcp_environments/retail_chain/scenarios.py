"""The chain's worlds: an ordinary Monday, a young chain, and one full of traps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

import attrs

from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.people import CITIES, full_name
from callwright_plugins.mcp_environments.retail_chain.inventory import travel_seconds
from callwright_plugins.mcp_environments.retail_chain.rows import Item, Reservation, Sale, Stock, Store, Transfer
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE

_GOODS: Final = {
    "kitchen": ("Kettle", "Frying pan", "Knife set", "Mixing bowl", "Toaster"),
    "garden": ("Watering can", "Spade", "Hose", "Flower pot", "Rake"),
    "tools": ("Hammer", "Drill", "Screwdriver", "Saw", "Spirit level"),
    "home": ("Blanket", "Candle", "Cushion", "Lamp", "Mirror"),
    "outdoor": ("Tent", "Backpack", "Torch", "Sleeping bag", "Flask"),
}
_KINDS: Final = ("basic", "small", "large", "red", "blue", "steel", "deluxe")


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """At scale 1, 22 shops and 3 warehouses with 120 items, 1,500 stocks, 80 transfers, 2,000 sales."""
    stores = _stores(rng, _n(25, scale))
    items = _items(rng, _n(120, scale))
    yield from stores
    yield from items
    stocks = _stocks(rng, stores, items, 0.5)
    yield from stocks
    yield from _moves(rng, stores, stocks, _n(80, scale))
    yield from _reservations(rng, stores, stocks, _n(60, scale))
    yield from _sales(rng, stocks, items, share=0.14, days=10)


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """A shop and a warehouse that share one of three items, of which the shop has none; no sales, no transfers."""
    stores = [
        Store("S00001", "Harbour shop", "Calder", "shop", 0, 0, 8, 20, "active"),
        Store("S00002", "Central warehouse", "Calder", "warehouse", 30, 40, 0, 24, "active"),
    ]
    yield from stores
    items = _items(rng, _n(3, scale))
    yield from items
    yield Stock("S00001", items[0].id, 0, 10, 2)
    yield Stock("S00002", items[0].id, 12, 500, 50)
    if len(items) > 1:
        yield Stock("S00001", items[-1].id, 1, 10, 2)


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Closed and late shops, items of nearly one name, shelves that are full, stock that is all reserved."""
    stores = _stores(rng, _n(12, scale))
    stores = [
        _with(store, name=f"{stores[0].name} {'north' if number % 2 else 'south'}", city=stores[0].city)
        if number % 3 == 0
        else _with(store, status="closed")
        if number % 4 == 2
        else store
        for number, store in enumerate(stores)
    ]
    yield from stores
    items = [
        _with(item, name=f"Kettle {_KINDS[n % 3]}{'' if n % 2 else ' '}", discontinued=n % 5 == 4)
        for n, item in enumerate(_items(rng, _n(30, scale)))
    ]
    yield from items
    stocks = [
        _with(stock, on_hand=(0, 1, stock.capacity, stock.on_hand)[number % 4])
        for number, stock in enumerate(_stocks(rng, stores, items, 0.6))
    ]
    yield from stocks
    yield from _moves(rng, stores, stocks, _n(60, scale))
    held = [
        Reservation(
            f"R{number:05d}",
            stock.store_id,
            stock.item_id,
            stock.on_hand,
            full_name(rng),
            NOW - 47 * HOUR,
            NOW + (MINUTE, -MINUTE, 5 * HOUR)[number % 3],
        )
        for number, stock in enumerate([one for one in stocks if one.on_hand][::3], 1)
    ]
    yield from held
    yield from _sales(rng, stocks, items, share=0.3, days=5)


def _n(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def _with(row: Any, **changes: Any) -> Any:
    return attrs.evolve(row, **changes)


def _stores(rng: Random, count: int) -> list[Store]:
    found = []
    for number in range(1, count + 1):
        city = CITIES[(number - 1) % len(CITIES)]
        warehouse = number % 8 == 0
        opens = 0 if warehouse else rng.choice((7, 8, 8, 9, 10))
        found.append(
            Store(
                id=f"S{number:05d}",
                name=f"{city} {'warehouse' if warehouse else rng.choice(('centre', 'station', 'market', 'park'))}",
                city=city,
                kind="warehouse" if warehouse else "shop",
                x_km=rng.randint(0, 400),
                y_km=rng.randint(0, 400),
                opens_hour=opens,
                closes_hour=24 if warehouse else opens + rng.choice((10, 12)),
                status="closed" if rng.random() < 0.06 and number > 1 else "active",
            )
        )
    return found


def _items(rng: Random, count: int) -> list[Item]:
    found = []
    groups = tuple(_GOODS)
    for number in range(1, count + 1):
        category = groups[number % len(groups)]
        name = f"{_GOODS[category][number // len(groups) % 5]}, {_KINDS[number // 25 % len(_KINDS)]}"
        price = rng.randint(3, 90) * 100 - 1
        found.append(
            Item(
                f"I{number:05d}", f"{category[:3].upper()}-{1000 + number}", name, category, price, rng.random() < 0.04
            )
        )
    return found


def _stocks(rng: Random, stores: Sequence[Store], items: Sequence[Item], share: float) -> list[Stock]:
    found = []
    for store in stores:
        large = store.kind == "warehouse"
        for item in items:
            if large or rng.random() < share:
                capacity = rng.choice((200, 500, 1000)) if large else rng.choice((10, 20, 40, 80))
                on_hand = rng.choice((0, capacity // 4, capacity // 2, capacity * 3 // 4, 1))
                found.append(Stock(store.id, item.id, on_hand, capacity, capacity // 5))
    return found


def _moves(rng: Random, stores: Sequence[Store], stocks: Sequence[Stock], count: int) -> Iterator[Transfer]:
    """Transfers of the last two weeks: received, arrived and waiting, and on the road, within what fits."""
    by_id = {store.id: store for store in stores}
    room = {(stock.store_id, stock.item_id): stock.capacity - stock.on_hand for stock in stocks}
    carriers: dict[str, list[str]] = {}
    for stock in stocks:
        carriers.setdefault(stock.item_id, []).append(stock.store_id)
    found: list[tuple[int, str, str, str, int, bool]] = []
    shared = [item_id for item_id, held in carriers.items() if len(held) > 1]
    for _ in range(count if shared else 0):
        item_id = rng.choice(shared)
        first, second = rng.sample(carriers[item_id], 2)
        sent = NOW - rng.choice((rng.randint(1, 60), rng.randint(60, 60 * 24 * 14))) * MINUTE
        quantity = rng.randint(1, 12)
        done = sent + travel_seconds(by_id[first], by_id[second]) < NOW and rng.random() < 0.7
        if not done:
            if quantity > room[second, item_id] or by_id[second].status != "active":
                continue
            room[second, item_id] -= quantity
        found.append((sent, item_id, first, second, quantity, done))
    for number, (sent, item_id, first, second, quantity, done) in enumerate(sorted(found), 1):
        arrives = sent + travel_seconds(by_id[first], by_id[second])
        yield Transfer(
            id=f"T{number:05d}",
            item_id=item_id,
            from_store_id=first,
            to_store_id=second,
            quantity=quantity,
            status="received" if done else "in_transit",
            sent_at=sent,
            arrives_at=arrives,
            received_quantity=quantity if done else 0,
            received_at=arrives if done else 0,
        )


def _reservations(rng: Random, stores: Sequence[Store], stocks: Sequence[Stock], count: int) -> Iterator[Reservation]:
    shops = {store.id for store in stores if store.kind == "shop" and store.status == "active"}
    left = {(stock.store_id, stock.item_id): stock.on_hand for stock in stocks if stock.store_id in shops}
    places = [place for place, on_hand in left.items() if on_hand]
    number = 0
    for _ in range(count if places else 0):
        store_id, item_id = rng.choice(places)
        quantity = rng.randint(1, 3)
        if quantity > left[store_id, item_id]:
            continue
        left[store_id, item_id] -= quantity
        number += 1
        made = NOW - rng.randint(1, 70) * HOUR
        yield Reservation(f"R{number:05d}", store_id, item_id, quantity, full_name(rng), made, made + 48 * HOUR)


def _sales(rng: Random, stocks: Sequence[Stock], items: Sequence[Item], *, share: float, days: int) -> Iterator[Sale]:
    prices = {item.id: item.price_cents for item in items}
    today = NOW // DAY * DAY
    for stock in stocks:
        if rng.random() < share:
            for back in range(days, 0, -1):
                quantity = rng.randint(0, 5)
                if quantity:
                    revenue = quantity * prices[stock.item_id]
                    yield Sale(stock.store_id, stock.item_id, today - back * DAY, quantity, revenue)


SCENARIOS: Final = {
    "typical": Scenario(typical, "a chain of 25 stores on a Monday morning"),
    "sparse": Scenario(sparse, "a shop and a warehouse that share one item; no sales"),
    "adversarial": Scenario(adversarial, "closed stores, look-alike items, full shelves, reserved stock"),
}
