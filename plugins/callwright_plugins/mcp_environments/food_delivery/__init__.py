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

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person", "charges", "events")
