"""Prove's twenty stateful environments with their 343 tools (Table 2), each in a package of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

#: Table 2 of the paper: the environments in its order, and how many tools each shows to agents. 343 in all.
TOOLS: Final[Mapping[str, int]] = {
    "banking": 17,
    "trading": 13,
    "payments": 10,
    "calendar": 17,
    "email": 17,
    "filesystem": 40,
    "shopping": 23,
    "marketplace": 13,
    "retail_chain": 11,
    "travel_booking": 20,
    "maps": 16,
    "social_media": 15,
    "team_chat": 11,
    "iot_devices": 25,
    "vehicle": 20,
    "crm": 16,
    "issue_tracker": 20,
    "budget": 12,
    "food_delivery": 17,
    "video_meeting": 10,
}
_SUMMARIES: Final[Mapping[str, str]] = {
    "banking": "accounts, PINs and tokens, transfers, payees, scheduled payments, cards",
    "trading": "order books with partial fills, positions, limits, alerts",
    "payments": "invoices, captures, refunds, webhooks",
    "calendar": "events, recurrence with exceptions, invitations, free time",
    "email": "folders, threads, drafts, labels, attachments, quotas",
    "filesystem": "directories, modes, owners, links, archives, quotas",
    "shopping": "products, carts, coupons, stock, orders, returns",
    "marketplace": "listings, bids, auctions, wallets, feedback",
    "retail_chain": "stores, stock, transfers, reservations",
    "travel_booking": "flights, fares, holds, seats, hotels, loyalty",
    "maps": "places, routes over a road graph, saved places",
    "social_media": "posts, follows, blocks, private profiles",
    "team_chat": "channels, threads, reactions, pins",
    "iot_devices": "lights, climate, locks, alarm, scenes, automations",
    "vehicle": "ignition, gears, doors, climate, navigation",
    "crm": "leads, contacts, deals through stages",
    "issue_tracker": "issues with workflows, links, sprints, work logs",
    "budget": "categories, budgets by month, expenses, hard caps",
    "food_delivery": "restaurants, baskets with options, promos, orders",
    "video_meeting": "meetings, waiting rooms, recordings",
}


@hookimpl
def callwright_environments() -> Iterable[Lazy]:
    """Register the environments; one is imported when it is first used."""
    for name, count in TOOLS.items():
        yield Lazy(
            name,
            f"callwright_plugins.mcp_environments.{name}:environment",
            summary=f"{_SUMMARIES[name]} ({count} tools, stateful; Prove, Table 2)",
            takes="callwright_plugins.mcp_environments.options:StatefulOptions",
        )
