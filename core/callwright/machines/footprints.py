"""What a tool did to the process that it shares with others: a copy of it, another working folder, other variables.

A tool that does such things changes what the next one sees, of whatever session. It is put back as it was, and the
sample is masked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import Any, Final

#: How a process leaves that a tool made by forking: it would go on with the work of its parent.
_FORKED: Final = 1
#: By thread: how often it has forked.
_forks: Final[dict[int, int]] = {}


def _note_fork() -> None:
    here = threading.get_ident()
    _forks[here] = _forks.get(here, 0) + 1


#: By thread in which a tool runs now: its process.
_at_work: Final[dict[int, int]] = {}
#: prctl(PR_SET_PDEATHSIG): a signal for this process when the thread that made it ends.
_PARENT_DEATH_SIGNAL: Final = 1


def _end_with_the_parent() -> None:
    """In a copy of the process that a tool has made: it may hang, on a lock of a thread that it was not given too."""
    maker = _at_work.get(threading.get_ident())
    if _prctl is not None and maker is not None:
        _prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != maker:  # it ended before it was asked about: no signal will come
            os._exit(_FORKED)
        _at_work[threading.get_ident()] = os.getpid()  # for a copy of the copy


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_note_fork, after_in_child=_end_with_the_parent)

_prctl: Any = None


def _prepare() -> None:
    """Have what a copy needs at hand: in one nothing can be imported safely."""
    global _prctl
    if _prctl is None and sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            _prctl = ctypes.CDLL(None).prctl


class Footprint:
    """How the process was before a tool ran in this thread.

    What belongs to all threads, the folder and the variables, is looked at if this one is ``alone``.
    """

    __slots__ = ("_folder", "_forks", "_process", "_variables")

    def __init__(self, *, alone: bool = True) -> None:
        _prepare()
        here = threading.get_ident()
        self._process = _at_work[here] = os.getpid()
        self._forks = _forks.get(here, 0)
        self._folder = _folder() if alone else None
        self._variables = _variables().copy() if alone else None

    def undone(self) -> tuple[str, str] | None:
        """Put back what can be put back; a code and words for the first thing that was not as before, if any.

        In a copy of the process that a tool has made, this does not return: it ends the copy. A copy that never comes
        here ends with the thread that made it (on Linux).
        """
        if os.getpid() != self._process:
            os._exit(_FORKED)
        _at_work.pop(threading.get_ident(), None)
        found = None
        if _forks.get(threading.get_ident(), 0) != self._forks:
            found = "forked", "started a copy of its process (fork)"
        if self._folder is not None and _folder() != self._folder:
            found = found or ("chdir", "changed the working folder")
            with contextlib.suppress(OSError):
                os.chdir(self._folder)
        if self._variables is not None and _variables() != self._variables:
            found = found or ("environ", "changed the environment variables of its process")
            _put_back(self._variables)
        return found


def _put_back(variables: dict[Any, Any]) -> None:
    now = _variables()
    for name in [*now]:
        if name not in variables:
            os.unsetenv(name)
            del now[name]
    for name, value in variables.items():
        if now.get(name) != value:
            os.putenv(name, value)
            now[name] = value


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - twice for every call
    except OSError:  # the folder is gone
        return None


def _variables() -> dict[Any, Any]:
    """What ``os.environ`` keeps: comparing it is fifty times faster than comparing ``os.environ``."""
    found: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]
    return found


class Streams:
    """Standard output and standard error of a process, which no tool may close for the others."""

    def __init__(self) -> None:
        """What is printed goes to standard error: it must not stand in the output of a command."""
        with contextlib.suppress(OSError):
            os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._python: Any = sys.stderr
        try:
            self._spare = os.dup(2)
        except OSError:  # nobody listens
            self._spare = os.open(os.devnull, os.O_WRONLY)

    def undone(self) -> tuple[str, str] | None:
        """Open again what was closed, and put back what was replaced; a code and words if anything was."""
        found = None
        for handle in (1, 2):
            try:
                os.fstat(handle)
            except OSError:
                with contextlib.suppress(OSError):
                    os.dup2(self._spare, handle)
                found = "closed", "closed the standard streams of its process"
        if self._python is not None and self._python.closed:
            self._python = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            found = "closed", "closed the standard streams of its process"
        sys.stdout = sys.stderr = self._python
        with contextlib.suppress(Exception):
            self._python.flush()
        return found
