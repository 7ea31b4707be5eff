"""The 23 tools of the shop."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.shopping.cart import CART_TOOLS
from callwright_plugins.mcp_environments.shopping.catalogue import CATALOGUE
from callwright_plugins.mcp_environments.shopping.ordering import ORDERING

TOOLS: Final[list[FunctionTool]] = [*CATALOGUE, *CART_TOOLS, *ORDERING]
