"""A work calendar: events, series with exceptions, invitations, and time when several people are free.

The rules of this world:

- Times come out in UTC, with the local time of the signed-in person beside them. Times that come in without an
  offset are wall-clock times of the time zone that the tool names.
- A series repeats at the same wall-clock time of its own zone, so its UTC times move when clocks change. A day of the
  month that a month lacks (the 31st, a fifth Friday) is left out, as in RFC 5545.
- One occurrence of a series is named by the time at which the rule puts it, also after it has been moved.
- Only the organiser changes, moves, cancels or invites; whoever may write to a calendar may put events on it.
- An event takes up the time of its organiser and of everybody invited who has not declined, unless it shows as free.
- What would overlap with the signed-in person's own busy time is refused unless the call allows it.
- To move an event asks everybody invited again. What is over can be neither changed nor answered.
- Cancelling a series that has begun ends it: what has happened stays.
- Calendars of colleagues are shared as free or busy only: their events can be seen, their titles cannot.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
