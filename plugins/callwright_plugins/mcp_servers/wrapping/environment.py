"""Anybody's MCP server as an environment: started, watched and stopped, and what it offers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from attrs import evolve

from callwright.environments.protocol import Environment
from callwright.errors import InfrastructureFailure, UnknownName
from callwright.machines.command_folder import warn_once
from callwright.options import read_options
from callwright.tools.spec import ToolSpec
from callwright_plugins.mcp_servers.connecting.connection import Connection, Description, Refused, ServerFailure
from callwright_plugins.mcp_servers.connecting.contents import contents
from callwright_plugins.mcp_servers.connecting.foreign import ForeignTool, only_reading, read_listing, read_reply
from callwright_plugins.mcp_servers.connecting.portal import PORTAL
from callwright_plugins.mcp_servers.wire import need_mcp
from callwright_plugins.mcp_servers.wrapping.deciding import choose_digest, choose_isolation
from callwright_plugins.mcp_servers.wrapping.locking import changes, check_lock, listing_hash
from callwright_plugins.mcp_servers.wrapping.options import MCPOptions
from callwright_plugins.mcp_servers.wrapping.pool import (
    Backend,
    Counts,
    Isolation,
    OneProcess,
    OwnConnection,
    ProcessPool,
)
from callwright_plugins.mcp_servers.wrapping.session import MCPSession

#: How many differences a message names.
_MOST_CHANGES: Final = 5


class MCPEnvironment(Environment):
    """A server, started by a command or reached at a URL, as an environment.

    ``isolation``: ``meta`` (one process, sessions told apart by id; the server must know Callwright's key),
    ``connection`` (a connection each), ``process`` (a process each, out of a pool) or ``shared`` (one process for all;
    right only if no tool changes anything). ``auto`` asks the server: ``meta`` if it declares the key, ``shared`` if
    every tool that is offered declares itself read-only, else ``process``. `callwright env probe` tells what is true.

    ``reset``: how a process is made fresh for the next session: ``restart``, ``workspace`` (only its folder is
    restored) or ``{"tool": …, "arguments": {…}}``, a tool of the server, which is then not offered.

    ``{workspace}`` in ``command``, ``env`` and ``cwd`` stands for a folder that each process gets for itself, filled
    from ``workspace_template`` (a folder, or one for each scenario) and named ``workspace_alias`` in calls and answers.

    ``hide`` are tools that are not offered. ``errors`` are patterns (regular expressions) of texts that are failures,
    for servers that report them as results (``^Database error``). ``pool`` is the most processes, ``warm`` how many
    stand ready. ``lock`` is a lock file (:mod:`.locking`). ``time_limit``, ``start_limit`` and ``wait_limit`` are
    seconds for a call, a start and the wait for a process. After a crash or time-out a session is replayed in a new
    process and the call done again, up to ``retries`` times; then it is an ``infrastructure_error``.

    ``undeclared`` says what an internal error of the server becomes (tools report failures in results, so it is a bug):
    an ``execution_error``, ``"mask"`` or ``"raise"``, as in :class:`callwright.environments.FunctionEnvironment`.

    ``knowledge`` is a JSON file of what users know and no tool tells, or one for each scenario
    (:mod:`callwright.environments.knowledge.files`). ``suggestions`` is a JSON file of texts for free-text
    arguments, or ``sqlite``, which ships (:mod:`callwright.environments.knowledge.suggestions`).

    ``digest`` is what a session's digest is made of: ``server`` (it says so itself), ``workspace`` (the folder without
    ``digest_ignore``), a list of read-only calls (``{"tool": …, "arguments": {…}}``) whose answers are hashed, or
    ``history`` (the calls so far that may have changed something). ``auto`` takes the first that there is.
    """

    #: Its sessions live in the server: isolation leaves them where they are.
    out_of_process: Literal[True] = True
    #: One keyword for each option, so that whoever lists the options of a component finds them.
    __signature__ = inspect.signature(MCPOptions)

    def __init__(self, command: str | Sequence[str] | None = None, **options: Any) -> None:
        need_mcp("the environment 'mcp'")
        self.options = read_options(MCPOptions, {"command": command, **options}, "the environment 'mcp'")
        self.target = self.options.target()
        self.time_limit, self.retries = self.options.time_limit, self.options.retries
        self.failures = self.options.failures()
        self._templates = self.options.templates()
        #: By scenario and entity, what users know; read once, so that nothing moves while sessions are open.
        self.known = self.options.known()
        #: What to write where tools take free text.
        self.suggestions = self.options.suggested()
        self._forget()

    def _forget(self) -> None:
        self.backend: Backend | None = None
        self._description: Description | None = None
        self.listing: dict[str, ForeignTool] = {}
        self._specs: dict[str, ToolSpec] = {}
        #: The tools by the server's own names.
        self.by_original: dict[str, ToolSpec] = {}
        self._starting: asyncio.Lock | None = None
        self.counts = Counts()
        #: By scenario, what workspaces begin with.
        self._first: dict[str, dict[str, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What it is, without what runs: another process starts its own."""
        live = ("backend", "_description", "listing", "_specs", "by_original", "_starting", "counts", "_first")
        return {key: value for key, value in self.__dict__.items() if key not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # What it offers

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool by the name that models are offered. Starts the server if it does not run yet."""
        if self._description is None:
            self.start()
        return self._specs

    @property
    def pure(self) -> bool:
        """True: what goes in and out is a copy, made by the wire."""
        return True

    @property
    def blocking(self) -> bool:
        """True: calls wait for another process, so whoever serves this runs them in threads."""
        return True

    @property
    def description(self) -> Description:
        """What the server says of itself. Starts it if it does not run yet."""
        if self._description is None:
            self.start()
        assert self._description is not None
        return self._description

    @property
    def served(self) -> bool:
        """Whether the server is an environment of Callwright, which judges calls itself. False before the start."""
        return self._description is not None and self._description.declares is not None

    @property
    def disposable(self) -> bool:
        """Whether what sessions do is gone with them: in a folder of each process's own, or in a served environment."""
        return self.options.has_workspace or self.description.declares is not None

    @property
    def isolation(self) -> Isolation:
        """The isolation that sessions have; ``auto`` is decided when the server is first started."""
        if self.backend is None:
            self.start()
        match self.backend:
            case OneProcess(keyed=True):
                return "meta"
            case OneProcess():
                return "shared"
            case OwnConnection():
                return "connection"
        return "process"

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of the option ``workspace_template``; those of a served environment are known to it alone."""
        return tuple(name for name in self._templates if name)

    def begins_with(self, scenario: str) -> Mapping[str, Any]:
        """What the workspace of a scenario begins with (:func:`.connecting.contents.contents`)."""
        found = self._first.get(scenario)
        if found is None:
            template = self._templates.get(scenario)
            found = {} if template is None else contents(template, self.options.digest_ignore)
            self._first[scenario] = found
        return found

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped."""
        return self.backend is not None

    @property
    def processes(self) -> int:
        """How many connections or processes there are."""
        return len(self.backend.connections) if self.backend is not None else 0

    def start(self) -> None:
        """Start the server and read its tools; the rest of the pool is warmed in the background.

        Raises :class:`callwright.InfrastructureFailure` if it does not start, and :class:`callwright.errors.DataError`
        if its tools are not those of the lock file or cannot be read.
        """
        PORTAL.run(self.astart())

    def open(self, scenario: str = "", seed: int = 0) -> MCPSession:
        """A fresh session. Waits for a process where all are in use."""
        return PORTAL.run(self.aopen(scenario, seed))

    def stop(self) -> None:
        """Stop every process. Sessions that are open are lost; the next :meth:`open` starts again."""
        PORTAL.run(self.astop())

    # In the portal's loop

    async def astart(self) -> None:
        """:meth:`start`, in the portal's loop."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self.backend is None:
                await self._start()

    async def _start(self) -> None:
        first = self._make_backend(OneProcess, keyed=False)
        scenario = "" if "" in self._templates else next(iter(self._templates), "")
        try:
            connection = await first.connect(scenario)
            description = connection.description
            assert description is not None
            broken = list(description.broken)
            listed = read_listing(description.tools, [*self.options.hide, *self.options.reset_tools], broken)
            for one in broken:
                if one.name not in self.options.hide:
                    warn_once(f"{self.target.label}: {one.words}")
            tools = only_reading(listed, self.options.read_only)
            if self.options.lock is not None:
                lock_name = self.options.lock_name or self.options.name
                check_lock(Path(self.options.lock), lock_name, self.target.command_line, description)
            isolation = choose_isolation(self.options, description, tools)
        except BaseException:
            await first.stop()
            raise
        self.listing, self._specs = tools, {name: tool.spec for name, tool in tools.items()}
        self.by_original = {tool.original: tool.spec for tool in reversed(tools.values())}  # of a name, the first
        self._description = description
        PORTAL.own(self)
        if isolation == "process":
            pool = self._make_backend(
                ProcessPool,
                size=self.options.pool,
                warm=self.options.stand_ready,
                wait_limit=self.options.wait_limit,
                reset=self.options.reset,
                reset_call=self._call_reset,
            )
            pool.adopt(connection, scenario)
            pool._warm_up(scenario)
            self.backend = pool
        elif isolation == "connection":
            self.backend = self._make_backend(OwnConnection)
            await first.stop()
        else:
            first.keyed = isolation == "meta"
            first._current = connection
            self.backend = first

    def _make_backend(self, kind: Callable[..., Any], **more: Any) -> Any:
        return kind(
            target=self.target,
            templates=self._templates,
            alias=self.options.workspace_alias,
            has_workspace=self.options.has_workspace,
            start_limit=self.options.start_limit,
            check=self._check_same,
            counts=self.counts,
            **more,
        )

    def _check_same(self, found: Description) -> None:
        """Every process that is started must have the tools of the first."""
        known = self._description
        if known is not None and listing_hash(found) != listing_hash(known):
            raise InfrastructureFailure(
                f"{self.target.label}: a process was started that has other tools than the first ({found.name} "
                f"{found.version}, before {known.name} {known.version})"
            )

    async def check_listing(self, connection: Connection) -> None:
        """Read the tools again if the server said that they changed; they must be those that agents were offered.

        What was locked was compared with these, so under a lock every difference counts. Otherwise tools may be added:
        they are not offered. Raises :class:`.ServerFailure` of the code ``changed``.
        """
        if not connection.alive:
            return  # the call finds out, and is made elsewhere
        found = await connection.listing_again(self.time_limit)
        known = self._description
        if found is not None and known is not None:
            if self.options.lock is None:
                names = {tool.get("name") for tool in known.tools}
                found = evolve(found, tools=[tool for tool in found.tools if tool.get("name") in names])
            connection.differences = changes(known, found)
        if connection.differences:
            connection.alive = False  # whoever comes next gets one that is as it was
            told = "; ".join(connection.differences[:_MOST_CHANGES])
            raise ServerFailure("changed", f"{self.target.label}: it changed its tools while it ran: {told}")

    async def aopen(self, scenario: str = "", seed: int = 0) -> MCPSession:
        """:meth:`open`, in the portal's loop; elsewhere: ``await PORTAL.arun(environment.aopen())``."""
        await self.astart()
        self.check_scenario(scenario)
        session = MCPSession(self, scenario, seed, choose_digest(self.options, served=self.served))
        await session.sit_down()
        return session

    def check_scenario(self, scenario: str) -> None:
        """Raises :class:`callwright.errors.UnknownName` for one that no workspace begins with."""
        if not self.served and scenario not in self._templates and (scenario or len(self._templates) > 1):
            raise UnknownName("scenario (they are those of workspace_template)", scenario, self._templates)

    async def astop(self) -> None:
        """:meth:`stop`, in the portal's loop."""
        backend = self.backend
        counts = self.counts
        self._forget()
        self.counts = counts
        if backend is not None:
            await backend.stop()

    async def aping(self, limit: float = 5.0) -> bool:
        """Whether a process of it answers within ``limit`` seconds, in the portal's loop. False if it is not running.

        Where all are being made fresh, one of those is waited for.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while self.backend is not None:
                    for connection in list(self.backend.connections):
                        if await connection.ping(limit):
                            return True
                    await asyncio.sleep(0.02)
        return False

    async def _call_reset(self, connection: Connection, reset: Mapping[str, Any]) -> None:
        tool = next((one for one in self.listing.values() if reset["tool"] in (one.spec.name, one.original)), None)
        name = tool.original if tool is not None else str(reset["tool"])
        try:
            reply = await connection.call(name, dict(reset.get("arguments") or {}), None, self.time_limit)
        except Refused as refusal:
            raise ServerFailure(
                "reset", f"{self.target.label}: its reset tool {name!r} failed: {refusal.message}"
            ) from refusal
        if reply.is_error:
            raise ServerFailure(
                "reset",
                f"{self.target.label}: its reset tool {name!r} failed: {read_reply(reply, read_only=False).message}",
            )
