"""Tar archives (POSIX ustar), written and read without anything that depends on the machine.

A model can write any text into a file and have it read as an archive, so reading is total and linear: a member is
its header, its bytes, nothing else (no sparse files, no extended headers, no compression).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen

from callwright.tools.spec import ToolError

_BLOCK: Final = 512
_TYPES: Final = {"file": b"0", "link": b"2", "dir": b"5"}
_KINDS: Final = {b"0": "file", b"\0": "file", b"2": "link", b"5": "dir"}


@frozen
class Member:
    """What an archive holds under a name: a directory, a link with its target, or a file with its bytes."""

    name: str
    kind: str
    mode: int
    mtime: int
    owner: str = "root"
    group: str = "root"
    data: bytes = b""
    target: str = ""


def pack(members: Iterable[Member]) -> bytes:
    """The archive. Fails with ENAMETOOLONG for a name or a target that the format cannot hold."""
    parts = []
    for member in members:
        parts += [_header(member), member.data, b"\0" * (-len(member.data) % _BLOCK)]
    whole = b"".join(parts) + b"\0" * 2 * _BLOCK
    return whole + b"\0" * (-len(whole) % (20 * _BLOCK))


def unpack(data: bytes, about: str) -> Iterator[Member]:
    """The members of an archive. Bytes that are none fail with BAD_ARCHIVE."""
    at = 0
    while data[at : at + 1] not in (b"", b"\0"):
        head = data[at : at + _BLOCK]
        if len(head) < _BLOCK or head[257:262] != b"ustar" or _sum(head) != _octal(head[148:156], about):
            raise ToolError("BAD_ARCHIVE", f"{about} is not a tar archive, or it is damaged at byte {at}")
        size = _octal(head[124:136], about)
        kind = _KINDS.get(head[156:157])
        body = data[at + _BLOCK : at + _BLOCK + size]
        if kind is None or len(body) < size:
            what = "is cut off" if kind else f"has a member of type {head[156:157]!r}, which is not supported"
            raise ToolError("BAD_ARCHIVE", f"{about} {what} at byte {at}")
        prefix = _text(head[345:500], about)
        yield Member(
            name=(f"{prefix}/" if prefix else "") + _text(head[:100], about),
            kind=kind,
            mode=_octal(head[100:108], about) & 0o7777,
            mtime=_octal(head[136:148], about),
            owner=_text(head[265:297], about),
            group=_text(head[297:329], about),
            data=body if kind == "file" else b"",
            target=_text(head[157:257], about),
        )
        at += _BLOCK + size + -size % _BLOCK
    if at == 0 or at > len(data):
        raise ToolError("BAD_ARCHIVE", f"{about} is {'cut off' if at else 'not a tar archive'}")


def is_archive(data: bytes) -> bool:
    """Whether bytes begin as a tar archive does."""
    return data[257:262] == b"ustar"


def _header(member: Member) -> bytes:
    name = member.name + ("/" if member.kind == "dir" else "")
    prefix = b""
    encoded = name.encode()
    if len(encoded) > 100:  # the part before some slash goes to a field of its own
        cut = encoded.rfind(b"/", 0, 156)
        if len(encoded) - cut - 1 > 100 or cut <= 0 or cut == len(encoded) - 1:
            cut = encoded.find(b"/", len(encoded) - 101)
        if cut <= 0 or cut > 155 or cut == len(encoded) - 1:
            raise ToolError("ENAMETOOLONG", f"{name[:80]}… is too long a path for a tar archive")
        prefix, encoded = encoded[:cut], encoded[cut + 1 :]
    target = member.target.encode("utf-8", "surrogatepass")
    if len(target) > 100:
        raise ToolError("ENAMETOOLONG", f"the target of {name[:80]} is too long for a tar archive")
    head = b"".join(
        (
            encoded.ljust(100, b"\0"),
            b"%07o\0" % member.mode,
            b"%07o\0" % 0,
            b"%07o\0" % 0,
            b"%011o\0" % len(member.data),
            b"%011o\0" % member.mtime,
            b" " * 8,
            _TYPES[member.kind],
            target.ljust(100, b"\0"),
            b"ustar\x0000",
            member.owner.encode()[:31].ljust(32, b"\0"),
            member.group.encode()[:31].ljust(32, b"\0"),
            b"%07o\0" % 0,
            b"%07o\0" % 0,
            prefix.ljust(155, b"\0"),
            b"\0" * 12,
        )
    )
    return head[:148] + b"%06o\0 " % _sum(head) + head[156:]


def _sum(head: bytes) -> int:
    return sum(head) - sum(head[148:156]) + 8 * 32


def _octal(field: bytes, about: str) -> int:
    digits = field.split(b"\0", 1)[0].strip(b" ")
    if not digits:
        return 0
    if len(digits) > 12 or not digits.isdigit() or b"8" in digits or b"9" in digits:
        raise ToolError("BAD_ARCHIVE", f"{about} has a header that is not of a tar archive")
    return int(digits, 8)


def _text(field: bytes, about: str) -> str:
    try:
        return field.split(b"\0", 1)[0].decode()
    except UnicodeDecodeError:
        raise ToolError("BAD_ARCHIVE", f"{about} has a name that is not UTF-8") from None
