"""An online shop as one customer sees it: catalogue, cart, coupons, checkout, orders and returns.

- A product is sold in variants (size, colour …), each with its own price and stock. A cart reserves nothing: stock is
  checked when an item is put in and again at checkout, which takes it all or fails and takes nothing.
- Coupons are percent, fixed or free shipping. They may have a start, an end, a minimum spend, a category, a cap and a
  number of uses. Two coupons go together only if both are stackable; they count in the order in which they were
  applied, each on what the ones before left. A coupon that the cart no longer earns counts nothing and must be removed.
- The shop does not ship to every region, and dangerous or bulky goods not to all that it serves.
- Payment methods have an amount available. A blocked or expired card, and one with too little, is declined; a card
  needs its security code. Refunds go back to the method that paid, where they arrive three days later.
- An order is placed, packed, shipped and delivered at times fixed at checkout; the session's clock decides. It can be
  cancelled until it is shipped; once it is packed, the postage is not refunded.
- Delivered items can be returned within the return days of their category, and only as many as were bought. Goods in
  order go back into stock, and a change of mind costs the restocking fee of the category. Damaged or defective ones do
  not go back into stock, cost nothing, and can be returned for 14 days even where the category is final sale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callwright.environments.stateful import StatefulEnvironment, Toolsets


def environment(
    *,
    toolsets: Toolsets = (),
    scale: float = 1.0,
) -> StatefulEnvironment:
    """The environment; ``toolsets`` and ``scale`` as in :class:`callwright.StatefulEnvironment`."""
    from callwright.environments.stateful import StatefulEnvironment
    from callwright_plugins.mcp_environments.shopping.charges import CHARGES
    from callwright_plugins.mcp_environments.shopping.events import EVENTS
    from callwright_plugins.mcp_environments.shopping.knowledge import known
    from callwright_plugins.mcp_environments.shopping.people import named
    from callwright_plugins.mcp_environments.shopping.policy import POLICY, signed_in
    from callwright_plugins.mcp_environments.shopping.rows import ROWS
    from callwright_plugins.mcp_environments.shopping.scenarios import SCENARIOS
    from callwright_plugins.mcp_environments.shopping.tools import TOOLS

    return StatefulEnvironment(
        "shopping",
        rows=ROWS,
        tools=TOOLS,
        scenarios=SCENARIOS,
        toolsets=toolsets,
        scale=scale,
        policy=POLICY,
        person=signed_in,
        knowledge=known,
        people=named,
        charges=CHARGES,
        events=EVENTS,
    )
