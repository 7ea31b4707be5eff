"""The 20 tools of the travel agency."""

from __future__ import annotations

from typing import Final

from callwright.tools.spec import FunctionTool
from callwright_plugins.mcp_environments.travel_booking.flights import FLIGHTS
from callwright_plugins.mcp_environments.travel_booking.hotels import HOTELS
from callwright_plugins.mcp_environments.travel_booking.journeys import JOURNEYS
from callwright_plugins.mcp_environments.travel_booking.trips import TRIPS

TOOLS: Final[list[FunctionTool]] = [*FLIGHTS, *TRIPS, *HOTELS, *JOURNEYS]
