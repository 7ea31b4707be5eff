"""Standard streams as a command may meet them: closed by whoever started it, or of an encoding with few characters."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress
from typing import Final

#: Characters of this program's own that an encoding may lack, and how they are written then.
_PLAIN: Final = {
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "×": "x",
    "·": ".",
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
    "→": "->",
}
_ERRORS: Final = "callwright.plain"


def make_usable() -> None:
    """Let no closed stream and no missing character end a command.

    A closed stdout or stderr goes nowhere. Its number is taken all the same: otherwise the next file that is opened
    would get it, and with it whatever is printed. A closed stdin stays ``None``, and whoever needs it says so.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)  # takes the lowest free number
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    codecs.register_error(_ERRORS, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """The characters that cannot be written, in others: ``-`` for a dash, an escape for what has no like."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    written = "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in lost)
    return written, error.end
