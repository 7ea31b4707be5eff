"""Budget: a household's money by category and month.

- A month's income is first unallocated; ``set_budget`` gives it to categories. No month, this or a later one, can give
  away more than there is.
- What a category has in a month is what it carried over, plus its budget, less what was spent.
- Categories that roll over take what is left, or missing, into the next month. What the others have left, or lack, goes
  back to, or comes out of, what is unallocated then. So no cent is made or lost.
- Categories with a hard cap refuse expenses beyond what they have, also later months' where they roll over; others let
  them pass with a warning (a partial success).
- A month is locked ten days after its end: nothing in it changes any more. Expenses are not dated in the future.
- Recurring expenses are entered when the clock reaches their day; one that would break a hard cap is missed.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "events")
