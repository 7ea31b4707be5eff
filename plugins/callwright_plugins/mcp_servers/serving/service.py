"""Serving an environment: the requests of MCP answered out of sessions.

:func:`make_server` gives the server of the package ``mcp``; :mod:`.transports` runs it over stdio and HTTP. The SDK's
low-level server neither checks arguments nor refuses what is not listed, so both are decided here and in the session:
the same ``session.call`` as in process.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from uuid import uuid4

from attrs import evolve

from callwright.capability import has
from callwright.environments.capabilities import Diffs, Forks, Helps, Resets, blocks, helpers_of
from callwright.environments.hazards.policy import Hazards
from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.living.opening import prepare
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.sessions import briefing_of, call_session, undeclared_failure
from callwright.errors import CallwrightError, ComponentError, InfrastructureFailure, UsageError
from callwright.language.program import Call
from callwright.machines.event_loop import called
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_servers.serving.callers import Callers
from callwright_plugins.mcp_servers.serving.record import Record
from callwright_plugins.mcp_servers.sessions import Held, SessionStore
from callwright_plugins.mcp_servers.wire import (
    DIGEST,
    OUTCOME,
    SCENARIO,
    SEED,
    SESSION,
    answer_of,
    listed_tools,
    need_mcp,
    result_of,
)

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

T = TypeVar("T")
_LONGEST_ID: Final = 200
#: Seeds as addresses name them. Python knows more digits than these (``²``), of which it makes no number.
_SEED_TEXT: Final = re.compile(r"-?[0-9]{1,100}")
_INVALID_PARAMS: Final = -32602
_INTERNAL_ERROR: Final = -32603
#: How long a call may take, in seconds, unless the server is told otherwise.
TIME_LIMIT: Final = 60.0


class Service:
    """An environment and its open sessions, as a server needs them.

    ``scenario`` and ``seed`` are those of sessions whose client says nothing. ``helpers`` lets clients run the
    environment's hidden helper tools; they are listed to nobody. ``capacity`` bounds the open sessions, ``idle`` is
    after how many seconds without a call one is closed. ``time_limit`` is in seconds a call.

    ``threads``: whether calls run in threads, so that slow ones neither hold up others nor outlast the limit. By
    default they do, except in pure environments, whose calls take microseconds; those run one after the other.

    ``session`` is the id of the session for every request that names none, whatever connection it comes by. ``notice``
    is told, once each, what whoever runs the server should know: refusals, and clients whose state does not last.
    ``record`` receives every call (:mod:`.record`). ``clock`` lets time move in every session, ``hazards`` are what
    its calls meet; without them as its scenario says.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        scenario: str = "",
        seed: int = 0,
        helpers: bool = False,
        capacity: int = 4096,
        idle: float | None = 1800.0,
        time_limit: float | None = None,
        threads: bool | None = None,
        session: str | None = None,
        notice: Callable[[str], None] = lambda text: None,
        record: Record | None = None,
        clock: ClockPolicy | None = None,
        hazards: Hazards | None = None,
    ) -> None:
        if session is not None and not 0 < len(session) <= _LONGEST_ID:
            raise UsageError(f"the session's name must have 1 to {_LONGEST_ID} characters")
        if time_limit is not None and time_limit <= 0:
            raise UsageError(f"the time limit must be a positive number of seconds, not {time_limit:g}")
        self.environment, self.helpers, self.clock, self.hazards = environment, helpers, clock, hazards
        self.default = (scenario, seed)
        self.session, self.record = session, record
        self.callers = Callers(notice)
        slow = not environment.pure or blocks(environment)
        self.threads = (slow or time_limit is not None) if threads is None else threads
        self.time_limit = time_limit or TIME_LIMIT
        self.sessions = SessionStore(capacity=capacity, idle=idle)
        self.tools = environment.tools
        self.listing = listed_tools(spec for spec in self.tools.values() if not spec.hidden)
        self.in_calls = 0

    def instructions(self) -> str:
        """What a client is told when it connects: what this is, and the briefing of a session that begins by default.

        A connection that names another scenario or seed meets another time or another person.
        """
        about = f"The Callwright environment {self.environment.name!r}: {len(self.listing)} tools."
        told = briefing_of(self.environment, *self.default)
        return f"{about}\n\n{told}" if told else about

    # Calls

    async def call(self, id: str, meta: Mapping[str, Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run one call in the session of this id and give the result of ``tools/call``."""
        wanted = bool(meta.get(DIGEST))
        if self.record is None:
            return await self._answered(id, meta, tool, arguments, wanted)
        # Digests of pure environments cost nothing; others are asked for them only if the client asks.
        cheap = self.environment.pure and not blocks(self.environment)
        given, begun, before = copy_json(arguments), time.perf_counter(), self.sessions.peek(id)
        result = await self._answered(id, meta, tool, arguments, wanted or cheap)
        held = self.sessions.peek(id) or before  # a call over the limit closed it
        world = (held.scenario, held.seed) if held is not None else None
        self.record.call(id, world, tool, given, answer_of(result), time.perf_counter() - begun)
        if cheap and not wanted:
            result["_meta"][OUTCOME].pop("digest", None)
        return result

    async def _answered(
        self, id: str, meta: Mapping[str, Any], tool: str, arguments: dict[str, Any], wanted: bool
    ) -> dict[str, Any]:
        scenario, seed = _world(meta)
        if not self.threads:
            return self._call(id, scenario, seed, tool, arguments, wanted)
        try:
            async with asyncio.timeout(self.time_limit):
                return await _in_thread(lambda: self._call(id, scenario, seed, tool, arguments, wanted))
        except TimeoutError:
            reason = f"{tool} took more than {self.time_limit:g} s"
            self.sessions.close(id, gone=reason)
            return result_of(Outcome("infrastructure_error", None, "timeout", f"{reason}; the session is closed"))

    def _call(
        self, id: str, scenario: str | None, seed: int | None, tool: str, arguments: dict[str, Any], digest: bool
    ) -> dict[str, Any]:
        spec = self.tools.get(tool)
        try:
            held = self._held(id, scenario, seed)
            with self.sessions.using(held):
                if not self.threads:
                    return self._run(held.session, tool, arguments, digest)
                with held.extra.setdefault("lock", threading.Lock()):
                    return self._run(held.session, tool, arguments, digest)
        except InfrastructureFailure as error:
            return result_of(Outcome("infrastructure_error", None, "session", str(error)), spec)

    def _run(self, session: Session, tool: str, arguments: dict[str, Any], digest: bool) -> dict[str, Any]:
        spec = self.tools.get(tool)
        if self.helpers and tool in helpers_of(self.environment) and has(session, Helps):
            outcome = session.helper(tool, arguments)
        elif spec is not None and spec.hidden and not self.helpers:
            outcome = Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
        else:
            try:
                outcome = call_session(session, Call(0, tool, arguments), arguments)
            except ComponentError as error:  # a bug of the tool: whoever asked is told, and the server goes on
                outcome = undeclared_failure(tool, error.__cause__ or error)
        state = session.digest() if digest and outcome.kind != "infrastructure_error" else None
        if self.threads and not self.environment.pure:  # the next call may change the value before it is sent
            outcome = evolve(outcome, value=copy_json(outcome.value))
        try:
            return result_of(outcome, spec, state)
        except (TypeError, ValueError, RecursionError) as error:
            broken = f"the result of {tool} is not JSON: {error}"
            return result_of(Outcome("execution_error", None, "not_json", broken), spec, state)

    def _held(self, id: str, scenario: str | None, seed: int | None) -> Held:
        return self.sessions.obtain(id, self.open, scenario, seed, self.default)

    def open(self, scenario: str, seed: int) -> Session:
        """A fresh session, whose time moves and whose calls meet hazards as the server was told.

        Raises :class:`callwright.UsageError` where it cannot, and what opening raises.
        """
        session = self.environment.open(scenario, seed)
        prepare(session, self.clock, self.hazards, self.environment.name)
        return session

    # Sessions

    async def manage(self, id: str, meta: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Open, close, reset, fork or look at a session; what ``io.callwright/session`` answers."""
        scenario, seed = _world(meta)
        if self.threads:
            found = await _in_thread(lambda: self._manage(id, scenario, seed, params))
        else:
            found = self._manage(id, scenario, seed, params)
        if self.record is not None and params.get("op") in ("reset", "fork", "close"):
            self.record.managed(id, params["op"], params.get("to"))
        return found

    def _manage(self, id: str, scenario: str | None, seed: int | None, params: Mapping[str, Any]) -> dict[str, Any]:
        op = params.get("op")
        if op == "close":
            return {"closed": self.sessions.close(id)}
        held = self._held(id, scenario, seed)
        if op == "reset":
            if has(held.session, Resets):
                held.session.reset()
            else:
                self.sessions.close(id)
                held = self._held(id, held.scenario, held.seed)
        elif op == "fork":
            other = params.get("to")
            if not has(held.session, Forks):
                raise UsageError(f"sessions of {self.environment.name!r} cannot be forked")
            if not isinstance(other, str) or not other:
                raise UsageError("fork needs 'to', the id of the new session")
            held = self.sessions.add(other, held.session.fork(), scenario=held.scenario, seed=held.seed)
        elif op == "diff" and self.helpers and has(held.session, Diffs):
            return {"diff": held.session.diff()}
        elif (
            op == "knowledge" and self.helpers
        ):  # agents are not to know it: it belongs to whoever runs the environment
            return {"knowledge": knowledge_of(held.session, str(params.get("to") or "me"))}
        elif op not in ("open", "digest"):
            raise UsageError(f"there is no operation {op!r} on sessions (or it needs a server with helpers)")
        return {"digest": held.session.digest()}

    def close(self) -> None:
        """Close every session, and the record."""
        self.sessions.close_all()
        if self.record is not None:
            self.record.close()


def _world(meta: Mapping[str, Any]) -> tuple[str | None, int | None]:
    scenario, seed = meta.get(SCENARIO), meta.get(SEED)
    if scenario is not None and not isinstance(scenario, str):
        raise UsageError(f"{SCENARIO} must be a string")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise UsageError(f"{SEED} must be an integer")
    return scenario, seed


async def _in_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a thread of its own. If nobody waits any more it goes on alone; it does not keep the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        try:
            value, error = called(work), None
        except BaseException as raised:  # belongs to whoever waits
            value, error = None, raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, daemon=True, name="callwright-call").start()
    return await future


# The server -----------------------------------------------------------------------------------------------------------


def make_server(service: Service) -> Server[str]:
    """The server of the package ``mcp`` that answers out of ``service``. Raises
    :class:`callwright.errors.MissingExtra`.

    It is connected to as any: ``mcp.Client(server)`` in process, :func:`.transports.serve_stdio` and
    :func:`.transports.serve_http` otherwise.
    """
    need_mcp("serving an environment")
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    import callwright

    environment = service.environment
    numbers = itertools.count(1)

    @asynccontextmanager
    async def lifespan(_: Server[str]) -> AsyncIterator[str]:
        """Over stdio and in process this is one connection, over HTTP the whole server."""
        connection = f"connection {next(numbers)} {uuid4().hex[:12]}"
        try:
            yield connection
        finally:
            service.sessions.close(connection)

    def identity(ctx: Any, meta: dict[str, Any]) -> str:
        """The id of the session that a request is for."""
        query = ctx.request.query_params if ctx.request is not None else {}
        named = meta.get(SESSION, query.get("session"))
        if named is not None:
            if not isinstance(named, str) or not 0 < len(named) <= _LONGEST_ID:
                raise UsageError(f"{SESSION} must be a string of 1 to {_LONGEST_ID} characters")
            for key, name in ((SCENARIO, "scenario"), (SEED, "seed")):
                if key not in meta and name in query:
                    text = query[name]
                    meta[key] = int(text) if key == SEED and _SEED_TEXT.fullmatch(text) else text
            return named
        if service.session is not None:
            return service.session
        if ctx.request is None:
            connection: str = ctx.lifespan_context
            return connection
        transport = ctx.request.headers.get("mcp-session-id")
        if transport is not None:
            service.callers.called(transport, _client_of(ctx))
            return f"transport {transport}"
        raise UsageError(
            "this connection has no session of its own: requests of this protocol version stand alone. Name one: "
            f'"{SESSION}": "any name" in the request\'s _meta, or connect to …/mcp?session=any-name. Or start '
            "the server with --session NAME"
        )

    async def list_tools(ctx: Any, params: Any) -> Any:
        return {"resultType": "complete", "tools": service.listing, "ttlMs": 0, "cacheScope": "private"}

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
        meta = dict(ctx.meta or {})
        service.in_calls += 1
        try:
            return await service.call(identity(ctx, meta), meta, params.name, params.arguments or {})
        except UsageError as error:
            # A result, not an error of the protocol: those many clients swallow, and their model learns nothing.
            service.callers.refused(_client_of(ctx), str(error))
            return result_of(Outcome("infrastructure_error", None, "refused", str(error)))
        except CallwrightError as error:
            raise MCPError(_INTERNAL_ERROR, str(error)) from error
        finally:
            service.in_calls -= 1

    async def manage(ctx: Any, params: Any) -> Any:
        meta = dict(ctx.meta or {})
        try:
            return await service.manage(identity(ctx, meta), meta, params.model_dump(exclude={"meta"}))
        except UsageError as error:
            raise MCPError(_INVALID_PARAMS, str(error)) from error
        except CallwrightError as error:
            raise MCPError(_INTERNAL_ERROR, str(error)) from error

    class SessionParams(types.RequestParams):
        op: Literal["open", "close", "digest", "reset", "fork", "diff", "knowledge"]
        to: str | None = None

    server: Server[str] = Server(
        environment.name,
        version=callwright.__version__,
        instructions=service.instructions(),
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    if "opentelemetry.sdk" not in sys.modules:
        server.middleware.clear()  # spans that nobody collects would cost a tenth of every call
    server.extensions[SESSION] = {"version": 1, "helpers": service.helpers}
    server.add_request_handler(SESSION, SessionParams, manage)
    return server


def _client_of(ctx: Any) -> str:
    """The client's name and version, as it says them; empty if it does not."""
    about = getattr(ctx.session.client_params, "client_info", None)
    return f"{about.name} {about.version}".strip()[:_LONGEST_ID] if about is not None else ""


def initialization(server: Server[str]) -> Any:
    """What older protocol versions are told at the start; they know no extensions, only experiments."""
    return server.create_initialization_options(experimental_capabilities={SESSION: dict(server.extensions[SESSION])})
