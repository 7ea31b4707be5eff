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

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person", "charges", "events")
