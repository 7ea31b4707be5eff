"""Tools that only read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.closed_sets import none_such
from callwright_plugins.mcp_environments.recorded_times import outside_of_column
from callwright_plugins.mcp_environments.retail_chain.inventory import free, need_item, need_stock, need_store
from callwright_plugins.mcp_environments.retail_chain.rows import Item, Sale, Stock, Store, Transfer
from callwright_plugins.mcp_environments.retail_chain.views import (
    ItemView,
    StockView,
    StoreView,
    TransferView,
    item_view,
    stock_view,
    store_view,
    transfer_status,
    transfer_view,
)
from callwright_plugins.mcp_environments.times import DAY, iso_date, parse_day

StoreId = Annotated[str, Field(description="Id of a store, such as S00012.", max_length=20)]
ItemId = Annotated[str, Field(description="Id of an item, such as I00012.", max_length=20)]
SomeStore = Annotated[str, Field(description="Only of this store; empty for all.", max_length=20)]
SomeItem = Annotated[str, Field(description="Only of this item; empty for all.", max_length=20)]


class NearStore(TypedDict):
    """A store that has enough, and how far it is."""

    store_id: str
    name: str
    city: str
    kind: str
    distance_km: Annotated[float, Field(description="As the crow flies.")]
    free: Annotated[int, Field(description="On hand and not reserved.")]
    open_now: bool


class ReportLine(TypedDict):
    """Sales of one group."""

    group: Annotated[str, Field(description="Id, category or day, as group_by says.")]
    quantity: Annotated[int, Field(description="Pieces sold.")]
    revenue_cents: int


class SalesReport(TypedDict):
    """Sales between two days, both included; the groups with the highest revenue first."""

    since: Annotated[str, Field(description="First day.")]
    until: Annotated[str, Field(description="Last day, included.")]
    quantity: Annotated[int, Field(description="Pieces sold.")]
    revenue_cents: int
    lines: list[ReportLine]


@tool(read_only=True, discovery=True)
def list_stores(
    world: World,
    /,
    city: Annotated[str, Field(description="Only in this city; empty for all, and their cities.", max_length=40)] = "",
    kind: Annotated[Literal["any", "shop", "warehouse"], Field(description="Shops or warehouses.")] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[StoreView]:
    """List the stores of the chain with their hours and whether they are open now."""
    wanted, now = city.strip().casefold(), world.now
    found = [row for row in world.rows(Store) if wanted in ("", row.city.casefold()) and kind in ("any", row.kind)]
    if not found and (unknown := none_such(world, Store, "city", city)):
        world.warn("UNKNOWN_VALUE", unknown)
    return page(found, lambda row: store_view(row, now), limit, cursor)


@tool(read_only=True, discovery=True)
def search_items(
    world: World,
    /,
    query: Annotated[str, Field(description="Part of name or SKU; empty for all.", max_length=80)] = "",
    category: Annotated[
        str, Field(description="garden, home, kitchen, outdoor or tools; empty for all.", max_length=40)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ItemView]:
    """Find items by a part of their name or SKU, and by category. Several can have nearly the same name."""
    wanted, group = query.strip().casefold(), category.strip().casefold()
    found = [
        row for row in world.rows(Item) if wanted in f"{row.name}\n{row.sku}".casefold() and group in ("", row.category)
    ]
    if not found and (unknown := none_such(world, Item, "category", category)):
        world.warn("UNKNOWN_VALUE", unknown)
    return page(found, item_view, limit, cursor)


@tool(read_only=True)
def get_stock_level(world: World, /, store_id: StoreId, item_id: ItemId) -> StockView:
    """What a store has of an item: on hand, reserved, free, in transit, and how much more fits."""
    return stock_view(world, need_stock(world, need_store(world, store_id), need_item(world, item_id)))


@tool(read_only=True, latency=1)
def find_nearest_store_with_stock(
    world: World,
    /,
    item_id: ItemId,
    near_store_id: Annotated[str, Field(description="The store to start from; it is not listed.", max_length=20)],
    quantity: Annotated[int, Field(description="How many must be free there.", ge=1, le=10_000)] = 1,
    kind: Annotated[Literal["any", "shop", "warehouse"], Field(description="Shops or warehouses.")] = "any",
    most: Annotated[int, Field(description="Most stores to list.", ge=1, le=20)] = 3,
) -> list[NearStore]:
    """The nearest active stores that have enough of an item free, the nearest first; an empty list if there is none."""
    start, item = need_store(world, near_store_id), need_item(world, item_id)
    found: list[tuple[float, str, int]] = []
    for stock in world.find(Stock, item_id=item.id):
        store = need_store(world, stock.store_id)
        if store.id == start.id or store.status != "active" or kind not in ("any", store.kind):
            continue
        left = free(world, stock)
        if left >= quantity:
            found.append((start.distance_km(store), store.id, left))
    near: list[NearStore] = []
    for distance, store_id, left in sorted(found)[:most]:
        store = need_store(world, store_id)
        near.append(
            {
                "store_id": store.id,
                "name": store.name,
                "city": store.city,
                "kind": store.kind,
                "distance_km": distance,
                "free": left,
                "open_now": store.is_open(world.now),
            }
        )
    return near


@tool(read_only=True, discovery=True)
def list_transfers(
    world: World,
    /,
    store_id: Annotated[str, Field(description="Only from or to this store; empty for all.", max_length=20)] = "",
    item_id: SomeItem = "",
    status: Annotated[
        Literal["any", "in_transit", "arrived", "received"],
        Field(description="arrived: can be received now; in_transit: still on the road."),
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[TransferView]:
    """List transfers between stores, the newest first."""
    if store_id:
        need_store(world, store_id)
    if item_id:
        need_item(world, item_id)
    now = world.now
    found = [
        row
        for row in world.rows(Transfer)
        if store_id in ("", row.from_store_id, row.to_store_id)
        and item_id in ("", row.item_id)
        and (status == "any" or transfer_status(row, now) == status)
    ]
    found.sort(key=lambda row: (row.sent_at, row.id), reverse=True)
    return page(found, lambda row: transfer_view(row, now), limit, cursor)


@tool(read_only=True)
def get_sales_report(
    world: World,
    /,
    store_id: SomeStore = "",
    item_id: SomeItem = "",
    since: Annotated[str, Field(description="First day; empty: six days before the last.", max_length=20)] = "",
    until: Annotated[str, Field(description="Last day; empty: yesterday.", max_length=20)] = "",
    group_by: Annotated[Literal["item", "store", "category", "day"], Field(description="What to sum.")] = "item",
) -> SalesReport:
    """Sums of sales between two days by item, store, category or day, of one store or item or of all. Warns with
    OUTSIDE_RECORDS if there is none because the days are before the records or ahead."""
    if store_id:
        need_store(world, store_id)
    if item_id:
        need_item(world, item_id)
    last = parse_day(until) if until else world.now // DAY * DAY - DAY
    first = parse_day(since) if since else last - 6 * DAY
    if first > last:
        raise ToolError("BAD_DATE", f"since {iso_date(first)} is after until {iso_date(last)}")
    sums: dict[str, list[int]] = {}
    categories = {row.id: row.category for row in world.rows(Item)} if group_by == "category" else {}
    for row in world.find(Sale, store_id=store_id) if store_id else world.rows(Sale):
        if first <= row.day <= last and item_id in ("", row.item_id):
            if group_by == "category":
                group = categories[row.item_id]
            else:
                group = (
                    row.item_id if group_by == "item" else row.store_id if group_by == "store" else iso_date(row.day)
                )
            line = sums.setdefault(group, [0, 0])
            line[0] += row.quantity
            line[1] += row.revenue_cents
    if not sums and (why := outside_of_column(world, Sale, "day", "sales", first, last + DAY)):
        world.warn("OUTSIDE_RECORDS", why)
    lines: list[ReportLine] = [
        {"group": group, "quantity": quantity, "revenue_cents": revenue} for group, (quantity, revenue) in sums.items()
    ]
    if group_by == "day":
        lines.sort(key=lambda line: line["group"])
    else:
        lines.sort(key=lambda line: (-line["revenue_cents"], line["group"]))
    return {
        "since": iso_date(first),
        "until": iso_date(last),
        "quantity": sum(line["quantity"] for line in lines),
        "revenue_cents": sum(line["revenue_cents"] for line in lines),
        "lines": lines,
    }


LOOKUP: Final = (
    list_stores,
    search_items,
    get_stock_level,
    find_nearest_store_with_stock,
    list_transfers,
    get_sales_report,
)
