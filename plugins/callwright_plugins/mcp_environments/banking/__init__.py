"""Banking: the counter of a retail bank, where reading is free and every change needs a token of the customer.

- ``verify_identity`` gives a token for 15 minutes. Customers with two factors need PIN and one-time password; each
  one-time password works once. Wrong secrets are refused and counted; the third in a row locks the customer for a day.
- Money is in cents of the account's currency. What can be spent is balance less holds plus the agreed overdraft.
- Cash, payments, and transfers to other people count against the account's limit of the day (UTC); transfers between
  a customer's own accounts do not. Frozen and closed accounts neither pay nor receive.
- Savings accounts pay only into accounts of their owner.
- Between currencies money is converted only when the call says so, at the bank's rate (mid rate less its margin).
- A payee is paid once verified: at once if it is an account of this bank under that very name, or with a one-time
  password; otherwise a day after it was added. A name that does not match the account is never verified.
- Scheduled payments run when the clock passes their time, in that order, as if somebody had paid then; one that lacks
  money or limit fails, and a repeated one goes on to its next day.
- Cards reported lost or stolen stay so.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "bank", "events")
