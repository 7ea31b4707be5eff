"""Rows of the chain. Prices are cents, places kilometres on a flat map, times seconds of the Unix clock (UTC)."""

from __future__ import annotations

from math import hypot
from typing import Final

from callwright.environments.rows import row


@row("stores", prefix="S")
class Store:
    """A shop or a warehouse; it is open every day from ``opens_hour`` to ``closes_hour`` (UTC)."""

    id: str
    name: str
    city: str
    kind: str  # shop, warehouse
    x_km: int
    y_km: int
    opens_hour: int
    closes_hour: int
    status: str  # active, closed

    def is_open(self, now: int) -> bool:
        """Whether customers are served at a time."""
        return self.status == "active" and self.opens_hour <= now % 86_400 // 3600 < self.closes_hour

    def distance_km(self, other: Store) -> float:
        """As the crow flies."""
        return round(hypot(self.x_km - other.x_km, self.y_km - other.y_km), 1)


@row("items", prefix="I")
class Item:
    """Something that is sold, by one piece."""

    id: str
    sku: str
    name: str
    category: str
    price_cents: int
    discontinued: bool = False


@row("stock", key=("store_id", "item_id"), index=("item_id", "store_id"))
class Stock:
    """What a store has of an item that it carries; ``capacity`` is what fits."""

    store_id: str
    item_id: str
    on_hand: int
    capacity: int
    reorder_point: int


@row(
    "transfers",
    prefix="T",
    index=("status", "to_store_id"),
    stamps=("sent_at", "received_at"),
    relative={"arrives_at": "sent_at"},
)
class Transfer:
    """Goods on the road from one store to another."""

    id: str
    item_id: str
    from_store_id: str
    to_store_id: str
    quantity: int
    status: str  # in_transit, received
    sent_at: int
    arrives_at: int
    received_quantity: int = 0
    received_at: int = 0


@row("reservations", prefix="R", index=("store_id",), stamps=("created_at",), relative={"expires_at": "created_at"})
class Reservation:
    """Goods put aside for a customer until ``expires_at``."""

    id: str
    store_id: str
    item_id: str
    quantity: int
    customer: str
    created_at: int
    expires_at: int
    released: bool = False

    def holds(self, now: int) -> int:
        """How many pieces it holds at a time."""
        return 0 if self.released or now >= self.expires_at else self.quantity


@row("adjustments", prefix="J", index=("store_id",), stamps=("at",))
class Adjustment:
    """Stock that changed otherwise than by transfers and sales."""

    id: str
    store_id: str
    item_id: str
    change: int
    reason: str
    note: str
    at: int


@row("sales", key=("store_id", "item_id", "day"), index=("store_id",))
class Sale:
    """What a store sold of an item on a day (seconds of its midnight)."""

    store_id: str
    item_id: str
    day: int
    quantity: int
    revenue_cents: int


ROWS: Final = (Store, Item, Stock, Transfer, Reservation, Adjustment, Sale)
