"""Rows of the filesystem: users with quotas, inodes, names in directories, content, and the shell of the session."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from callwright.environments.rows import row

#: The directory that is its own parent.
ROOT: Final = "N00001"
#: The only row of the table of shells.
SHELL: Final = "shell"
#: Bits that new files and directories do not get.
UMASK: Final = 0o022


# A counter of wrong passwords.
@row("users", key="name", bookkeeping=("attempts_left",))
class User:
    """Someone who may own files. ``groups`` begins with the primary group; quotas of 0 are none."""

    name: str
    uid: int
    groups: tuple[str, ...]
    home: str
    password: str
    quota_bytes: int
    quota_inodes: int
    #: How many wrong passwords are left before the account is locked; 0 is locked.
    attempts_left: int = 3


# The sums of what inodes take.
@row("usage", key="user", bookkeeping=True)
class Usage:
    """What a user's inodes come to."""

    user: str
    bytes: int
    inodes: int


# A directory gets a new time whenever a name in it comes or goes, also one that came and went.
@row("inodes", prefix="N", bookkeeping=("mtime",))
class Inode:
    """A directory (``dir``), a regular file (``file``) or a symbolic link (``link``).

    ``blob`` is the content of a file, ``target`` that of a link; ``size`` is in bytes, ``mtime`` in seconds.
    """

    id: str
    parent: str
    name: str
    kind: str
    mode: int
    owner: str
    group: str
    mtime: int
    size: int = 0
    blob: str = ""
    target: str = ""


@row("entries", key=("parent", "name"), index=("parent",))
class Entry:
    """A name in a directory."""

    parent: str
    name: str
    inode: str


# The number of inodes that name it.
@row("blobs", key="id", bookkeeping=("links",))
class Blob:
    """Content, found by its SHA-256. ``text`` is the content, in base64 if ``binary``; ``links`` counts its files."""

    id: str
    text: str
    binary: bool
    size: int
    links: int

    @property
    def data(self) -> bytes:
        """The bytes."""
        return base64.b64decode(self.text) if self.binary else self.text.encode()


# Where one stands is how one worked; absolute paths leave the same files. Who one is (su) counts.
@row("shells", key="id", bookkeeping=("cwd", "stack"))
class Shell:
    """Who works where. ``stack`` holds the directories that ``pushd`` left, the latest one last."""

    id: str
    user: str
    cwd: str
    stack: tuple[str, ...] = ()


ROWS: Final = (User, Usage, Inode, Entry, Blob, Shell)


def blob_of(data: bytes, links: int = 1) -> Blob:
    """The blob of these bytes: text where they are UTF-8."""
    key = hashlib.sha256(data).hexdigest()
    try:
        return Blob(key, data.decode(), False, len(data), links)
    except UnicodeDecodeError:
        return Blob(key, base64.b64encode(data).decode("ascii"), True, len(data), links)
