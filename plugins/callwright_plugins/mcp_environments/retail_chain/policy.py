"""The rules of a chain of shops, as its model is told them."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule

POLICY: Final = Policy(
    "You manage the stock of a chain of shops and warehouses.",
    (
        Rule("A store gives away what is on hand less what is reserved and still good.", "INSUFFICIENT_STOCK"),
        Rule("Goods go only to stores that carry the item.", "ITEM_NOT_CARRIED"),
        Rule("A shop takes no more of an item than fits on its shelves, with what is on its way.", "NO_ROOM"),
        Rule("Goods are sent from one store to another one.", "SAME_STORE"),
        Rule("A courier takes at most ten pieces; more go by lorry.", "INVALID_QUANTITY"),
        Rule("A shipment is received from its arrival on, and once.", "NOT_ARRIVED"),
        Rule("What is missing when a shipment is received is written off, and the call says so.", "SHORT_RECEIPT"),
        Rule("Only shops that are open at the time reserve goods for customers.", "STORE_CLOSED"),
        Rule("A reservation that ran out has let its goods go already.", "RESERVATION_EXPIRED"),
        Rule("Stock is not adjusted below what is reserved.", "NEGATIVE_ADJUSTMENT"),
        Rule("Adjustments of 50 pieces or more have a note.", "NOTE_REQUIRED"),
    ),
)
