"""The sixteen tools of customer relations."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.crm.reading import READING
from callwright_plugins.mcp_environments.crm.writing import WRITING

TOOLS: Final[list[FunctionTool]] = [*READING, *WRITING]
