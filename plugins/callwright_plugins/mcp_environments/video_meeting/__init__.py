"""Video meetings: scheduling, waiting rooms, capacity, recordings.

The rules of this world:

- A meeting is scheduled, then live, then ended; it is never live again. Only its host starts and ends it, with its
  passcode if it has one, and is live in no other meeting meanwhile.
- When a meeting starts, everybody invited who is in no other live meeting arrives: in the waiting room if it has one,
  else inside as long as there is room; for whom there is none, the waiting room is the place after all.
- Host and co-hosts let people in from the waiting room and mute others; everybody may mute themselves.
- There are never more people inside than the capacity, which counts the host and which the host's plan limits.
- Who may record is a policy of the meeting: nobody, the host, the co-hosts too, or anybody inside. One recording at a
  time. Plans without recording have none.
- Ending a meeting stops its recording, empties its waiting room and sends everybody home.
- Passcodes are never shown.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
