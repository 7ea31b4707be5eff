"""A process that ends a Ray cluster whose command was killed. It imports nothing but Python's own, to begin at once.

    watch = ClusterWatch.start()      # before ray.init: the processes of the cluster inherit a mark
    watch.started()                   # after it: what is started later does not
    watch.close()                     # after ray.shutdown: there is nothing to end

Of a command that is killed by SIGKILL, Ray's raylet and control store are ended by the kernel and its actors end within
seconds. But its two agents, once they have seen that, spend a minute on telling the control store of it, which is gone
(``publish_error_to_driver``, whose 60 s no setting changes). This process holds a pipe of the command: when that closes
without a word, it ends every process that has the mark. Agents write their titles over their environment, and the mark
with it: they are known by the title, and by the files that they hold open in the folder of the cluster, which is named
after the command. Where there is no ``/proc``, nothing is watched.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

#: In the environment of every process of a cluster.
MARK = "CALLWRIGHT_CLUSTER"
_PROCESSES = "/proc"
_FAREWELL = b"closed\n"
#: Seconds for which processes are looked for: one may be about to start another.
_WATCHED = 10.0


class ClusterWatch:
    """The process, and the mark that it looks for."""

    def __init__(self, process: subprocess.Popen[bytes] | None, mark: str) -> None:
        self._process = process
        self.mark = mark

    @classmethod
    def start(cls) -> ClusterWatch:
        """Start it, and set the mark in the environment of this process."""
        mark = f"{os.getpid()}-{time.monotonic_ns()}"
        if not os.path.isdir(f"{_PROCESSES}/self"):  # noqa: PTH112
            return cls(None, mark)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # what ends the command with its group does not end this
            )
        except OSError:  # too many processes: Ray will say so, or work without
            return cls(None, mark)
        os.environ[MARK] = mark
        return cls(process, mark)

    def started(self) -> None:
        """The cluster is there: what this process starts from now on is not of it."""
        os.environ.pop(MARK, None)

    def close(self, *, end: bool = False) -> None:
        """The cluster was shut down; or with ``end`` it did not start, and what there is of it is ended."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):  # it was killed: nobody to tell
            self._process.communicate(b"" if end else _FAREWELL)
        self._process = None


def wait_and_end(mark: str) -> None:
    """Wait for the farewell. If the pipe closes without it, end what has the mark until nothing has."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == _FAREWELL:
        return
    end = time.monotonic() + _WATCHED
    looked = 0
    while looked < 2 and time.monotonic() < end:  # twice nothing: one that was about to start has started
        found = members(mark)
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        looked = 0 if found else looked + 1
        time.sleep(0.2)


def members(mark: str) -> list[int]:
    """The processes of the cluster that live, this one not among them."""
    # Of "session_<time>_<process>", which is how Ray names the folder of a cluster.
    folder = re.compile(rf"/session_[^/]*_{mark.partition('-')[0]}/")
    found = []
    for name in os.listdir(_PROCESSES):  # noqa: PTH208
        if name.isdigit() and int(name) != os.getpid():
            try:
                known = f"{MARK}={mark}".encode() in _read(name, "environ").split(b"\0")
                known = known or (_read(name, "cmdline").startswith(b"ray::") and _holds(name, folder))
                dead = _read(name, "stat").rpartition(b")")[2].split()[0] in (b"Z", b"X")
            except OSError:  # of somebody else, or gone
                continue
            if known and not dead:
                found.append(int(name))
    return found


def _read(process: str, what: str) -> bytes:
    with open(f"{_PROCESSES}/{process}/{what}", "rb") as file:  # noqa: PTH123
        return file.read()


def _holds(process: str, folder: re.Pattern[str]) -> bool:
    """Whether a process has a file open in a folder. Raises ``OSError``."""
    for number in os.listdir(f"{_PROCESSES}/{process}/fd"):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):  # closed by now
            if folder.search(os.readlink(f"{_PROCESSES}/{process}/fd/{number}")):  # noqa: PTH115
                return True
    return False


if __name__ == "__main__":
    wait_and_end(sys.argv[1])
