"""One process of foreign code, as its maker has it: asked one thing at a time, and killed with all that it made."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from callwright.errors import UsageError
from callwright.machines.foreign_code import child
from callwright.machines.foreign_code.child import decode, encode

#: Seconds between two looks at whether a process is still there: a copy that it made may hold its pipe open.
_LOOK: Final = 0.25
#: Characters of an answer beside the value that it holds.
_MARGIN: Final = 2**16


class ForeignProcess:
    """A process, started at once, in the folder ``home``, which goes away with it. Raises :class:`OSError`."""

    def __init__(self, interpreter: str, home: str, variables: Mapping[str, str]) -> None:
        self.loaded: set[str] = set()
        self.calls = 0
        self.version: tuple[int, ...] = ()
        self.owner = os.getpid()
        self._lost = False
        self._largest = _MARGIN
        self._home = home
        theirs_in, self._requests = os.pipe()
        os.set_blocking(self._requests, False)  # or a large request to one that hangs would never be given up
        self._answers, theirs_out = os.pipe()
        handles = map(str, (theirs_in, theirs_out, self.owner))
        try:
            self.process = subprocess.Popen(
                [interpreter, "-I", "-B", "-X", "utf8", child.__file__, *handles],
                pass_fds=[theirs_in, theirs_out],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=home,
                env={"HOME": home, "TMPDIR": home, **variables},
                start_new_session=True,  # so that whatever it starts can be killed with it
            )
        except BaseException:
            os.close(self._requests)
            os.close(self._answers)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)

    @property
    def usable(self) -> bool:
        """Whether it can be asked: it is there, and it is this process' own."""
        return not self._lost and self.owner == os.getpid()

    def ask(self, what: str, limit: float | None, operation: str, **given: Any) -> dict[str, Any]:
        """What it answers: an object with ``value``, ``raised`` (kind, text, place) or ``lost`` (code, in words).

        Raises :class:`callwright.UsageError` for an argument that cannot be copied.
        """
        if operation == "begin":
            self._largest = given["largest"] + _MARGIN
        if operation == "call":
            given |= {"given": _copied(what, given["given"]), "named": _copied(what, given["named"])}
        body = json.dumps({"do": operation, "with": given}).encode()
        until = None if limit is None else time.monotonic() + limit
        try:
            self._write(len(body).to_bytes(8, "big") + body, until)
            head = self._read(8, until)
            size = int.from_bytes(head, "big")
            if size > self._largest:
                return self._gone("garbled", f"{what} wrote into the pipe of its process")
            answer = json.loads(self._read(size, until))
            if "lost" in answer:
                return self._gone("memory", f"{what} used more memory than it may")
            if "value" in answer:
                answer["value"] = decode(answer["value"])
            return {name: answer[name] for name in ("value", "raised") if name in answer}
        except TimeoutError:
            return self._gone("timeout", f"{what} took more than {limit:g} s")
        except EOFError:
            return self._gone("exited", f"{what} {self._how()}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return self._gone("garbled", f"{what} gave what is no answer: {type(error).__name__}")
        except BaseException:  # Ctrl-C: the next one would take this answer for its own
            self.kill()
            raise

    def _gone(self, code: str, how: str) -> dict[str, Any]:
        self.kill()
        return {"lost": (code, how)}

    def _how(self) -> str:
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(1.0)
        if status is None:
            return "closed the pipe of its process"
        if status == -signal.SIGXCPU:
            return "used more processor time than it may"
        if status >= 0:
            return f"ended its process with status {status}"
        with contextlib.suppress(ValueError):
            return f"ended its process by {signal.Signals(-status).name}"
        return f"ended its process by signal {-status}"

    def _write(self, data: bytes, until: float | None) -> None:
        left = memoryview(data)
        while left:
            self._wait(self._requests, select.POLLOUT, until)
            try:
                left = left[os.write(self._requests, left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise EOFError from error

    def _read(self, count: int, until: float | None) -> bytes:
        pieces = []
        while count:
            self._wait(self._answers, select.POLLIN, until)
            try:
                piece = os.read(self._answers, min(count, 1 << 20))
            except OSError as error:
                raise EOFError from error
            if not piece:
                raise EOFError
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def _wait(self, handle: int, event: int, until: float | None) -> None:
        """Until something can be read or written. Raises :class:`TimeoutError`, and :class:`EOFError` for its end."""
        poll = select.poll()
        poll.register(handle, event)
        while True:
            left = _LOOK if until is None else min(_LOOK, until - time.monotonic())
            if poll.poll(max(left, 0) * 1000):
                return
            if until is not None and time.monotonic() >= until:
                raise TimeoutError
            if self.process.poll() is not None and not poll.poll(0):
                raise EOFError

    def kill(self) -> None:
        """End it and everything that it started, whatever they do. Ending it twice is allowed."""
        if self._lost or self.owner != os.getpid():
            return
        self._lost = True
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        os.close(self._requests)
        os.close(self._answers)
        shutil.rmtree(Path(self._home), ignore_errors=True)


def _copied(what: str, given: Any) -> Any:
    try:
        made = encode(given)
        if "$opaque" in json.dumps(made) and _holds_opaque(made):
            raise UsageError(f"an argument of {what} cannot be copied into another process: {given!r:.200}")
    except RecursionError as error:
        raise UsageError(f"an argument of {what} is nested too deeply to be copied into another process") from error
    return made


def _holds_opaque(made: Any) -> bool:
    if isinstance(made, dict):
        return made.keys() == {"$opaque"} or any(map(_holds_opaque, made.values()))
    return isinstance(made, list) and any(map(_holds_opaque, made))
