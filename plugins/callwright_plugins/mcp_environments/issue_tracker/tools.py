"""The twenty tools of the issue tracker environment."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.issue_tracker import planning, reading, working

TOOLS: Final[list[FunctionTool]] = [*reading.TOOLS, *working.TOOLS, *planning.TOOLS]
