"""What the processes of one command have in common: a folder, whose path they inherit in an environment variable.

The first process that needs it names it; workers that are started later find the name in their environment, and so do
commands that a command starts. A command that another program starts (a script, a notebook) has a folder of its own.
Whoever named a folder removes it when it ends. Nothing in it outlives a command, and nothing in it is secret.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

#: Names the folder.
FOLDER: Final = "CALLWRIGHT_COMMAND_FOLDER"
#: In a worker that cannot reach the folder: among how many such workers what is limited is divided.
SHARE: Final = "CALLWRIGHT_COMMAND_SHARE"

#: The process that named the folder, if it is this one.
_named_here: list[int] = []
#: Threads that start workers ask for the name at the same time, and there is only one.
_naming = threading.Lock()
#: How folders begin that commands name, and those of other programs.
_COMMAND, _PROGRAM = "callwright-command-", "callwright-program-"
_kind: list[str] = [_PROGRAM]


def begin_command() -> None:
    """This process is a command. It has a folder of its own, unless it is part of another command."""
    _kind[:] = [_COMMAND]
    if not Path(os.environ.get(FOLDER, "")).name.startswith(_COMMAND):
        os.environ.pop(FOLDER, None)


def name_folder() -> str:
    """The path of the folder; it is made when something is kept there. Call before workers are started."""
    named = os.environ.get(FOLDER)
    if named:
        return named
    import secrets
    import tempfile

    with _naming:
        named = os.environ.get(FOLDER)
        if not named:
            named = str(Path(tempfile.gettempdir()) / f"{_kind[0]}{secrets.token_hex(16)}")
            os.environ[FOLDER] = named
            _named_here.append(os.getpid())
            atexit.register(_remove, named, os.getpid())
    return named


def _forget_naming() -> None:
    """In a forked process: whoever held the lock is not there."""
    global _naming
    _naming = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_naming)


def is_first() -> bool:
    """Whether this process is the one to name the folder: it is the command itself, and no worker of it."""
    return os.getpid() in _named_here or not os.environ.get(FOLDER)


def share() -> int:
    """Among how many workers of other machines this one's limits are divided; 1 where the folder is common."""
    given = os.environ.get(SHARE, "1")
    return max(1, int(given)) if given.isdecimal() else 1


def for_workers(workers: int, *, same_machine: bool) -> dict[str, str]:
    """Environment variables for workers that do not inherit those of this process (actors of a cluster).

    On this machine they share the folder. On others nothing is shared: each of them is held to its share.
    """
    return {FOLDER: name_folder(), SHARE: "1"} if same_machine else {FOLDER: "", SHARE: str(workers)}


#: What workers have to say, a line each; and how much of it this process has said, by folder.
_WORDS: Final = "words.jsonl"
_heard: dict[str, int] = {}


def warn_once(words: str) -> None:
    """Log a warning, once a command, whichever of its processes has it to say.

    The command itself logs it: only there is the log set up. What a worker says waits for :func:`hear_workers`; what
    one on another machine says stays there.
    """
    with SharedNumbers(f"{blake2b(words.encode(), digest_size=12).hexdigest()}.said", 1).locked() as said:
        if said[0]:
            return
        said[0] = 1
    if not _is_worker():
        _warn(words)
        return
    file = os.open(Path(name_folder()) / _WORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, f"{json.dumps(words)}\n".encode())
    finally:
        os.close(file)


def hear_workers() -> None:
    """Log what workers have said since this was asked last; the command does so as their results come."""
    path = Path(os.environ.get(FOLDER, "")) / _WORDS
    heard = _heard.get(str(path), 0)
    try:
        if _is_worker() or path.stat().st_size <= heard:
            return
    except OSError:
        return
    with path.open("rb") as file:
        file.seek(heard)
        lines = file.read()
    lines = lines[: lines.rfind(b"\n") + 1]
    _heard[str(path)] = heard + len(lines)
    for line in lines.splitlines():
        _warn(json.loads(line))


def _is_worker() -> bool:
    from multiprocessing.process import parent_process

    return parent_process() is not None or SHARE in os.environ  # an actor of a cluster has no parent of that kind


def _warn(words: str) -> None:
    """Through structlog where a command has set it up; another program has a log of its own."""
    structlog = sys.modules.get("structlog")
    if structlog is not None and structlog.is_configured():
        structlog.get_logger("callwright").warning(words)
    else:
        import logging

        logging.getLogger("callwright").warning("%s", words)


def _remove(folder: str, process: int) -> None:
    import shutil

    if os.getpid() == process:  # and not in a fork of it
        shutil.rmtree(folder, ignore_errors=True)


class SharedNumbers:
    """A few numbers in a file of the folder, which all processes and threads of a command read and write in turn.

    The file is opened anew for each use: so the lock also holds between threads and after a fork, and a process that
    dies leaves it open to the others. About 20 microseconds.
    """

    def __init__(self, name: str, count: int) -> None:
        self._name, self._form = name, f"{count}d"

    def exists(self) -> bool:
        """Whether anybody has used them; this is quicker than to use them."""
        named = os.environ.get(FOLDER)
        return bool(named and Path(named, self._name).exists())

    @contextmanager
    def locked(self) -> Iterator[list[float]]:
        """The numbers, for this thread alone until the end of the block; what they are then is kept. All begin at 0."""
        form = self._form
        file = self._opened()
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = struct.calcsize(form)
            numbers = list(struct.unpack(form, os.pread(file, size, 0).ljust(size, b"\0")))
            yield numbers
            os.pwrite(file, struct.pack(form, *numbers), 0)
        finally:
            os.close(file)

    def _opened(self) -> int:
        path = Path(name_folder()) / self._name
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
