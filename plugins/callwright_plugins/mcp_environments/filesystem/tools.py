"""The forty tools of the filesystem environment."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.filesystem import (
    archiving,
    changing,
    copying,
    looking,
    moving_about,
    reading,
    rights,
    searching,
)

TOOLS: Final[list[FunctionTool]] = [
    *moving_about.TOOLS,
    *looking.TOOLS,
    *reading.TOOLS,
    *searching.TOOLS,
    *changing.TOOLS,
    *copying.TOOLS,
    *rights.TOOLS,
    *archiving.TOOLS,
]
