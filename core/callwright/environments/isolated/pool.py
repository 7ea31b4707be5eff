"""Pools: processes that share the sessions of one environment or of many."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from callwright.environments.isolated.process import SessionLimits, SessionProcess


class SessionPool:
    """Processes under the same limits, started when they are needed.

    With ``spread`` each of the first sessions gets a process of its own; without it another process is started when all
    there are have something to do right now, so that threads which wait need not wait for one another.
    """

    def __init__(self, limits: SessionLimits, *, spread: bool) -> None:
        self.limits, self._spread = limits, spread
        self._guard = threading.RLock()  # the garbage collector may forget an environment at any moment
        self._processes: list[SessionProcess] = []
        weakref.finalize(self, _kill, self._processes)

    def take(self) -> SessionProcess:
        """A process for one more session, which is counted: the one that holds the fewest. See :meth:`give_back`."""
        with self._guard:
            here = os.getpid()
            self._processes[:] = [one for one in self._processes if one.lost is None and one.owner == here]
            best = min(self._processes, key=_load, default=None)
            full = best is None or (best.sessions > 0 if self._spread else best.busy)
            if best is None or (full and len(self._processes) < self.limits.processes):
                best = SessionProcess(self.limits)
                self._processes.append(best)
            best.sessions += 1
            return best

    def give_back(self, process: SessionProcess) -> None:
        """One session less."""
        with self._guard:
            process.sessions -= 1

    def forget(self, environment: int) -> None:
        """An environment is gone: processes that are not busy need not keep it."""
        with self._guard:
            processes = [one for one in self._processes if one.lost is None and environment in one.made]
        for process in processes:
            process.drop(environment)

    def close(self) -> None:
        """End all processes. Sessions that are open are lost; new ones start new processes."""
        with self._guard:
            _kill(self._processes)


def _load(process: SessionProcess) -> Any:
    return process.busy, process.sessions


def _kill(processes: list[SessionProcess]) -> None:
    while processes:
        processes.pop().kill()
