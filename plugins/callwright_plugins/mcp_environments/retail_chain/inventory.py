"""What stores have, have put aside, and expect."""

from __future__ import annotations

from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.retail_chain.rows import Item, Reservation, Stock, Store, Transfer
from callwright_plugins.mcp_environments.times import HOUR

#: Loading and unloading, and how far a lorry gets in an hour.
HANDLING: Final = 4 * HOUR
KM_PER_HOUR: Final = 50


def need_store(world: World, store_id: str) -> Store:
    """The store, or ``NOT_FOUND``."""
    return world.need(Store, store_id, message=f"there is no store {store_id!r}; list_stores names them")


def active_store(world: World, store_id: str) -> Store:
    """The store. Fails with ``NOT_FOUND``, or ``STORE_CLOSED`` for one that is closed for good."""
    store = need_store(world, store_id)
    if store.status != "active":
        raise ToolError("STORE_CLOSED", f"the store {store.name} ({store_id}) is closed for good")
    return store


def need_item(world: World, item_id: str) -> Item:
    """The item, or ``NOT_FOUND``."""
    return world.need(Item, item_id, message=f"there is no item {item_id!r}; search_items finds them")


def need_stock(world: World, store: Store, item: Item) -> Stock:
    """The stock, or ``ITEM_NOT_CARRIED``."""
    return world.need(
        Stock,
        (store.id, item.id),
        "ITEM_NOT_CARRIED",
        f"{store.name} ({store.id}) does not carry {item.name} ({item.id})",
    )


def reserved(world: World, stock: Stock) -> int:
    """How many pieces reservations hold now."""
    held = world.find(Reservation, store_id=stock.store_id, item_id=stock.item_id)
    return sum(one.holds(world.now) for one in held)


def free(world: World, stock: Stock) -> int:
    """How many pieces can be given away."""
    return stock.on_hand - reserved(world, stock)


def expected(world: World, stock: Stock) -> int:
    """How many pieces are on their way to a store."""
    coming = world.find(Transfer, to_store_id=stock.store_id, item_id=stock.item_id, status="in_transit")
    return sum(one.quantity for one in coming)


def need_free(world: World, stock: Stock, quantity: int) -> None:
    """Fails with ``INSUFFICIENT_STOCK``."""
    left = free(world, stock)
    if quantity > left:
        raise ToolError(
            "INSUFFICIENT_STOCK",
            f"{stock.store_id} has {left} of {stock.item_id} free ({stock.on_hand} on hand, "
            f"{stock.on_hand - left} reserved), not {quantity}; find_nearest_store_with_stock finds others",
        )


def travel_seconds(first: Store, second: Store) -> int:
    """How long a transfer takes."""
    return HANDLING + round(first.distance_km(second) * HOUR / KM_PER_HOUR)
