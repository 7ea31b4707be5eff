"""Anybody's MCP server as an environment: isolated sessions, outcomes, digests, and failures that are not rewards."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args
from uuid import uuid4

from attrs import define, evolve, field

from callwright.digests import digest_of
from callwright.environments.calling import schema_error
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.undeclared import Undeclared
from callwright.errors import InfrastructureFailure, UnknownName, UsageError
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import check_arguments
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_servers.connection import Connection, Description, Lost, Refused, Reply, Target
from callwright_plugins.mcp_servers.foreign import ForeignTool, as_wanted, read_listing, read_refusal, read_reply
from callwright_plugins.mcp_servers.locking import check_lock, listing_hash
from callwright_plugins.mcp_servers.pool import (
    Backend,
    Counts,
    Isolation,
    OneProcess,
    OwnConnection,
    ProcessPool,
    Reset,
    Seat,
    lost,
)
from callwright_plugins.mcp_servers.portal import PORTAL
from callwright_plugins.mcp_servers.wire import DIGEST, SCENARIO, SEED, SESSION, answer_of, need_mcp
from callwright_plugins.mcp_servers.workspace import mentions_workspace

DigestSource = Literal["server", "workspace", "discovery", "history"]
_LADDER: Final = ("auto", "meta", "connection", "process", "shared")
#: How many calls of a session can be done again in a new process after a crash.
_REPLAYED: Final = 1000
#: A tool and its arguments.
CallSpec = tuple[str, dict[str, Any]]


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
    an ``execution_error``, ``"mask"`` or ``"raise"``, as in :class:`callwright.FunctionEnvironment`.

    ``digest`` is what a session's digest is made of: ``server`` (it says so itself), ``workspace`` (the folder without
    ``digest_ignore``), a list of read-only calls (``{"tool": …, "arguments": {…}}``) whose answers are hashed, or
    ``history`` (the calls so far that may have changed something). ``auto`` takes the first that there is.
    """

    def __init__(
        self,
        command: str | Sequence[str] | None = None,
        *,
        url: str | None = None,
        isolation: str = "auto",
        reset: Reset = "restart",
        workspace_template: str | Path | Mapping[str, str | Path] | None = None,
        workspace_alias: str = "/workspace",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        headers: Mapping[str, str] | None = None,
        hide: Sequence[str] = (),
        errors: Sequence[str] = (),
        pool: int = 4,
        warm: int | None = None,
        lock: str | Path | None = None,
        lock_name: str | None = None,
        digest: str | Sequence[Mapping[str, Any]] = "auto",
        digest_ignore: Sequence[str] = (),
        time_limit: float = 30.0,
        start_limit: float = 60.0,
        wait_limit: float = 120.0,
        retries: int = 1,
        undeclared: Undeclared = "execution_error",
        legacy: bool = False,
        name: str = "mcp",
    ) -> None:
        need_mcp("the environment 'mcp'")
        words = shlex.split(command) if isinstance(command, str) else list(command or ())
        if bool(words) == (url is not None):
            raise UsageError("the environment 'mcp' needs either command=[…], which starts a server, or url=…")
        if isolation not in _LADDER:
            raise UnknownName("isolation", isolation, _LADDER)
        if url is not None and isolation == "process":
            raise UsageError("isolation 'process' needs a command: a server at a URL is somebody else's process")
        if not isinstance(reset, Mapping) and reset not in ("restart", "workspace"):
            raise UnknownName("reset", str(reset), ("restart", "workspace"), hint='Or {"tool": …, "arguments": {…}}.')
        if isinstance(reset, Mapping) and not isinstance(reset.get("tool"), str):
            raise UsageError('reset is either "restart", "workspace" or {"tool": name, "arguments": {…}}')
        if pool < 1 or retries < 0 or (warm is not None and warm < 0):
            raise UsageError("pool must be at least 1, and warm and retries at least 0")
        for what, limit in (("time_limit", time_limit), ("start_limit", start_limit), ("wait_limit", wait_limit)):
            if limit <= 0:
                raise UsageError(f"{what} must be a positive number of seconds, not {limit:g}")
        if not workspace_alias.startswith("/") or workspace_alias.endswith("/"):
            raise UsageError(f"workspace_alias must be an absolute path such as /workspace, not {workspace_alias!r}")
        self.target = Target(tuple(words), url, dict(env or {}), cwd, dict(headers or {}), legacy)
        self._name = name
        self._isolation, self._reset = isolation, reset
        self._templates = _templates(workspace_template)
        self._alias = workspace_alias
        self._has_workspace = mentions_workspace([*words, *(env or {}).values(), cwd or ""])
        if workspace_template is not None and not self._has_workspace:
            raise UsageError("workspace_template is given, but nothing in command, env or cwd mentions {workspace}")
        self._hide = tuple(hide)
        try:
            self._errors = re.compile("|".join(f"(?:{pattern})" for pattern in errors)) if errors else None
        except re.error as error:
            raise UsageError(f"errors: not a regular expression: {error}") from error
        self._size, self._warm = pool, pool if warm is None else min(warm, pool)
        self._lock_file = Path(lock) if lock is not None else None
        self._lock_name = lock_name or name
        self._digest, self._ignore = digest, tuple(digest_ignore)
        self.time_limit, self._start_limit, self._wait_limit = time_limit, start_limit, wait_limit
        self.retries = retries
        if undeclared not in get_args(Undeclared):
            raise UnknownName("way with undeclared failures", str(undeclared), get_args(Undeclared))
        self.undeclared: Undeclared = undeclared
        if isinstance(digest, str) and digest not in ("auto", "server", "workspace", "history"):
            raise UnknownName("digest", digest, ("auto", "server", "workspace", "history"), hint="Or a list of calls.")
        if digest == "workspace" and not self._has_workspace:
            raise UsageError("digest 'workspace' needs {workspace} in command, env or cwd")
        self._forget()

    def _forget(self) -> None:
        self._backend: Backend | None = None
        self._description: Description | None = None
        self._tools: dict[str, ForeignTool] = {}
        self._specs: dict[str, ToolSpec] = {}
        self._reading: frozenset[str] = frozenset()
        self._starting: asyncio.Lock | None = None
        self.counts = Counts()

    def __getstate__(self) -> dict[str, Any]:
        """What it is, without what runs: another process starts its own."""
        live = ("_backend", "_description", "_tools", "_specs", "_reading", "_starting", "counts")
        return {key: value for key, value in self.__dict__.items() if key not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # What it offers

    @property
    def name(self) -> str:
        """The name."""
        return self._name

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
    def isolation(self) -> Isolation:
        """The isolation that sessions have; ``auto`` is decided when the server is first started."""
        if self._backend is None:
            self.start()
        match self._backend:
            case OneProcess(keyed=True):
                return "meta"
            case OneProcess():
                return "shared"
            case OwnConnection():
                return "connection"
        return "process"

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._backend is not None

    @property
    def processes(self) -> int:
        """How many connections or processes there are."""
        return len(self._backend.connections) if self._backend is not None else 0

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
            if self._backend is None:
                await self._start()

    async def _start(self) -> None:
        first = self._make_backend(OneProcess, keyed=False)
        scenario = "" if "" in self._templates else next(iter(self._templates), "")
        try:
            connection = await first.connect(scenario)
            description = connection.description
            assert description is not None
            tools = read_listing(description.tools, [*self._hide, *self._reset_tools()])
            if self._lock_file is not None:
                check_lock(self._lock_file, self._lock_name, self.target.label, description)
            isolation = self._decide(description, tools)
        except BaseException:
            await first.stop()
            raise
        self._tools, self._specs = tools, {name: tool.spec for name, tool in tools.items()}
        self._reading = frozenset(tool.original for tool in tools.values() if tool.spec.read_only)
        self._description = description
        PORTAL.own(self)
        if isolation == "process":
            pool = self._make_backend(
                ProcessPool,
                size=self._size,
                warm=self._warm,
                wait_limit=self._wait_limit,
                reset=self._reset,
                reset_call=self._call_reset,
            )
            pool.adopt(connection, scenario)
            pool._warm_up(scenario)
            self._backend = pool
        elif isolation == "connection":
            self._backend = self._make_backend(OwnConnection)
            await first.stop()
        else:
            first.keyed = isolation == "meta"
            first._current = connection
            self._backend = first

    def _make_backend(self, kind: Callable[..., Any], **more: Any) -> Any:
        return kind(
            target=self.target,
            templates=self._templates,
            alias=self._alias,
            has_workspace=self._has_workspace,
            start_limit=self._start_limit,
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

    def _reset_tools(self) -> list[str]:
        return [str(self._reset["tool"])] if isinstance(self._reset, Mapping) else []

    def _decide(self, description: Description, tools: Mapping[str, ForeignTool]) -> Isolation:
        offered = [tool.spec for tool in tools.values() if not tool.spec.hidden]
        changing = [spec.name for spec in offered if not spec.read_only]
        match self._isolation:
            case "auto":
                if description.declares is not None:
                    return "meta"
                if not changing and len(self._templates) == 1:
                    return "shared"
                if self.target.url is not None:
                    raise UsageError(
                        f"{self.target.label}: its tools may change something ({', '.join(changing[:5])} …), and "
                        "nothing says that its sessions are apart. Say isolation='connection' if it keeps state for "
                        "each connection, isolation='shared' if sharing does no harm, or start it with command=[…]"
                    )
                return "process"
            case "shared" if len(self._templates) > 1:
                raise UsageError(
                    "isolation 'shared' has one process, which cannot have the workspaces of several scenarios"
                )
            case "meta" if description.declares is None:
                raise UsageError(
                    f"{self.target.label}: it does not declare that it knows Callwright's session key, so isolation "
                    "'meta' would let sessions see one another. Leave isolation out"
                )
        return cast(Isolation, self._isolation)

    async def aopen(self, scenario: str = "", seed: int = 0) -> MCPSession:
        """:meth:`open`, in the portal's loop; elsewhere: ``await PORTAL.arun(environment.aopen())``."""
        await self.astart()
        assert self._description is not None
        served = self._description.declares is not None
        if not served and scenario not in self._templates and (scenario or len(self._templates) > 1):
            raise UnknownName("scenario (they are those of workspace_template)", scenario, self._templates)
        session = MCPSession(self, scenario, seed, self._digest_source(served))
        await session._sit_down()
        return session

    def _digest_source(self, served: bool) -> DigestSource:
        if not isinstance(self._digest, str):
            return "discovery"
        if self._digest != "auto":
            if self._digest == "server" and not served:
                raise UsageError(
                    f"{self.target.label}: it gives no digests; digest='server' is for served environments"
                )
            return cast(DigestSource, self._digest)
        return "server" if served else "workspace" if self._has_workspace else "history"

    async def astop(self) -> None:
        """:meth:`stop`, in the portal's loop."""
        backend = self._backend
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
                while self._backend is not None:
                    for connection in list(self._backend.connections):
                        if await connection.ping(limit):
                            return True
                    await asyncio.sleep(0.02)
        return False

    async def _call_reset(self, connection: Connection, reset: Mapping[str, Any]) -> None:
        tool = next((one for one in self._tools.values() if reset["tool"] in (one.spec.name, one.original)), None)
        name = tool.original if tool is not None else str(reset["tool"])
        try:
            reply = await connection.call(name, dict(reset.get("arguments") or {}), None, self.time_limit)
        except Refused as refusal:
            raise Lost("reset", f"{self.target.label}: its reset tool {name!r} failed: {refusal.message}") from refusal
        if reply.is_error:
            raise Lost(
                "reset",
                f"{self.target.label}: its reset tool {name!r} failed: {read_reply(reply, read_only=False).message}",
            )


def _templates(given: str | Path | Mapping[str, str | Path] | None) -> dict[str, Path | None]:
    if given is None:
        return {"": None}
    found = given if isinstance(given, Mapping) else {"": given}
    if not found:
        raise UsageError("workspace_template names no folder")
    templates = {name: Path(path).absolute() for name, path in found.items()}
    for path in templates.values():
        if not path.is_dir():
            raise UsageError(f"{path}: the workspace template is not a folder")
    return dict(templates)


@define(eq=False)
class MCPSession(Session):
    """A session of an :class:`MCPEnvironment`.

    Its calls come one after the other. ``digest_source`` is what the digest is made of.
    """

    environment: MCPEnvironment
    scenario: str
    seed: int
    digest_source: DigestSource
    _seat: Seat | None = field(default=None, repr=False)
    #: Calls so far, to be done again after a crash; ``None`` once they are too many.
    _calls: list[tuple[str, dict[str, Any], Outcome]] | None = field(factory=list, repr=False)
    _history: str = field(default="", repr=False)
    _state: str | None = field(default=None, repr=False)
    _lost: str = ""
    _closed: bool = False
    _turn: asyncio.Lock = field(factory=asyncio.Lock, repr=False)

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call.

        ``unknown_tool`` and ``schema_error`` are found by the listing before the server sees the call. The codes of
        ``infrastructure_error`` are ``crashed``, ``timeout``, ``protocol``, ``diverged`` (a replay went otherwise) and
        ``session``; after one the session is over.
        """
        return PORTAL.run(self.acall(tool, arguments))

    def digest(self) -> str:
        """A hash of what ``digest_source`` names. Raises :class:`callwright.InfrastructureFailure` if it is lost."""
        if self.digest_source == "workspace" and not self._lost and self._seat is not None:
            return self._workspace_digest(self._seat)  # in the caller's thread: it reads files
        return PORTAL.run(self.adigest())

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Back to the start, of another scenario or seed if given."""
        PORTAL.run(self.areset(scenario, seed))

    def fork(self) -> MCPSession:
        """Another session in the same state: by the server where it can, else by doing all calls again."""
        return PORTAL.run(self.afork())

    def helper(self, name: str, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Run a hidden tool: a hidden one of the listing, or a helper of an environment served with ``--helpers``."""
        return PORTAL.run(self.ahelper(name, dict(arguments or {})))

    def close(self) -> None:
        """Give the place back. Closing twice is allowed."""
        if not self._closed:
            PORTAL.run(self.aclose())

    # In the portal's loop

    async def acall(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """:meth:`call`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._lost:
                return Outcome("infrastructure_error", None, "session", self._lost)
            known = self.environment._tools.get(tool)
            if not self._served:
                if known is None or known.spec.hidden:
                    return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r}")
                if check_arguments(known.spec, arguments):
                    return schema_error(known.spec, arguments)
            elif known is not None and known.spec.hidden:
                return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
            original = known.original if known is not None else tool
            outcome = await self._retried(self._asking(original, arguments))
            if outcome.kind != "infrastructure_error":
                self._remember(tool, original, arguments, outcome)
            return outcome

    async def _retried(self, work: Callable[[Seat], Awaitable[Outcome]]) -> Outcome:
        """Do this at the session's place; if that is lost, again at a new one to which the session was moved."""
        environment = self.environment
        for attempt in range(environment.retries + 1):
            try:
                if self._seat is None:
                    await self._sit_down()
                    await self._replay()
                assert self._seat is not None
                outcome = await work(self._seat)
                if outcome.kind == "infrastructure_error":  # the server's own word for it
                    self._lost = outcome.message or outcome.code
                return outcome
            except InfrastructureFailure as error:
                failure = lost(error)
                environment.counts.last_error = str(failure)
                environment.counts.crashed += failure.code == "crashed"
                environment.counts.timed_out += failure.code == "timeout"
                await self._stand_up(broken=True)
                if self._calls is None or failure.code in ("diverged", "session") or attempt == environment.retries:
                    break
                environment.counts.retried += 1
        environment.counts.masked += 1
        self._lost = str(failure)
        return Outcome("infrastructure_error", None, failure.code, str(failure))

    def _asking(self, original: str, arguments: dict[str, Any]) -> Callable[[Seat], Awaitable[Outcome]]:
        return lambda seat: self._ask(seat, original, arguments)

    async def _ask(self, seat: Seat, original: str, arguments: dict[str, Any]) -> Outcome:
        workspace = seat.workspace
        sent = workspace.inward(arguments) if workspace is not None else arguments
        meta = seat.meta
        if self._served:
            meta = {**meta, SCENARIO: self.scenario, SEED: self.seed, DIGEST: True}
        try:
            reply = await seat.connection.call(original, sent, meta or None, self.environment.time_limit)
        except Refused as refusal:
            outcome = as_wanted(read_refusal(refusal, original), self.environment.undeclared)
        else:
            outcome = self._read(reply, original)
        if workspace is not None:
            message = workspace.outward(outcome.message)
            outcome = evolve(outcome, value=workspace.outward(outcome.value), message=message)
        return outcome

    def _read(self, reply: Reply, original: str) -> Outcome:
        if self._served:
            result = {"_meta": reply.meta, "isError": reply.is_error, "structuredContent": reply.structured}
            answer = answer_of(result)
            if answer is not None:
                self._state = answer.digest
                return answer.outcome
        outcome = read_reply(reply, read_only=original in self.environment._reading)
        errors = self.environment._errors
        if errors is not None and isinstance(outcome.value, str) and errors.search(outcome.value):
            return Outcome("execution_error", None, "tool_error", outcome.value)
        return outcome

    @property
    def _served(self) -> bool:
        """Whether the server is an environment of Callwright, which judges calls itself."""
        description = self.environment._description
        return description is not None and description.declares is not None

    def _remember(self, tool: str, original: str, arguments: dict[str, Any], outcome: Outcome) -> None:
        known = self.environment._specs.get(tool)
        if self._calls is not None:
            self._calls.append((original, copy_json(arguments), outcome))
            if len(self._calls) > _REPLAYED:
                self._calls = None
        if outcome.executed and (known is None or not known.read_only):
            self._history = digest_of([self._history, tool, copy_json(arguments), outcome.kind, outcome.value])

    async def _sit_down(self) -> None:
        backend = self.environment._backend
        if backend is None:
            raise InfrastructureFailure(f"{self.environment.target.label}: it was stopped")
        for attempt in range(self.environment.retries + 1):
            try:
                self._seat = await backend.acquire(self.scenario)
                if self._served:
                    await self._manage("open")
                return
            except Lost:
                await self._stand_up(broken=True)
                if attempt == self.environment.retries:
                    raise

    async def _stand_up(self, *, broken: bool = False) -> None:
        seat, self._seat = self._seat, None
        backend = self.environment._backend
        if seat is not None and backend is not None:
            await backend.release(seat, broken=broken)

    async def _replay(self) -> None:
        """Do all calls again in a new place; they must go as they went."""
        assert self._seat is not None
        for original, arguments, before in self._calls or ():
            after = await self._ask(self._seat, original, arguments)
            if (after.kind, after.code, after.value) != (before.kind, before.code, before.value):
                raise Lost(
                    "diverged",
                    f"{self.environment.target.label}: it crashed, and done again {original} came to {after.kind}, "
                    f"not to the {before.kind} and the value of before; the session cannot go on",
                )

    async def _manage(self, op: str, **more: str) -> dict[str, Any]:
        assert self._seat is not None
        meta = {**self._seat.meta, SCENARIO: self.scenario, SEED: self.seed}
        try:
            found = await self._seat.connection.manage(op, meta, self.environment.time_limit, **more)
        except Refused as refusal:
            raise UsageError(refusal.message) from refusal
        state = found.get("digest")
        if isinstance(state, str) and op != "fork":
            self._state = state
        return found

    async def adigest(self) -> str:
        """:meth:`digest`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._lost or self._seat is None:
                raise InfrastructureFailure(self._lost or "the session has no place")
            match self.digest_source:
                case "server":
                    if self._state is None:
                        await self._manage("digest")
                    assert self._state is not None
                    return self._state
                case "workspace":
                    return await asyncio.to_thread(self._workspace_digest, self._seat)
                case "discovery":
                    return await self._discover()
            return digest_of([self.scenario, self.seed, self._history])

    def _workspace_digest(self, seat: Seat) -> str:
        self._check_open()
        assert seat.workspace is not None
        return seat.workspace.digest(self.environment._ignore)

    async def _discover(self) -> str:
        found = []
        for call in self.environment._digest:
            assert isinstance(call, Mapping)
            name, arguments = str(call.get("tool")), dict(call.get("arguments") or {})
            tool = self.environment._tools.get(name)
            if tool is None:
                raise UnknownName("tool (in the option digest)", name, self.environment._tools)
            outcome = await self._retried(self._asking(tool.original, arguments))
            if outcome.kind == "infrastructure_error":
                raise InfrastructureFailure(outcome.message)
            found.append([name, outcome.kind, outcome.code, outcome.value])
        return digest_of(found)

    async def areset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """:meth:`reset`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            changed = scenario not in (None, self.scenario) or seed not in (None, self.seed)
            self.scenario = self.scenario if scenario is None else scenario
            self.seed = self.seed if seed is None else seed
            self._calls, self._history, self._state = [], "", None
            if self._served and self._seat is not None and not self._lost and not changed:
                await self._manage("reset")
                return
            await self._stand_up(broken=bool(self._lost))
            self._lost = ""
            await self._sit_down()

    async def afork(self) -> MCPSession:
        """:meth:`fork`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._lost:
                raise InfrastructureFailure(self._lost)
            other = MCPSession(self.environment, self.scenario, self.seed, self.digest_source)
            other._calls, other._history = list(self._calls) if self._calls is not None else None, self._history
            if self._served and self._seat is not None and self._seat.meta:
                id = uuid4().hex
                with suppress(UsageError):  # its sessions cannot be forked
                    state = (await self._manage("fork", to=id)).get("digest")
                    other._seat = Seat(self._seat.connection, self.scenario, {**self._seat.meta, SESSION: id})
                    other._state = state if isinstance(state, str) else None
                    return other
            if self._calls is None:
                raise InfrastructureFailure(
                    f"the session's calls cannot be done again: helpers were run, or there are more than {_REPLAYED}"
                )
            await other._sit_down()
            try:
                await other._replay()
            except BaseException:
                await other._stand_up(broken=True)
                raise
            return other

    async def ahelper(self, name: str, arguments: dict[str, Any]) -> Outcome:
        """:meth:`helper`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._lost:
                return Outcome("infrastructure_error", None, "session", self._lost)
            tool = self.environment._tools.get(name)
            declared = self.environment.description.declares or {}
            if (tool is None or not tool.spec.hidden) and not declared.get("helpers"):
                raise UsageError(
                    f"there is no hidden tool {name!r}; the helpers of a served environment need 'env serve --helpers'"
                )
            original = tool.original if tool is not None else name
            self._calls = None  # what helpers did is not done again after a crash
            return await self._retried(self._asking(original, arguments))

    async def aclose(self) -> None:
        """:meth:`close`, in the portal's loop."""
        if not self._closed:
            self._closed = True
            await self._stand_up(broken=bool(self._lost))

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
