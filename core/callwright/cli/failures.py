"""Every exception of a command becomes one line on stderr and an exit status (:mod:`callwright.commands.failures`)."""

from __future__ import annotations

import errno
import os
import sys
import traceback

import click

from callwright.commands.failures import BUG, INTERRUPTED, NO_READER, Stopped
from callwright.commands.safe_text import say
from callwright.errors import CallwrightError, ComponentError
from callwright.machines.interrupts import Interrupted
from callwright.machines.redaction import redacted


def report(error: BaseException, *, with_traceback: bool = False, running: str = "") -> int:
    """Say on stderr what happened, in one line (a recipe with several mistakes: one each). Returns the exit status.

    ``running`` says whose command it was, where it is somebody else's: what that raises is no bug of ours.
    """
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if with_traceback and not isinstance(error, KeyboardInterrupt | click.Abort):
        print(redacted("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    status, line = describe(error, running)
    if line:
        say(line if isinstance(error, KeyboardInterrupt | click.Abort | Stopped) else f"error: {line}")
    return status


def describe(error: BaseException, running: str = "") -> tuple[int, str]:
    """Exit status and sentence for an exception that is not click's own."""
    match error:
        case Stopped():
            return _status_of(error.__cause__), str(error)
        case CallwrightError():
            return error.exit_status, str(error)
        case KeyboardInterrupt() | click.Abort() | EOFError():
            return _status_of(error), "stopped"
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
            where = "(where: run it again as callwright --traceback …)"
            if running:
                said = f"{running} raised {type(error).__name__}: {text}. This is a bug of the plugin"
                return ComponentError.exit_status, f"{said} {where}"
            return BUG, f"unexpected {type(error).__name__}: {text} {where}"


def _status_of(stop: BaseException | None) -> int:
    """That of the signal which stopped a command; click hides it in an ``Abort``."""
    while stop is not None and not isinstance(stop, Interrupted):
        stop = stop.__cause__
    return INTERRUPTED if stop is None else stop.exit_status


def silence_stdout() -> None:
    """Point stdout nowhere after its reader went away, so that the interpreter's own flush at exit says nothing."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        return
