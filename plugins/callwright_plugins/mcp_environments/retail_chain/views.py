"""What tools show of rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.retail_chain.inventory import expected, reserved
from callwright_plugins.mcp_environments.retail_chain.rows import Item, Reservation, Stock, Store, Transfer
from callwright_plugins.mcp_environments.times import iso


class StoreView(TypedDict):
    """A store; hours are UTC."""

    store_id: str
    name: str
    city: str
    kind: str
    status: str
    open_now: bool
    opens_hour: Annotated[int, Field(description="UTC.")]
    closes_hour: Annotated[int, Field(description="UTC.")]


class ItemView(TypedDict):
    """An item."""

    item_id: str
    sku: str
    name: str
    category: str
    price_cents: int
    discontinued: bool


class StockView(TypedDict):
    """What a store has of an item: ``free`` is on hand less reserved, ``room`` what still fits."""

    store_id: str
    item_id: str
    on_hand: Annotated[int, Field(description="Reserved ones counted.")]
    reserved: int
    free: Annotated[int, Field(description="On hand and not reserved.")]
    in_transit: Annotated[int, Field(description="On its way to this store.")]
    capacity: Annotated[int, Field(description="Most that fits.")]
    room: Annotated[int, Field(description="Pieces that can still come in.")]
    reorder_point: Annotated[int, Field(description="Below it more is to be ordered.")]
    below_reorder_point: bool


class TransferView(TypedDict):
    """A transfer; it can be received once it is ``arrived``."""

    transfer_id: str
    item_id: str
    from_store_id: str
    to_store_id: str
    quantity: Annotated[int, Field(description="Pieces sent.")]
    received_quantity: Annotated[int, Field(description="0 until it is received.")]
    status: str
    sent_at: str
    arrives_at: str
    received_at: Annotated[str, Field(description="Empty until then.")]


class ReservationView(TypedDict):
    """A reservation."""

    reservation_id: str
    store_id: str
    item_id: str
    quantity: Annotated[int, Field(description="Pieces kept.")]
    customer: str
    status: str
    expires_at: Annotated[str, Field(description="When the pieces are free again.")]


def store_view(row: Store, now: int) -> StoreView:
    """A store as tools show it at a time."""
    return {
        "store_id": row.id,
        "name": row.name,
        "city": row.city,
        "kind": row.kind,
        "status": row.status,
        "open_now": row.is_open(now),
        "opens_hour": row.opens_hour,
        "closes_hour": row.closes_hour,
    }


def item_view(row: Item) -> ItemView:
    """An item as tools show it."""
    return {
        "item_id": row.id,
        "sku": row.sku,
        "name": row.name,
        "category": row.category,
        "price_cents": row.price_cents,
        "discontinued": row.discontinued,
    }


def stock_view(world: World, row: Stock) -> StockView:
    """Stock as tools show it now."""
    held, coming = reserved(world, row), expected(world, row)
    return {
        "store_id": row.store_id,
        "item_id": row.item_id,
        "on_hand": row.on_hand,
        "reserved": held,
        "free": row.on_hand - held,
        "in_transit": coming,
        "capacity": row.capacity,
        "room": max(0, row.capacity - row.on_hand - coming),
        "reorder_point": row.reorder_point,
        "below_reorder_point": row.on_hand < row.reorder_point,
    }


def transfer_status(row: Transfer, now: int) -> str:
    """``in_transit``, ``arrived`` or ``received``."""
    return "arrived" if row.status == "in_transit" and now >= row.arrives_at else row.status


def transfer_view(row: Transfer, now: int) -> TransferView:
    """A transfer as tools show it at a time."""
    return {
        "transfer_id": row.id,
        "item_id": row.item_id,
        "from_store_id": row.from_store_id,
        "to_store_id": row.to_store_id,
        "quantity": row.quantity,
        "received_quantity": row.received_quantity,
        "status": transfer_status(row, now),
        "sent_at": iso(row.sent_at),
        "arrives_at": iso(row.arrives_at),
        "received_at": iso(row.received_at) if row.received_at else "",
    }


def reservation_view(row: Reservation, now: int) -> ReservationView:
    """A reservation as tools show it at a time."""
    status = "released" if row.released else "active" if now < row.expires_at else "expired"
    return {
        "reservation_id": row.id,
        "store_id": row.store_id,
        "item_id": row.item_id,
        "quantity": row.quantity,
        "customer": row.customer,
        "status": status,
        "expires_at": iso(row.expires_at),
    }
