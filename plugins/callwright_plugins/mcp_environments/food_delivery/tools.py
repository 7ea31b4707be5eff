"""The 17 tools of the delivery service."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.food_delivery.basket import BASKET
from callwright_plugins.mcp_environments.food_delivery.browsing import BROWSING
from callwright_plugins.mcp_environments.food_delivery.ordering import ORDERING

TOOLS: Final[list[FunctionTool]] = [*BROWSING, *BASKET, *ORDERING]
