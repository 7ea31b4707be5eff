"""The seventeen tools of the mailbox."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.email.reading import READING
from callwright_plugins.mcp_environments.email.writing import WRITING

TOOLS: Final[list[FunctionTool]] = [*READING, *WRITING]
