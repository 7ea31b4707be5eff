"""Several servers and environments under one roof: started, watched and stopped together, their sessions by id."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field, frozen

from callwright.capability import has
from callwright.environments.capabilities import Resets
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.sessions import call_session
from callwright.errors import DataError, NameClash, UnknownName, UsageError
from callwright.language.program import Call
from callwright.options import UnknownOption
from callwright.tools.spec import ToolSpec
from callwright_plugins.mcp_servers.connecting.portal import PORTAL
from callwright_plugins.mcp_servers.sessions import SessionStore
from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment
from callwright_plugins.mcp_servers.wrapping.session import MCPSession

T = TypeVar("T")


@frozen
class Health:
    """How one of them is.

    ``answers``: whether a process of it answers now (``None`` for environments in this process and for what does not
    run). ``masked`` calls ended as infrastructure errors, ``retried`` ones were done again first; ``waiting`` sessions
    wait for a process.
    """

    running: bool
    sessions: int
    isolation: str
    answers: bool | None = None
    processes: int = 0
    started: int = 0
    crashed: int = 0
    timed_out: int = 0
    retried: int = 0
    masked: int = 0
    waiting: int = 0
    last_error: str = ""


@define(eq=False)
class _Entry:
    """One of them: how it is made, and what was made."""

    make: str | Mapping[str, Any] | Environment
    options: dict[str, Any] = field(factory=dict)
    made: Environment | None = None


class MCPManager:
    """Environments by name, and sessions of them by id.

    ``servers`` are what :meth:`add` takes. Nothing is started before it is used. ``capacity`` and ``idle`` (seconds)
    bound the open sessions: the least recently used that is not in a call is closed first, and its id refused then.

    Every method has a form for asyncio, ``a`` before its name, which never blocks the event loop. A manager can be
    pickled, to be sent to a worker: what it describes goes along, what runs does not.
    """

    def __init__(
        self,
        servers: Mapping[str, Environment | str | Mapping[str, Any]] | None = None,
        *,
        capacity: int = 65_536,
        idle: float | None = None,
    ) -> None:
        self._entries: dict[str, _Entry] = {}
        self._capacity, self._idle = capacity, idle
        self._begin()
        for name, server in (servers or {}).items():
            self.add(name, server)

    def _begin(self) -> None:
        self.sessions = SessionStore(capacity=self._capacity, idle=self._idle)
        self._numbers: Iterator[int] = itertools.count(1)

    def __getstate__(self) -> dict[str, Any]:
        entries = {}
        for name, entry in self._entries.items():
            entries[name] = _Entry(entry.make, entry.options)
        return {"entries": entries, "capacity": self._capacity, "idle": self._idle}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._entries = state["entries"]
        self._capacity, self._idle = state["capacity"], state["idle"]
        self._begin()

    def __enter__(self) -> MCPManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What there is

    def add(self, name: str, server: Environment | str | Mapping[str, Any], **options: Any) -> None:
        """Add an environment, the name of a registered one with its ``options``, or options of :class:`MCPEnvironment`.

        Raises :class:`callwright.errors.NameClash` if the name is taken.
        """
        if name in self._entries:
            raise NameClash(f"there is a server named {name!r} already")
        if options and not isinstance(server, str):
            raise UsageError(f"server {name!r}: options belong to the name of a registered environment")
        self._entries[name] = _Entry(server, options)

    @classmethod
    def from_config(cls, path: str | Path, **options: Any) -> MCPManager:
        """The servers of a client's configuration file (``{"mcpServers": …}``), each with these options besides.

        Raises :class:`callwright.errors.DataError` if the file cannot be read.
        """
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: {error}") from error
        servers = content.get("mcpServers") if isinstance(content, dict) else None
        if not isinstance(servers, dict):
            raise DataError(f"{path}: it has no table mcpServers")
        manager = cls()
        for name, entry in servers.items():
            if not isinstance(entry, dict):
                raise DataError(f"{path}: mcpServers.{name} is not a table")
            manager.add(str(name), {**_from_client(path, name, entry), **options})
        return manager

    @property
    def names(self) -> list[str]:
        """The names of what was added."""
        return list(self._entries)

    def environment(self, name: str) -> Environment:
        """The environment of this name; made now, but not started."""
        if name not in self._entries:
            raise UnknownName("server", name, self._entries)
        entry = self._entries[name]
        if entry.made is None:
            entry.made = _make(name, entry)
        return entry.made

    def tools(self, name: str) -> Mapping[str, ToolSpec]:
        """The tools of one, which starts it."""
        return self.environment(name).tools

    async def atools(self, name: str) -> Mapping[str, ToolSpec]:
        """:meth:`tools` for asyncio."""
        await self.astart(name)
        return self.environment(name).tools

    # Running

    def start(self, *names: str) -> None:
        """Start these, or all. What runs already stays as it is."""
        for name in names or self.names:
            environment = self.environment(name)
            if isinstance(environment, MCPEnvironment):
                environment.start()

    async def astart(self, *names: str) -> None:
        """:meth:`start` for asyncio, all at the same time."""
        environments = [self.environment(name) for name in names or self.names]
        await asyncio.gather(*(PORTAL.arun(one.astart()) for one in environments if isinstance(one, MCPEnvironment)))

    def stop(self, *names: str) -> None:
        """Stop these, or all, after closing their sessions."""
        for name in names or self.names:
            made = self._close_sessions(name)
            if isinstance(made, MCPEnvironment):
                made.stop()

    async def astop(self, *names: str) -> None:
        """:meth:`stop` for asyncio."""
        for name in names or self.names:
            made = await asyncio.to_thread(self._close_sessions, name)
            if isinstance(made, MCPEnvironment):
                await PORTAL.arun(made.astop())

    def _close_sessions(self, name: str) -> Environment | None:
        if name not in self._entries:
            raise UnknownName("server", name, self._entries)
        for id in self.sessions.ids:
            if self._name_of(id) == name:
                self.sessions.close(id)
        return self._entries[name].made

    def health(self, *names: str) -> dict[str, Health]:
        """How these, or all, are."""
        return {name: self._health(name, PORTAL.run) for name in names or self.names}

    async def ahealth(self, *names: str) -> dict[str, Health]:
        """:meth:`health` for asyncio."""
        return {name: await asyncio.to_thread(self._health, name, PORTAL.run) for name in names or self.names}

    def _health(self, name: str, run: Callable[..., bool]) -> Health:
        if name not in self._entries:
            raise UnknownName("server", name, self._entries)
        made = self._entries[name].made
        sessions = sum(self._name_of(id) == name for id in self.sessions.ids)
        if not isinstance(made, MCPEnvironment):
            here = made is not None or not isinstance(self._entries[name].make, str | Mapping)
            return Health(here, sessions, "in process" if here else "")
        counts = made.counts
        return Health(
            running=made.running,
            sessions=sessions,
            isolation=made.isolation if made.running else "",
            answers=run(made.aping()) if made.running else None,
            processes=made.processes,
            started=counts.started,
            crashed=counts.crashed,
            timed_out=counts.timed_out,
            retried=counts.retried,
            masked=counts.masked,
            waiting=counts.waiting,
            last_error=counts.last_error,
        )

    # Sessions

    def open(self, name: str, scenario: str = "", seed: int = 0) -> str:
        """Open a session of one and give its id."""
        return self._keep(name, self.environment(name).open(scenario, seed), scenario, seed)

    async def aopen(self, name: str, scenario: str = "", seed: int = 0) -> str:
        """:meth:`open` for asyncio."""
        environment = self.environment(name)
        if isinstance(environment, MCPEnvironment):
            opened: Session = await PORTAL.arun(environment.aopen(scenario, seed))
        else:
            opened = await _aside(environment, lambda: environment.open(scenario, seed))
        return self._keep(name, opened, scenario, seed)

    def _keep(self, name: str, session: Session, scenario: str, seed: int) -> str:
        id = f"{name}:{next(self._numbers)}"
        self.sessions.add(id, session, scenario=scenario, seed=seed)
        return id

    @staticmethod
    def _name_of(id: str) -> str:
        return id.rpartition(":")[0]

    def session(self, id: str) -> Session:
        """The session of this id.

        Raises :class:`callwright.errors.UnknownName`, and ``SessionGone`` if it was closed.
        """
        held = self.sessions.get(id)
        if held is None:
            raise UnknownName("session", id, ())
        return held.session

    def call(self, id: str, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call in a session; whatever it raises is an outcome."""
        held = self.sessions.get(id)
        if held is None:
            raise UnknownName("session", id, ())
        with self.sessions.using(held):
            return call_session(held.session, Call(0, tool, arguments), arguments)

    async def acall(self, id: str, tool: str, arguments: dict[str, Any]) -> Outcome:
        """:meth:`call` for asyncio."""
        session = self.session(id)
        held = self.sessions.get(id)
        assert held is not None
        with self.sessions.using(held):
            if isinstance(session, MCPSession):
                return await PORTAL.arun(session.acall(tool, arguments))
            environment = self.environment(self._name_of(id))
            return await _aside(environment, lambda: call_session(session, Call(0, tool, arguments), arguments))

    def digest(self, id: str) -> str:
        """The digest of a session."""
        return self.session(id).digest()

    async def adigest(self, id: str) -> str:
        """:meth:`digest` for asyncio."""
        session = self.session(id)
        if isinstance(session, MCPSession):
            return await PORTAL.arun(session.adigest())
        return await _aside(self.environment(self._name_of(id)), session.digest)

    def reset(self, id: str) -> None:
        """Put a session back to its start. A session that cannot is opened anew under its id."""
        held = self.sessions.get(id)
        if held is None:
            raise UnknownName("session", id, ())
        if has(held.session, Resets):
            held.session.reset()
            return
        held.session.close()
        held.session = self.environment(self._name_of(id)).open(held.scenario, held.seed)

    async def areset(self, id: str) -> None:
        """:meth:`reset` for asyncio."""
        session = self.session(id)
        if isinstance(session, MCPSession):
            await PORTAL.arun(session.areset())
        else:
            await _aside(self.environment(self._name_of(id)), lambda: self.reset(id))

    def close(self, id: str) -> bool:
        """Close a session; ``False`` if there is none."""
        return self.sessions.close(id)

    async def aclose(self, id: str) -> bool:
        """:meth:`close` for asyncio."""
        return await asyncio.to_thread(self.sessions.close, id)


async def _aside(environment: Environment, work: Callable[[], T]) -> T:
    """Do this without holding up the event loop: at once if it takes microseconds, else in a thread."""
    return work() if environment.pure else await asyncio.to_thread(work)


def _make(name: str, entry: _Entry) -> Environment:
    if isinstance(entry.make, str):
        from callwright.plugins import default_registry

        made: Environment = default_registry().create("environment", entry.make, **entry.options)
        return made
    if isinstance(entry.make, Mapping):
        try:
            return MCPEnvironment(**{"name": name, **entry.make})
        except UnknownOption as error:
            raise UsageError(f"server {name!r}: unexpected keyword {error.path[-1]!r}. {error}") from error
    return entry.make


def _from_client(path: Path, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a server from its entry in a client's configuration."""
    if isinstance(entry.get("url"), str):
        return {"url": entry["url"], "headers": dict(entry.get("headers") or {})}
    if not isinstance(entry.get("command"), str):
        raise DataError(f"{path}: mcpServers.{name} has neither a command nor a url")
    words = [entry["command"], *map(str, entry.get("args") or ())]
    return {"command": words, "env": {str(key): str(value) for key, value in (entry.get("env") or {}).items()}}
