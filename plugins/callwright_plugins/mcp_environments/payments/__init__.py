"""Payments: invoices of a merchant, what customers' cards authorise, captures, refunds, and webhooks that tell of it.

- An invoice is a draft until it is sent. Sending asks the customer's card for an authorisation of what is still to be
  paid; a card can decline. An authorisation holds for seven days, then the invoice is sent again for a new one.
- A capture takes authorised money, all or part of it, as often as something is left, and never more than was
  authorised. The invoice is paid when all of it is captured.
- Refunds give back captured money, never more than was captured, within 180 days of the last capture; they settle an
  hour later.
- An invoice can be voided while nothing is captured; that releases its authorisation. Void is final.
- A request with an idempotency key is done once: the same request under the same key is answered as before for a day,
  another request under it is refused.
- Every event is delivered to the webhooks that want it: at once, and if the receiver is down again after 1, 5, 30, 120
  and 720 minutes, as the clock passes these times.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "charges", "events")
