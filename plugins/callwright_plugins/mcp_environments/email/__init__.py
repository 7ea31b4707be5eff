"""A mailbox: threads, drafts, labels, attachments and a quota.

The rules of this world:

- Messages are append-only: nothing changes or removes one. Where it lies, whether it is read and its labels are kept
  beside it.
- Known recipients are the contacts that are active and whoever has written to this mailbox; addresses that begin with
  no-reply take no mail.
- A sent message takes up room in the mailbox, with its attachments, and must fit into the quota.
- Attachments of one outgoing message may not be larger together than the mailbox allows, also when they are forwarded.
- A reply goes to the address that the message asks for (reply-to, else the sender), or to the people one wrote to if
  the message is one's own; it stays in the thread, and its subject gets one ``Re:``. A forward begins a new thread.
- A draft may be incomplete; it is checked when it is sent, and can be sent once.
- Who writes to the mailbox's own address finds a copy in the inbox.
- Archiving takes messages out of the inbox and of no other folder.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
