"""The filesystem environment: a POSIX tree in which every session has users, a shell and content of its own.

- Inodes have one parent each; there are directories, regular files and symbolic links, but no hard links.
- Permission bits work as in Linux: read and write of files; read (list), write (add, remove) and execute (pass
  through) of directories; for owner, group and others; the sticky bit of /tmp; ``root`` passes everywhere. The umask is
  022.
- Symbolic links are followed, at most 40 of them in one path (then ELOOP).
- A shell has a user, a working directory and a stack of directories. A directory that is the working directory, or
  holds it, cannot be removed (EBUSY; stricter than Linux, as ``rmdir .`` is).
- ``cp``, ``cp_tree``, ``mv``, ``rm`` and ``rm_tree`` do what GNU ``cp``, ``cp -r``, ``mv``, ``rm`` and ``rm -r`` do.
- The content of files counts against the quota of their owner, in bytes and in inodes (EDQUOT). Content is stored once
  per distinct sequence of bytes. Archives are tar files with the bytes of what they hold.
- Every call has the time of the session; nothing else moves the clock.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
