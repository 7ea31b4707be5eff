"""A team chat: channels, threads, reactions, pins and mentions.

The rules of this world:

- Public channels can be read by everybody but guests; private ones only by their members, for others they do not exist
  in lists. Writing, reacting and pinning take membership.
- Whoever may see a public channel may join it by inviting themselves; into a private one only a member invites.
- Archived channels can be read and nothing else. Their names stay taken.
- A reply to a reply goes to the thread's first message. A locked thread takes no more replies.
- In announcement channels only the channel's admins begin messages; everybody may answer in threads.
- ``@handle`` mentions somebody; who is not in the channel hears nothing of it, and the call says so. ``@channel``
  reaches everybody, and is for the channel's admins.
- A channel has at most ten pinned messages, and nothing unpins one.
- Guests belong to at most one channel; deactivated people cannot be invited.
- Messages are append-only.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
