"""The rules of a merchant's payments, as its model is told them."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule

POLICY: Final = Policy(
    "You keep a merchant's invoices and payments. Money is in cents; captures and refunds move it at once.",
    (
        Rule("Void is final: nothing is sent or captured after it.", "INVOICE_VOID"),
        Rule("An invoice is voided only while nothing of it is captured.", "INVALID_STATE"),
        Rule("A paid invoice is not sent again.", "ALREADY_PAID"),
        Rule("No more is captured than the card authorised.", "CAPTURE_EXCEEDS_AUTHORIZATION"),
        Rule(
            "An authorisation holds for seven days; then the invoice is sent again for a new one.",
            "AUTH_WINDOW_EXPIRED",
        ),
        Rule("No more is refunded than was captured.", "REFUND_EXCEEDS_CAPTURE"),
        Rule("Refunds are given within 180 days of the last capture.", "REFUND_WINDOW_CLOSED"),
        Rule("A key stands for one request for a day; another request needs another key.", "DUPLICATE_IDEMPOTENCY_KEY"),
        Rule("A card may decline: the invoice is then sent without an authorisation.", "CARD_DECLINED"),
        Rule("Webhooks are delivered to https addresses with a host name.", "INVALID_URL"),
        Rule("An address has one webhook.", "ALREADY_EXISTS"),
    ),
)
