"""The seventeen tools of the bank."""

from __future__ import annotations

from typing import Final

from callwright_plugins.mcp_environments.banking.identity import IDENTITY
from callwright_plugins.mcp_environments.banking.lookup import LOOKUP
from callwright_plugins.mcp_environments.banking.money import MONEY
from callwright_plugins.mcp_environments.banking.payments import PAYMENTS

TOOLS: Final = [*LOOKUP, *IDENTITY, *MONEY, *PAYMENTS]
