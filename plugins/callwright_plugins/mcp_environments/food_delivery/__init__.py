"""A food delivery service as one customer in a city sees it: restaurants, baskets with options, orders, couriers.

- Restaurants have opening hours by weekday (UTC; a night may go past midnight) and may pause. Menus are served at their
  hours only: what is on the breakfast menu cannot be ordered in the evening. Items and single options sell out.
- An item may have groups of options with a least and a most number of choices and surcharges.
- Each restaurant delivers to some districts, with a fee and a minimum order for each.
- There is one open basket. It belongs to a restaurant and an address; everything is checked when it is made and again
  when it is ordered.
- A basket takes one promo code; another one replaces it. Codes expire, are used up, need a spend, are of one
  restaurant, or are for a first order. A cancelled order gives its code back.
- An order is placed, confirmed, preparing, picked up and delivered at times fixed when it is placed; kitchens are
  slower at busy hours. It can be cancelled, for everything that was paid, until it is preparing.
- The courier can be tipped once, until a day after delivery. Orders are rated once, after delivery and within 14 days;
  the rating counts for the restaurant.
- Card payments need the security code of the saved card. Tips are charged to that card too.
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
    from callwright_plugins.mcp_environments.food_delivery.charges import CHARGES
    from callwright_plugins.mcp_environments.food_delivery.events import EVENTS
    from callwright_plugins.mcp_environments.food_delivery.knowledge import known
    from callwright_plugins.mcp_environments.food_delivery.people import named
    from callwright_plugins.mcp_environments.food_delivery.policy import POLICY, signed_in
    from callwright_plugins.mcp_environments.food_delivery.rows import ROWS
    from callwright_plugins.mcp_environments.food_delivery.scenarios import SCENARIOS
    from callwright_plugins.mcp_environments.food_delivery.tools import TOOLS

    return StatefulEnvironment(
        "food_delivery",
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
