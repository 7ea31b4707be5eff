"""One owner at a time: a lock on a folder, or on an output file, that names the process which holds it.

    with owned(folder, "run folder") as taken_over:
        ...

The lock is a file of its own with host, process id and time. Where the file system has ``flock``, the kernel lets go of
it when the process ends, however that ends; elsewhere the file itself is the lock, and a process of this host that is
gone is recognised by its id and start. The file is removed at the end. Readers take no lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from callwright.errors import FolderTaken, RunError

try:
    import fcntl
except ImportError:  # Windows: the file itself is the lock
    fcntl = None  # type: ignore[assignment]

#: In an owned folder.
LOCK: Final = ".lock"
#: What a file system without locks answers.
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


@frozen
class Owner:
    """Who holds a lock. ``started`` tells processes with one id apart: clock ticks after boot, where known."""

    host: str
    process: int
    since: str
    started: str = ""

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(socket.gethostname(), os.getpid(), now, _started(os.getpid()))

    @classmethod
    def parse(cls, text: bytes) -> Owner | None:
        """What a lock says; ``None`` if it says nothing, as one does that is just being made."""
        try:
            found: Any = json.loads(text)
            return cls(str(found["host"]), int(found["process"]), str(found["since"]), str(found.get("started", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    @classmethod
    def read(cls, lock: Path) -> Owner | None:
        """The same of a file. Raises :class:`FileNotFoundError`."""
        return cls.parse(lock.read_bytes())

    @property
    def is_local(self) -> bool:
        """Whether it is of this host, where it can be asked for."""
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether it is known to have ended. Never known of a process of another host."""
        if not self.is_local:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OSError):
            return False
        return bool(self.started) and _started(self.process) != self.started

    def __str__(self) -> str:
        return f"process {self.process} on {self.host} since {self.since}"


@contextmanager
def owned(folder: Path, what: str = "folder") -> Iterator[Owner | None]:
    """Hold the lock of a folder, which is made if need be. Gives the owner that died without letting go, if one did.

    Raises :class:`callwright.errors.FolderTaken` for a file, and :class:`callwright.errors.RunError` if another process
    holds it, or may hold it, or if the folder cannot be written; the message names the process and says what to do.
    """
    if folder.is_file():
        raise FolderTaken(f"{folder} is a file, so that it can be no {what}; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"the {what} {folder} cannot be written: {error.strerror or error}") from error
    with _locked(folder / LOCK, f"the {what} {folder}") as before:
        yield before


@contextmanager
def owned_file(path: Path) -> Iterator[Owner | None]:
    """Hold the lock of an output file, which is ``.<name>.lock`` beside it; else as :func:`owned`."""
    with _locked(path.with_name(f".{path.name}.lock"), str(path)) as before:
        yield before


@contextmanager
def _locked(lock: Path, what: str) -> Iterator[Owner | None]:
    try:
        handle, name, before = _take(lock, what)
    except OSError as error:
        raise RunError(f"{what} cannot be written: {error.strerror or error}") from error
    try:
        yield before
    finally:
        # First the name, then the lock: nobody can find a file of this name that is about to go.
        with contextlib.suppress(OSError):
            name.unlink()
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # also for a child that was forked in the meantime
        os.close(handle)


def _take(lock: Path, what: str) -> tuple[int, Path, Owner | None]:
    """The lock: an open file, its name, and the owner that left it behind."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            if not _flock(handle, lock, what):
                os.close(handle)
                with contextlib.suppress(OSError):
                    lock.unlink()
                return _alone(lock.with_name(f"{lock.name}.held"), what)
            if not _is_named(handle, lock):  # let go, and removed, between the two lines
                os.close(handle)
                continue
            before = _read(handle)
            # The kernel knows that nobody of this host holds it. Of another host's processes it may know nothing.
            if before is not None and not before.is_local:
                raise RunError(_refusal(before, lock, what))
            _write(handle)
            return handle, lock, before
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(handle)
            raise


def _flock(handle: int, lock: Path, what: str) -> bool:
    """Whether the kernel gave the lock; ``False`` if it has none to give."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise RunError(_refusal(_read(handle), lock, what, held=True)) from error
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def _alone(lock: Path, what: str) -> tuple[int, Path, Owner | None]:
    """Without locks of the kernel whoever makes the file has it; one that was left behind is moved away first."""
    before = None
    for _ in range(2):
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            before = _left_behind(lock, what)
            continue
        _write(handle)
        return handle, lock, before
    raise RunError(_refusal(None, lock, what))


def _left_behind(lock: Path, what: str) -> Owner | None:
    """Move the lock of a process that is gone out of the way. Raises :class:`RunError` if it may still be there."""
    aside = lock.with_name(f"{lock.name}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):  # it was let go in the meantime
        owner = Owner.read(lock)
        if owner is None or not owner.is_gone:
            raise RunError(_refusal(owner, lock, what))
        lock.rename(aside)
        if Owner.read(aside) != owner:  # another process was quicker, and this is its lock
            aside.rename(lock)
            raise RunError(_refusal(None, lock, what))
        aside.unlink()
        return owner
    return None


def _refusal(owner: Owner | None, lock: Path, what: str, *, held: bool = False) -> str:
    if owner is None:
        gone = f"if there is none: rm {shlex.quote(str(lock))}"
        return f"{what} is being written by another process, which holds {lock}: wait for it; {gone}"
    if held and owner.is_gone:
        return f"{what} was being written by {owner}; that process is gone, but one that it started still holds {lock}"
    said = f"{what} is being written by {owner}"
    if not owner.is_local:
        gone = f"rm {shlex.quote(str(lock))}"
        return f"{said}: whether it still runs cannot be seen from this host. If it does not: {gone}"
    return f"{said}: wait for it, stop it (kill {owner.process}), or choose another place"


def _is_named(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False


def _read(handle: int) -> Owner | None:
    os.lseek(handle, 0, os.SEEK_SET)
    return Owner.parse(os.read(handle, 4096))


def _write(handle: int) -> None:
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, (json.dumps(asdict(Owner.here())) + "\n").encode())
    os.fsync(handle)


def _started(process: int) -> str:
    try:
        told = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return ""
    return told.rpartition(b")")[2].split()[19].decode()  # field 22; the name before it may hold anything
