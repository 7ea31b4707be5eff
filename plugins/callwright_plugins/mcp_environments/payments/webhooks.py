"""Webhooks: which events there are, where they may go, and when they arrive."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import urlsplit

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.payments.rows import Delivery, Receiver, Webhook
from callwright_plugins.mcp_environments.times import MINUTE

Event = Literal[
    "invoice.created",
    "invoice.sent",
    "invoice.paid",
    "invoice.voided",
    "payment.authorized",
    "payment.declined",
    "payment.captured",
    "payment.refunded",
]
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
#: Seconds from an event to each attempt to deliver it.
ATTEMPTS: Final = tuple(MINUTE * minutes for minutes in (0, 1, 6, 36, 156, 876))


def emit(world: World, event: Event, object_id: str) -> None:
    """Tell the webhooks that want an event."""
    for webhook in list(world.rows(Webhook)):
        if event in webhook.events:
            world.put(Delivery(world.new_id(Delivery), webhook.id, event, object_id, world.now))


@lru_cache(maxsize=1024)
def host_of(url: str) -> str:
    """The host of a webhook. Fails with ``INVALID_URL`` unless it is https to a public host."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        parts, host, port = None, "", None
    if parts is None or parts.scheme != "https" or parts.username or "." not in host or port not in (None, 443):
        raise ToolError("INVALID_URL", f"{url[:100]!r} is no address such as https://shop.example.com/hook")
    if host.endswith((".local", ".internal", ".localhost")) or _is_address(host):
        raise ToolError("INVALID_URL", f"webhooks go to public names, not to {host!r}")
    return host


def fate(world: World, delivery: Delivery) -> tuple[str, int, int | None]:
    """How a delivery stands now: status, attempts made, and the time of the next (``None``: there is none)."""
    webhook = world.need(Webhook, delivery.webhook_id)
    receiver = world.get(Receiver, host_of(webhook.url))
    up_from = receiver.up_from if receiver else 0
    for made, after in enumerate(ATTEMPTS):
        at = delivery.created_at + after
        if at > world.now:
            return "retrying", made, at
        if at >= up_from:
            return "delivered", made + 1, None
    return "failed", len(ATTEMPTS), None


def _is_address(host: str) -> bool:
    if _NUMBER.fullmatch(host.rpartition(".")[2]):  # such as 127.1: no name ends in a number
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
