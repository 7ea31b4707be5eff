"""The fifteen tools of the social network."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.social_media.acting import ACTING
from callwright_plugins.mcp_environments.social_media.reading import READING

TOOLS: Final[list[FunctionTool]] = [*READING, *ACTING]
