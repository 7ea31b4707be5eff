"""Retail chain: the stock of a chain's shops and warehouses, what is on the road between them, and what is put aside.

- What a store can give away is what is on hand less what is reserved and still good.
- A transfer takes goods out of a store at once. A lorry needs hours; a courier hands up to ten pieces over without
  delay. Goods are in transit until ``receive_shipment`` at the other end, which is possible from their arrival on; what
  is missing then is written off.
- A transfer needs both stores to be active, and the other one to carry the item. A shop takes no more of an item than
  fits on its shelves, counting what is on its way.
- A reservation holds goods for a customer for some hours, two days unless asked otherwise, and then lets them go by
  itself. Only shops that are open at the time reserve; warehouses do not serve customers.
- Stock is adjusted with a reason that fits its sign; it never goes below what is reserved nor above what fits, and
  large differences need a note.
- Sales are recorded by day; reports sum them.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__)
