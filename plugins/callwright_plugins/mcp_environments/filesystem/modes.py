"""Permission bits as people write them: ``644``, ``rw-r--r--``, ``u+x,go-w`` (as in POSIX chmod)."""

from __future__ import annotations

import re
from typing import Final

from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.filesystem.rows import UMASK

_OCTAL: Final = re.compile(r"[0-7]{1,4}")
_CLAUSE: Final = re.compile(r"([ugoa]{0,4})([-+=])([rwxXt]{0,5})")
_WHO: Final = {"u": 0o700, "g": 0o070, "o": 0o007, "a": 0o777}
_BITS: Final = {"r": 0o444, "w": 0o222, "x": 0o111}
_LETTERS: Final = {"dir": "d", "link": "l", "file": "-"}


def changed_mode(mode: int, change: str, is_directory: bool) -> int:
    """The mode that ``change`` makes of ``mode``. Fails with EINVAL for text that is no mode."""
    if _OCTAL.fullmatch(change):
        return int(change, 8)
    for clause in change.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ToolError("EINVAL", f"{change[:40]!r} is not a mode such as 644 or u+x,go-w")
        who, sign, letters = match.groups()
        mask = sum({_WHO[letter] for letter in who}) if "a" not in who else 0o777
        bits = 0
        for letter in letters:
            if letter == "X" and (is_directory or mode & 0o111):
                bits |= 0o111
            bits |= _BITS.get(letter, 0)
        # Without u, g, o or a, the bits of the umask stay as they are.
        bits &= mask if who else 0o777 & ~UMASK
        if "t" in letters and (not who or "a" in who):
            bits |= 0o1000
        if sign == "+":
            mode |= bits
        elif sign == "-":
            mode &= ~bits
        else:
            cleared = mask if who else 0o777
            if not who or "a" in who:
                cleared |= 0o1000
            mode = mode & ~cleared | bits
    return mode


def shown_mode(mode: int, kind: str) -> str:
    """``drwxr-xr-x``."""
    text = "".join(letter if mode >> 8 - place & 1 else "-" for place, letter in enumerate("rwxrwxrwx"))
    if mode & 0o1000:
        text = text[:-1] + ("t" if mode & 1 else "T")
    return _LETTERS[kind] + text
