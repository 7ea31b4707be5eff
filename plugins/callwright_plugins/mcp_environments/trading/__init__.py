"""Trading: a broker's accounts at one exchange with an order book for every symbol.

- The exchange is open on weekdays that are no holidays, 08:00 to 16:30 UTC. Orders are placed and modified only while
  it is open; they can be cancelled at any time.
- Orders meet by price, then by time. Who comes later pays or gets the price of the order that waited. A limit order
  waits with what is left (``day``: until the close, ``gtc``: at most 90 days), an ``ioc`` or market order drops it.
- Limit prices are multiples of the symbol's tick and within its band around the close of the day before.
- A buy reserves cash (limit price times shares left), a sell reserves shares: neither can be spent twice, and nobody
  sells what they do not hold. An order that would meet one of the same trader is refused.
- Modifying an order loses its place in the queue, unless only its size shrinks.
- Other traders' orders keep coming in as the clock advances; they meet waiting orders, move prices and trigger alerts.
- At the close day orders expire, the day's prices become history, and bands move to the new close.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "events")
