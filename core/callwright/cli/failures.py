"""Every way in which a command ends badly: one clear line on stderr and the right exit status.

==== ==================================================================================================
0    everything was done
1    something was not: a bad row, a broken installation, a file that cannot be written
2    the request cannot be met: usage, an unknown name, a recipe or data file that is not right
3    an optional extra is missing; the line holds the install command
4    a plugin is broken
5    a component raised: its bug, never the model's
70   a bug of Callwright itself
130  stopped with Ctrl-C
141  the reader of the output went away
==== ==================================================================================================
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
import unicodedata
from typing import Final

import click

from callwright.errors import CallwrightError

BUG: Final = 70
INTERRUPTED: Final = 130
NO_READER: Final = 141


class Stopped(CallwrightError):
    """The user stopped the command. The message says what is kept and how to go on."""

    exit_status = INTERRUPTED


def report(error: BaseException, *, with_traceback: bool = False) -> int:
    """Say on stderr what happened, in one line (a recipe with several mistakes: one each). Returns the exit status."""
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if with_traceback and not isinstance(error, KeyboardInterrupt | click.Abort):
        traceback.print_exception(error)
    status, line = describe(error)
    if line:
        say(line if isinstance(error, KeyboardInterrupt | click.Abort | Stopped) else f"error: {line}")
    return status


def describe(error: BaseException) -> tuple[int, str]:
    """Exit status and sentence for an exception that is not click's own."""
    match error:
        case CallwrightError():
            return error.exit_status, str(error)
        case KeyboardInterrupt() | click.Abort() | EOFError():
            return INTERRUPTED, "stopped"
        case MemoryError():
            return 1, "out of memory"
        case BrokenPipeError():
            return NO_READER, ""
        case OSError() if error.errno == errno.EPIPE:
            return NO_READER, ""
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return 1, where + (error.strerror or str(error) or type(error).__name__)
        case _:
            text = " ".join(str(error).split())
            return BUG, f"unexpected {type(error).__name__}: {text} (where: run it again as callwright --traceback …)"


def say(text: str) -> None:
    """A line on stderr, with nothing in it that a terminal would obey."""
    try:
        click.echo(visible(text), err=True)
    except OSError:  # nobody reads stderr either
        return


def visible(text: str) -> str:
    """A text of unknown origin with control, bidirectional and surrogate characters replaced, one for one.

    Line feeds and tabs stay. Model text may hold escape sequences; a terminal must never see them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200d\u00ad":
        return "\ufffd"
    return character


def silence_stdout() -> None:
    """Point stdout nowhere after its reader went away, so that the interpreter's own flush at exit says nothing."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        return
