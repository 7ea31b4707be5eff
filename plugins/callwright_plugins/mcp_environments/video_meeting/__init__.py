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

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callwright.environments.stateful import StatefulEnvironment, Toolsets


def environment(
    *,
    toolsets: Toolsets = (),
    scale: float = 1.0,
) -> StatefulEnvironment:
    """The environment; ``toolsets`` and ``scale`` as in :class:`callwright.StatefulEnvironment`."""
    from callwright.environments.stateful import StatefulEnvironment
    from callwright_plugins.mcp_environments.video_meeting.knowledge import known
    from callwright_plugins.mcp_environments.video_meeting.people import named
    from callwright_plugins.mcp_environments.video_meeting.policy import POLICY, signed_in
    from callwright_plugins.mcp_environments.video_meeting.rows import ROWS
    from callwright_plugins.mcp_environments.video_meeting.scenarios import SCENARIOS
    from callwright_plugins.mcp_environments.video_meeting.tools import TOOLS

    return StatefulEnvironment(
        "video_meeting",
        rows=ROWS,
        tools=TOOLS,
        scenarios=SCENARIOS,
        toolsets=toolsets,
        scale=scale,
        policy=POLICY,
        person=signed_in,
        knowledge=known,
        people=named,
    )
