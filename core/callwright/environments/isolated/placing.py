"""Placing: which sessions live in processes.

Whose code it is decides. What came with this distribution is known to end and stays in this process. Code of anybody
else (another distribution, a module of ``-p``, functions of a script) is moved to processes that can be killed, if
another process can make it again; if not, that is said once, and it runs here under the clock.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from typing import Final

from callwright.environments.clock import TIME_LIMIT, too_many_stuck
from callwright.environments.isolated.environment import IsolatedEnvironment, isolated_in
from callwright.environments.isolated.pool import SessionPool
from callwright.environments.isolated.process import CannotMoveThere, SessionLimits
from callwright.environments.protocol import Environment, OutOfProcess, declares
from callwright.environments.sessions import is_foreign
from callwright.machines.command_folder import warn_once

#: Processes of a pool that many environments share; another one is started when all are busy.
_PROCESSES: Final = 16
#: Environments that are remembered with their isolated forms.
_REMEMBERED: Final = 32

_guard: Final = threading.RLock()
_pools: Final[dict[float | None, SessionPool]] = {}
_places: Final[OrderedDict[tuple[int, float | None], tuple[Environment, IsolatedEnvironment | None]]] = OrderedDict()
_said: Final[set[str]] = set()


def place(environment: Environment, isolation: str | None, time_limit: float | None) -> IsolatedEnvironment | None:
    """The environment with its sessions in processes, as ``isolation`` says; ``None`` for sessions in this process.

    ``isolation``: ``process`` moves any environment, ``auto`` foreign ones where another process can make them,
    ``none`` nothing. ``None`` is ``none`` until two threads of this process hang for ever, from then on ``auto``.
    ``time_limit`` is in seconds; ``None`` is 30, ``inf`` none.

    Raises :class:`callwright.UsageError` where ``process`` cannot be.
    """
    if declares(environment, OutOfProcess):
        return environment if isinstance(environment, IsolatedEnvironment) else None
    if isolation == "process":
        return _placed(environment, time_limit)
    if isolation == "none" or not is_foreign(environment) or (isolation is None and not too_many_stuck()):
        return None
    key = id(environment), time_limit
    with _guard:
        if key in _places:
            return _remembered(key)
        place: IsolatedEnvironment | None = None
        try:
            place = _placed(environment, time_limit)
            place.prove()
        except CannotMoveThere as error:
            place = None
            _say(
                f"{error}. So its tools run in this process, where no limit can stop them: what takes more than "
                f"{time_limit or TIME_LIMIT:g} s masks the sample, and the third time the command stops"
            )
        if place is not None and isolation is None:
            _say(f"two threads still run that went over their time limit: {environment.name!r} moves to processes")
        _places[key] = environment, place
        return place


def _placed(environment: Environment, time_limit: float | None) -> IsolatedEnvironment:
    key = id(environment), time_limit
    with _guard:
        if key in _places:
            known = _remembered(key)
            if known is not None:
                return known
        place = isolated_in(environment, _pool(time_limit))
        _places[key] = environment, place
        while len(_places) > _REMEMBERED:
            _places.popitem(last=False)
        return place


def _remembered(key: tuple[int, float | None]) -> IsolatedEnvironment | None:
    _places.move_to_end(key)
    return _places[key][1]


def _pool(time_limit: float | None) -> SessionPool:
    pool = _pools.get(time_limit)
    if pool is None:
        time = TIME_LIMIT if time_limit is None else None if time_limit == math.inf else time_limit
        limits = SessionLimits(time=time, processes=_PROCESSES)
        pool = _pools[time_limit] = SessionPool(limits, spread=False)
    return pool


def _say(words: str) -> None:
    """Say it once a command, not in every worker of it."""
    if words not in _said:
        _said.add(words)
        warn_once(words)
