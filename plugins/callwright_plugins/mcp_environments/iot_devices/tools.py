"""The 25 tools of the home."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.iot_devices.acting import ACTING
from callwright_plugins.mcp_environments.iot_devices.guarding import GUARDING
from callwright_plugins.mcp_environments.iot_devices.looking import LOOKING

TOOLS: Final[list[FunctionTool]] = [*LOOKING, *ACTING, *GUARDING]
