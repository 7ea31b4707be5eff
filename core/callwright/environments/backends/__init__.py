"""Environments over real things: sessions whose state is a database or a service, not objects of Python.

:mod:`.backend` is what such a state has to offer, :mod:`.sqlite` and :mod:`.http` are two of them, and :mod:`.session`
is the session around any of them. A :class:`callwright.environments.FunctionEnvironment` whose ``state`` makes a
:class:`Backend` gives sessions that transact, fork, reset, and show their tables.
"""

from __future__ import annotations

from callwright.environments.backends.backend import Backend, Forkable, Transacts
from callwright.environments.backends.http import CheckpointedService, HTTPService
from callwright.environments.backends.sqlite import SQLite, SQLiteTemplate

__all__ = ["Backend", "CheckpointedService", "Forkable", "HTTPService", "SQLite", "SQLiteTemplate", "Transacts"]
