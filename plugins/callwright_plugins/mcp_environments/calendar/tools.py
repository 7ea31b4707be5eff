"""The seventeen tools of the calendar."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.calendar.changing import CHANGING
from callwright_plugins.mcp_environments.calendar.invitations import INVITATIONS
from callwright_plugins.mcp_environments.calendar.reading import READING

TOOLS: Final[list[FunctionTool]] = [*READING, *CHANGING, *INVITATIONS]
