"""The eleven tools of the retail chain; here are those that write."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.retail_chain.inventory import (
    active_store,
    expected,
    need_free,
    need_item,
    need_stock,
    reserved,
    travel_seconds,
)
from callwright_plugins.mcp_environments.retail_chain.lookup import LOOKUP, ItemId, StoreId
from callwright_plugins.mcp_environments.retail_chain.rows import Adjustment, Reservation, Transfer
from callwright_plugins.mcp_environments.retail_chain.views import (
    ReservationView,
    StockView,
    TransferView,
    reservation_view,
    stock_view,
    transfer_view,
)
from callwright_plugins.mcp_environments.times import HOUR, iso

#: Most that a courier carries, and the difference from which on an adjustment needs a note.
COURIER: Final = 10
LARGE: Final = 50

Reason = Literal["count_correction", "damage", "theft", "found", "customer_return"]
#: The sign that the change of an adjustment has by its reason; the other reasons go both ways.
_SIGNS: Final = {"damage": -1, "theft": -1, "found": 1, "customer_return": 1}


class Receipt(TypedDict):
    """A transfer that arrived, and the stock of the store then."""

    transfer: TransferView
    missing: Annotated[int, Field(description="Pieces that were sent and did not arrive.")]
    stock: StockView


class AdjustmentView(TypedDict):
    """An adjustment, and the stock after it."""

    adjustment_id: str
    change: Annotated[int, Field(description="Pieces; negative: fewer.")]
    reason: str
    stock: StockView


@tool
def transfer_stock(
    world: World,
    /,
    item_id: ItemId,
    from_store_id: StoreId,
    to_store_id: StoreId,
    quantity: Annotated[int, Field(description="How many pieces.", ge=1, le=10_000)],
    carrier: Annotated[
        Literal["lorry", "courier"],
        Field(description="A lorry needs hours; a courier brings at most 10 pieces without delay."),
    ] = "lorry",
) -> TransferView:
    """Send pieces that are free in one store to another that carries the item and has room for them.

    They are in transit until receive_shipment at the other end.
    """
    source, target = active_store(world, from_store_id), active_store(world, to_store_id)
    if source.id == target.id:
        raise ToolError("SAME_STORE", f"{source.name} ({source.id}) cannot send to itself")
    item = need_item(world, item_id)
    stock, other = need_stock(world, source, item), need_stock(world, target, item)
    if carrier == "courier" and quantity > COURIER:
        raise ToolError("INVALID_QUANTITY", f"a courier carries {COURIER} pieces, not {quantity}; send a lorry")
    need_free(world, stock, quantity)
    room = other.capacity - other.on_hand - expected(world, other)
    if quantity > room:
        raise ToolError("NO_ROOM", f"{target.name} ({target.id}) has room for {max(0, room)} more, not {quantity}")
    world.update(stock, on_hand=stock.on_hand - quantity)
    return transfer_view(
        world.put(
            Transfer(
                id=world.new_id(Transfer),
                item_id=item.id,
                from_store_id=source.id,
                to_store_id=target.id,
                quantity=quantity,
                status="in_transit",
                sent_at=world.now,
                arrives_at=world.now + (0 if carrier == "courier" else travel_seconds(source, target)),
            )
        ),
        world.now,
    )


@tool(irreversible=True)
def receive_shipment(
    world: World,
    /,
    transfer_id: Annotated[str, Field(description="Id of a transfer, such as T00012.", max_length=20)],
    received_quantity: Annotated[
        int | None, Field(description="How many came in good order; left out, all.", ge=0, le=10_000)
    ] = None,
) -> Receipt:
    """Take a transfer that has arrived into stock. What is missing is written off (partial: SHORT_RECEIPT)."""
    transfer = world.need(
        Transfer, transfer_id, message=f"there is no transfer {transfer_id!r}; list_transfers names them"
    )
    if transfer.status == "received":
        raise ToolError("INVALID_STATE", f"the transfer {transfer_id} was received at {iso(transfer.received_at)}")
    if world.now < transfer.arrives_at:
        raise ToolError("NOT_ARRIVED", f"the transfer {transfer_id} arrives at {iso(transfer.arrives_at)}")
    came = transfer.quantity if received_quantity is None else received_quantity
    if came > transfer.quantity:
        raise ToolError(
            "INVALID_QUANTITY",
            f"{transfer.quantity} pieces were sent with {transfer_id}, not {came}; enter others with adjust_inventory",
        )
    store = active_store(world, transfer.to_store_id)
    stock = need_stock(world, store, need_item(world, transfer.item_id))
    stock = world.update(stock, on_hand=stock.on_hand + came)
    transfer = world.update(transfer, status="received", received_quantity=came, received_at=world.now)
    missing = transfer.quantity - came
    if missing:
        world.warn(
            "SHORT_RECEIPT", f"{missing} of {transfer.quantity} pieces of {transfer_id} are missing, written off"
        )
    return {"transfer": transfer_view(transfer, world.now), "missing": missing, "stock": stock_view(world, stock)}


@tool
def adjust_inventory(
    world: World,
    /,
    store_id: StoreId,
    item_id: ItemId,
    change: Annotated[int, Field(description="Pieces to add, or to take off if negative.", ge=-10_000, le=10_000)],
    reason: Annotated[Reason, Field(description="damage and theft take off, found and customer_return add.")],
    note: Annotated[str, Field(description="What happened; needed from 50 pieces on.", max_length=300)] = "",
) -> AdjustmentView:
    """Correct the stock of an item in a store. It cannot go below what is reserved (NEGATIVE_ADJUSTMENT)."""
    store = active_store(world, store_id)
    stock = need_stock(world, store, need_item(world, item_id))
    if change == 0 or change * _SIGNS.get(reason, change) < 0:
        raise ToolError("INVALID_QUANTITY", f"a change of {change} does not go with {reason}")
    held = reserved(world, stock)
    if stock.on_hand + change < held:
        raise ToolError(
            "NEGATIVE_ADJUSTMENT",
            f"{store_id} has {stock.on_hand} of {item_id} on hand, of which {held} are reserved; "
            f"at most {stock.on_hand - held} can be taken off, not {-change}",
        )
    room = stock.capacity - stock.on_hand - expected(world, stock)
    if change > max(0, room):
        raise ToolError("NO_ROOM", f"{store.name} ({store_id}) has room for {max(0, room)} more, not {change}")
    if abs(change) >= LARGE and not note.strip():
        raise ToolError("NOTE_REQUIRED", f"a change of {LARGE} pieces or more needs a note; this is {change}")
    stock = world.update(stock, on_hand=stock.on_hand + change)
    made = world.put(Adjustment(world.new_id(Adjustment), store_id, item_id, change, reason, note.strip(), world.now))
    return {"adjustment_id": made.id, "change": change, "reason": reason, "stock": stock_view(world, stock)}


@tool
def reserve_item(
    world: World,
    /,
    store_id: StoreId,
    item_id: ItemId,
    quantity: Annotated[int, Field(description="How many pieces.", ge=1, le=100)],
    customer: Annotated[str, Field(description="Name of the customer.", min_length=1, max_length=80)],
    hours: Annotated[int, Field(description="How long to hold them.", ge=1, le=168)] = 48,
) -> ReservationView:
    """Put pieces of an item aside for a customer in a shop that is open now. They are let go when the time is over."""
    store = active_store(world, store_id)
    if store.kind != "shop":
        raise ToolError("INVALID_STATE", f"{store.name} ({store_id}) is a warehouse and serves no customers")
    if not store.is_open(world.now):
        raise ToolError(
            "STORE_CLOSED",
            f"{store.name} ({store_id}) is open from {store.opens_hour} to {store.closes_hour} o'clock UTC",
        )
    stock = need_stock(world, store, need_item(world, item_id))
    need_free(world, stock, quantity)
    return reservation_view(
        world.put(
            Reservation(
                id=world.new_id(Reservation),
                store_id=store_id,
                item_id=item_id,
                quantity=quantity,
                customer=customer,
                created_at=world.now,
                expires_at=world.now + hours * HOUR,
            )
        ),
        world.now,
    )


@tool(destructive=True)
def release_reservation(
    world: World,
    /,
    reservation_id: Annotated[str, Field(description="Id of a reservation, such as R00012.", max_length=20)],
) -> ReservationView:
    """Let go what a reservation holds. One whose time is over holds nothing any more (RESERVATION_EXPIRED)."""
    one = world.need(
        Reservation, reservation_id, message=f"there is no reservation {reservation_id!r}; reserve_item makes one"
    )
    if one.released:
        raise ToolError("INVALID_STATE", f"the reservation {reservation_id} was released already")
    if world.now >= one.expires_at:
        raise ToolError("RESERVATION_EXPIRED", f"the reservation {reservation_id} expired at {iso(one.expires_at)}")
    return reservation_view(world.update(one, released=True), world.now)


TOOLS: Final = [*LOOKUP, transfer_stock, receive_shipment, adjust_inventory, reserve_item, release_reservation]
