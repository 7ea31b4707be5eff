"""Where the sessions of a wrapped server live: one process for all, a connection each, or a process each."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

from attrs import define, field

from callwright.errors import CallwrightError, InfrastructureFailure
from callwright_plugins.mcp_servers.connecting.connection import Connection, Description, ServerFailure, Target
from callwright_plugins.mcp_servers.connecting.workspace import Workspace
from callwright_plugins.mcp_servers.wire import SESSION

Isolation = Literal["meta", "connection", "process", "shared"]
#: How a process is made fresh between sessions: started anew, its workspace restored, or a tool of its own called.
Reset = Literal["restart", "workspace"] | Mapping[str, Any]
#: How many processes are started at the same time: each costs a core for half a second and more.
_STARTS: Final = 2
_POLITE: Final = 10.0


@define(eq=False)
class Seat:
    """A session's place: a connection, its workspace and what goes into the ``_meta`` of every call."""

    connection: Connection
    scenario: str = ""
    meta: dict[str, Any] = field(factory=dict)

    @property
    def workspace(self) -> Workspace | None:
        """The folder of the process, if it has one."""
        return self.connection.workspace


@define
class Counts:
    """What happened to a server, for ``health``."""

    started: int = 0
    crashed: int = 0
    timed_out: int = 0
    retried: int = 0
    masked: int = 0
    waiting: int = 0
    last_error: str = ""


@define(eq=False)
class Backend(ABC):
    """What the kinds of isolation have in common. Everything runs in the portal's loop."""

    target: Target
    templates: Mapping[str, Path | None]
    alias: str
    has_workspace: bool
    start_limit: float
    #: Told of the description of every connection that is opened; raises if it is not what it was.
    check: Callable[[Description], None]
    counts: Counts = field(factory=Counts)
    connections: set[Connection] = field(factory=set, init=False)
    workspaces: set[Workspace] = field(factory=set, init=False)
    _starting: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(_STARTS), init=False)
    _background: set[asyncio.Task[Any]] = field(factory=set, init=False)
    closed: bool = field(default=False, init=False)

    @property
    @abstractmethod
    def fresh(self) -> bool:
        """Whether every place is a copy that begins anew, so that calls may be done again in another one."""

    @abstractmethod
    async def acquire(self, scenario: str) -> Seat:
        """A place for a new session."""

    @abstractmethod
    async def release(self, seat: Seat, *, broken: bool = False) -> None:
        """Give a place back; ``broken`` if its server crashed or does not answer."""

    async def connect(self, scenario: str = "", workspace: Workspace | None = None) -> Connection:
        """Open a connection, with a workspace of this scenario where the command wants one."""
        async with self._starting:
            if self.closed:
                raise InfrastructureFailure(f"{self.target.label}: it was stopped")
            if workspace is None and self.has_workspace:
                workspace = await asyncio.to_thread(Workspace.make, self.templates.get(scenario), self.alias)
                self.workspaces.add(workspace)
            connection = Connection(self.target, workspace)
            self.connections.add(connection)
            try:
                self.check(await connection.start(self.start_limit))
            except BaseException as error:
                if isinstance(error, CallwrightError):
                    self.counts.last_error = str(error)
                await self.discard(connection)
                raise
            self.counts.started += 1
            return connection

    async def discard(self, connection: Connection) -> None:
        """Close a connection and delete its workspace."""
        await connection.stop()
        self.connections.discard(connection)
        if connection.workspace in self.workspaces:
            self.workspaces.discard(connection.workspace)
            await asyncio.to_thread(connection.workspace.remove)

    def later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do this in the background."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.counts.last_error = str(task.exception())

    async def stop(self) -> None:
        """Close everything."""
        self.closed = True
        for task in list(self._background):
            task.cancel()
        if self._background:
            await asyncio.wait(set(self._background))
        await asyncio.gather(*(self.discard(one) for one in list(self.connections)), return_exceptions=True)
        for workspace in self.workspaces:
            await asyncio.to_thread(workspace.remove)
        self.workspaces.clear()


@define(eq=False)
class OneProcess(Backend):
    """``meta`` and ``shared``: one connection for all sessions, told apart by id or not at all."""

    keyed: bool = True
    helpers: bool = False
    _current: Connection | None = field(default=None, init=False)
    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    @property
    def fresh(self) -> bool:
        """Only where sessions are told apart: a session under a new id begins anew."""
        return self.keyed

    async def acquire(self, scenario: str) -> Seat:
        """The one connection, opened again if it broke; with an id of its own where sessions are told apart."""
        async with self._lock:
            if self._current is None or not self._current.alive:
                if self._current is not None:
                    await self.discard(self._current)
                self._current = await self.connect(scenario if not self.keyed else "")
            return Seat(self._current, scenario, {SESSION: uuid4().hex} if self.keyed else {})

    async def release(self, seat: Seat, *, broken: bool = False) -> None:
        """Close the session, not the connection; a connection that does not answer is replaced for all."""
        if self.keyed:
            if seat.connection.alive:
                self.later(self._close_session(seat))
        elif broken:
            seat.connection.alive = False  # others see it at their next call, and get another one too

    async def _close_session(self, seat: Seat) -> None:
        with suppress(CallwrightError, Exception):
            await seat.connection.manage("close", seat.meta, _POLITE)


