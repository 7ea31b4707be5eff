"""The sixteen tools of the maps environment."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.maps import finding, saving, travelling

TOOLS: Final[list[FunctionTool]] = [*finding.TOOLS, *travelling.TOOLS, *saving.TOOLS]
