"""The maps environment: cities on a road graph, places and addresses in them, routes, elevation and time zones.

- The road graph is directed. Every edge says for which modes it is open (drive, walk, bicycle, transit), what kind of
  road it is, and how fast it is driven. Walking is at 5 km/h, cycling at 16 km/h. ``transit`` rides lines and
  walks between them.
- Routes are shortest paths by time or by length, and can avoid motorways, tolls and ferries. Where there is none for a
  mode, the call fails (NO_ROUTE). A route has a code that names its ends and options; estimate_arrival takes it.
- A location is written as ``home``, as the id of a place or a saved place, or as ``latitude,longitude``. Coordinates
  outside the cells of the map fail (OUT_OF_COVERAGE); elevation and time zone are those of the cell.
- An address that fits several houses is a partial outcome with the candidates (AMBIGUOUS).
- The map never changes; saved places and home are the state of a session.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__)
