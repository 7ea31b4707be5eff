"""What happens to money and messages under way: refunds arrive, authorisations expire, webhooks are tried again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final

from callwright.environments.living.events import EventKind, Moment, Notice, after
from callwright.environments.world import World
from callwright_plugins.mcp_environments.payments.rows import Delivery, Payment, Receiver, Refund, Webhook
from callwright_plugins.mcp_environments.payments.webhooks import ATTEMPTS, host_of
from callwright_plugins.mcp_environments.times import iso


def _settling(refund: Refund) -> Moment:
    return refund.settles_at, refund.id


def _refund_due(world: World, since: Moment) -> Moment | None:
    return next(iter(after(world.prepared(Refund, _settling, _settling), since)), None)


def _tells_refund(world: World, refund_id: str, _: Any) -> Iterable[Notice]:
    refund = world.need(Refund, refund_id)
    yield Notice(f"The refund {refund.id} of {refund.amount_cents} cents for {refund.payment_id} is with the customer.")


def _expiry(payment: Payment) -> Moment:
    return payment.expires_at, payment.id


def _expiry_due(world: World, since: Moment) -> Moment | None:
    for moment in after(world.prepared(Payment, _expiry, _expiry), since):
        if world.need(Payment, moment[1]).open_cents(moment[0] - 1):
            return moment
    return None


def _tells_expiry(world: World, payment_id: str, _: Any) -> Iterable[Notice]:
    payment = world.need(Payment, payment_id)
    yield Notice(
        f"The authorisation {payment.id} of invoice {payment.invoice_id} has expired; "
        f"{payment.open_cents(payment.expires_at - 1)} cents of it were not captured."
    )


def _created(delivery: Delivery) -> Moment:
    return delivery.created_at, delivery.id


def _up_from(world: World, delivery: Delivery) -> int:
    receiver = world.get(Receiver, host_of(world.need(Webhook, delivery.webhook_id).url))
    return receiver.up_from if receiver else 0


def _attempt_due(world: World, since: Moment) -> Moment | None:
    """The next attempt; its key is the delivery and how many came before. None follows the one that arrives."""
    deliveries = world.prepared(Delivery, _created, _created)
    found: Moment | None = None
    for created, key in deliveries[bisect_right(deliveries, (since[0] - ATTEMPTS[-1] - 1, "")) :]:
        up_from: int | None = None
        for made, later in enumerate(ATTEMPTS):
            moment = created + later, (key, made)
            if found is not None and moment >= found:
                break
            if moment > since:
                if up_from is None:
                    up_from = _up_from(world, world.need(Delivery, key))
                if not made or created + ATTEMPTS[made - 1] < up_from:
                    found = moment
                break
    return found


def _tells_attempt(world: World, key: tuple[str, int], _: Any) -> Iterable[Notice]:
    delivery, made = world.need(Delivery, key[0]), key[1]
    what = f"The delivery {delivery.id} of {delivery.event} ({delivery.object_id}) to webhook {delivery.webhook_id}"
    if world.now >= _up_from(world, delivery):
        yield Notice(f"{what} has arrived, at attempt {made + 1}.")
    elif made + 1 < len(ATTEMPTS):
        again = iso(delivery.created_at + ATTEMPTS[made + 1])
        yield Notice(f"{what} did not arrive at attempt {made + 1}; it is tried again at {again}.")
    else:
        yield Notice(f"{what} has failed: {made + 1} attempts were made, and there are no more.")


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind("refund_settled", "A refund is with the customer: the merchant is told.", _refund_due, _tells_refund),
    EventKind(
        "authorisation_expired",
        "An authorisation expires before all of it is captured: the merchant is told.",
        _expiry_due,
        _tells_expiry,
    ),
    EventKind(
        "webhook_attempt", "A delivery is tried again: the merchant is told how it went.", _attempt_due, _tells_attempt
    ),
)
