"""Marketplace: people sell to one another at auctions and at fixed prices; you are one of them.

- A bid must exceed the highest one by an increment that grows with the price: 0.50, 1.00 from 10.00 on, 5.00 from
  100.00, 10.00 from 1,000.00. The first one must reach the start price. Nobody bids on what they sell.
- The highest bid is held in the bidder's wallet and freed when somebody bids more.
- A bid in the last five minutes moves the end to five minutes after it, so that nobody wins by being last.
- At the end the highest bid wins if it reaches the reserve; otherwise nothing is sold. A seller may accept the highest
  bid before, also only from the reserve on. With the first bid the buy-now price of an auction is gone.
- A bidder may withdraw until twelve hours before the end; all bids of theirs on that listing go, and the next highest
  bidder who still has the money leads.
- With bids a listing can be neither closed nor edited, except that its reserve may be lowered.
- What a buyer pays is kept in escrow until they leave feedback, at most seven days; then the seller gets it less 5 %.
- Other people's bids come in as the clock advances; saved searches bid on new auctions at once.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person", "charges", "events")