@define(eq=False)
class OwnConnection(Backend):
    """``connection``: a client of its own for each session."""

    @property
    def fresh(self) -> bool:
        """Only where a connection is a process of its own; at a URL what was done has been done."""
        return bool(self.target.command)

    async def acquire(self, scenario: str) -> Seat:
        """A new connection."""
        return Seat(await self.connect(scenario), scenario)

    async def release(self, seat: Seat, *, broken: bool = False) -> None:
        """Close it."""
        self.later(self.discard(seat.connection))


@define(eq=False)
class ProcessPool(Backend):
    """``process``: a process for each session, started before it is wanted, at most ``size`` at a time.

    Where more sessions are wanted they wait, up to ``wait_limit`` seconds; processes are never shared. A process is
    made fresh in the background after its session.
    """

    size: int = 4
    warm: int = 4
    wait_limit: float = 120.0
    reset: Reset = "restart"
    reset_call: Callable[[Connection, Mapping[str, Any]], Awaitable[None]] | None = None
    idle: list[Seat] = field(factory=list, init=False)
    #: Processes that exist or are being started.
    total: int = field(default=0, init=False)
    _changed: asyncio.Condition = field(factory=asyncio.Condition, init=False)

    @property
    def fresh(self) -> bool:
        """Always: every process is made fresh before a session gets it."""
        return True

    async def acquire(self, scenario: str) -> Seat:
        """A process of this scenario's workspace. Raises :class:`callwright.InfrastructureFailure` after the wait."""
        replaced = None
        self.counts.waiting += 1
        try:
            async with asyncio.timeout(self.wait_limit), self._changed:
                while True:
                    if self.closed:
                        raise InfrastructureFailure(f"{self.target.label}: it was stopped")
                    seat = next((one for one in self.idle if one.scenario == scenario), None)
                    if seat is not None:
                        self.idle.remove(seat)
                        break
                    if self.total < self.size:
                        self.total += 1
                        break
                    if self.idle:  # prepared for another scenario
                        replaced = self.idle.pop(0)
                        break
                    await self._changed.wait()
        except TimeoutError:
            raise InfrastructureFailure(
                f"{self.target.label}: all {self.size} processes were in use for {self.wait_limit:g} s. Each session "
                "has its own; close sessions, or raise the option 'pool'"
            ) from None
        finally:
            self.counts.waiting -= 1
        if replaced is not None:
            await self.discard(replaced.connection)
        if seat is None:
            seat = await self._started(scenario)
        self._warm_up(scenario)
        return seat

    async def _started(self, scenario: str, workspace: Workspace | None = None) -> Seat:
        """A new process, for which there is room already; if it does not start the room is free again."""
        try:
            return Seat(await self.connect(scenario, workspace), scenario)
        except BaseException:
            await self._leave_room()
            raise

    async def _leave_room(self) -> None:
        async with self._changed:
            self.total -= 1
            self._changed.notify_all()

    def adopt(self, connection: Connection, scenario: str) -> None:
        """Keep a connection that was opened to look at the server."""
        self.total += 1
        self.connections.add(connection)
        if connection.workspace is not None:
            self.workspaces.add(connection.workspace)
        self.idle.append(Seat(connection, scenario))

    def _warm_up(self, scenario: str) -> None:
        while self.total < self.size and len(self.idle) + self.counts.waiting < self.warm:
            self.total += 1
            self.later(self._warmed(scenario))
            return  # one at a time; the next acquire goes on

    async def _warmed(self, scenario: str, workspace: Workspace | None = None) -> None:
        seat = await self._started(scenario, workspace)
        async with self._changed:
            self.idle.append(seat)
            self._changed.notify_all()
        self._warm_up(scenario)

    async def release(self, seat: Seat, *, broken: bool = False) -> None:
        """Make the process fresh in the background, or start another one."""
        if not self.closed:
            self.later(self._recycle(seat, broken))

    async def stop(self) -> None:
        """Close everything; who waits for a process is told."""
        self.closed = True
        async with self._changed:
            self._changed.notify_all()
        await Backend.stop(self)

    async def _recycle(self, seat: Seat, broken: bool) -> None:
        connection, workspace = seat.connection, seat.workspace
        try:
            if not broken and connection.alive and self.reset != "restart":
                if isinstance(self.reset, Mapping):
                    assert self.reset_call is not None
                    await self.reset_call(connection, self.reset)
                if workspace is not None:
                    await asyncio.to_thread(workspace.fill, self.templates.get(seat.scenario))
                async with self._changed:
                    self.idle.append(seat)
                    self._changed.notify_all()
                return
        except (CallwrightError, OSError) as error:
            self.counts.last_error = str(error)
        await connection.stop()
        self.connections.discard(connection)
        try:
            if workspace is not None:
                await asyncio.to_thread(workspace.fill, self.templates.get(seat.scenario))
        except BaseException:
            await self._leave_room()
            raise
        await self._warmed(seat.scenario, workspace)


def with_code(error: BaseException) -> ServerFailure:
    """Any failure to get a place as one that names its kind."""
    return error if isinstance(error, ServerFailure) else ServerFailure("session", str(error))
