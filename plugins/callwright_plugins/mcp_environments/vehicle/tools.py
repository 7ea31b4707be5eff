"""The twenty tools of the vehicle environment."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.vehicle import comfort, driving, navigating, reading

TOOLS: Final[list[FunctionTool]] = [*reading.TOOLS, *driving.TOOLS, *comfort.TOOLS, *navigating.TOOLS]
