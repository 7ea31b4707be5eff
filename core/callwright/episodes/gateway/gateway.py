"""The gateway: a server of chat completions in front of any engine, which records what agents were given.

async with cw.Gateway(sampler, parser="hermes").serve() as gateway:
    session = gateway.open(task, seed=3)
    await run_my_agent(base_url=session.url, tools_url=session.tools_url)
    trajectory = await session.finish()
reward = cw.reward("tier").score_attempt(trajectory.attempt)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import structlog

from callwright.episodes.codec import ChatCodec
from callwright.episodes.gateway.engines import Upstream, engine_of
from callwright.episodes.gateway.mcp_endpoint import has_mcp, mcp_manager, running
from callwright.episodes.gateway.session import WORTH_A_WARNING, GatewaySession
from callwright.episodes.logs.log import Log
from callwright.episodes.token_episode import EngineOutput
from callwright.errors import DataError, MissingExtra, UsageError
from callwright.language.native import NATIVE_FORM
from callwright.language.parser import Parser
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task

if TYPE_CHECKING:
    from callwright.episodes.gateway.engines import Asked
    from callwright.plugins import Registry

_log = structlog.get_logger("callwright.gateway")
#: Sessions that ended, whose names still get a clear answer.
_REMEMBERED: Final = 10_000
#: What holds where nobody says otherwise.
_LIMITS: Final = TurnLimits(assistant_turns=100)


class Gateway:
    """Sessions of agents by name, each with its world, its log and its branches of ids.

    ``engine`` is a sampler that keeps token ids (``local-model``, ``vllm``), an engine, or
    :class:`callwright.episodes.Upstream` for a server without ids, whose turns carry no loss. ``parser`` is the form in
    which the model writes calls. ``temperature`` is that of every answer, whatever a client asks. Of ``conditions`` the
    limits of tokens and of ``assistant_turns`` hold (100 without them), and sessions are opened under them. A session
    that nobody has used for ``idle`` seconds is finished by itself.

    Raises :class:`callwright.UsageError` for a sampler that keeps no ids.
    """

    def __init__(
        self,
        engine: Any,
        parser: Parser | str = NATIVE_FORM,
        *,
        temperature: float = 1.0,
        conditions: Conditions | None = None,
        model: str = "callwright",
        idle: float = 3600.0,
        registry: Registry | None = None,
    ) -> None:
        from callwright.plugins import default_registry

        self.registry = registry or default_registry()
        self.parser: Parser = self.registry.create("parser", parser) if isinstance(parser, str) else parser
        self.conditions = conditions or Conditions(limits=_LIMITS)
        self.temperature, self.model, self.idle = temperature, model, idle
        self.url = ""
        #: ``None`` where a server answers in words.
        self.codec: ChatCodec | None = None
        #: The same with the tools of a request in the template, for requests that have any.
        self.codec_with_tools: ChatCodec | None = None
        #: What answers requests of MCP, while it is connected; ``None`` without the package ``mcp``.
        self.mcp: Any = None
        self._given = engine_of(engine, temperature)
        self._engine: Any = None
        self._sessions: dict[str, GatewaySession] = {}
        self._gone: dict[str, None] = {}
        self._warned = False
        self._sampled = self._without = self._opened = 0

    # Sessions ----------------------------------------------------------------------------------------------------

    def open(
        self, task: Task, *, seed: int = 0, name: str = "", log: Log | None = None, conditions: Conditions | None = None
    ) -> GatewaySession:
        """A session of a task. ``seed`` draws its samples; ``log`` is one whose tools the agent has already.

        Raises :class:`callwright.UsageError` for a name that is taken or cannot stand in a URL.
        """
        self._opened += 1
        name = name or f"s{self._opened}"
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise UsageError(f"the session name {name!r:.60} cannot stand in a URL; take letters, digits, - and _")
        if name in self._sessions or name in self._gone:
            raise UsageError(f"there is a session {name!r} already; take another name")
        log = log or Log(task, conditions=conditions or self.conditions, registry=self.registry)
        made = self._sessions[name] = GatewaySession(self, name, task, seed, log)
        return made

    def session(self, name: str) -> GatewaySession | None:
        """The session of a name, if it goes on."""
        return self._sessions.get(name)

    def is_gone(self, name: str) -> bool:
        """Whether there was such a session."""
        return name in self._gone

    def left(self, session: GatewaySession) -> None:
        """A session is finished: it is forgotten but for its name."""
        self._sessions.pop(session.name, None)
        self._gone[session.name] = None
        while len(self._gone) > _REMEMBERED:
            self._gone.pop(next(iter(self._gone)))
        trajectory = session.finished
        assert trajectory is not None
        self._sampled += trajectory.sampled
        self._without += trajectory.without_loss
        if not self._warned and self._sampled and self._without / self._sampled > WORTH_A_WARNING:
            self._warned = True
            _log.warning(
                "more than 5% of the sampled tokens carry no loss",
                sampled=self._sampled,
                without_loss=self._without,
                session=session.name,
                findings=list(trajectory.findings[:5]),
            )

    # The engine --------------------------------------------------------------------------------------------------

    async def continue_one(self, asked: Asked) -> EngineOutput:
        """What the engine makes of a context. Raises :class:`callwright.InfrastructureFailure`."""
        made: EngineOutput = await self._engine.continue_one(asked, temperature=self.temperature)
        return made

    async def ask_server(self, messages: Sequence[Mapping[str, Any]], body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of the server behind. Raises :class:`callwright.InfrastructureFailure`."""
        answer: dict[str, Any] = await self._engine.chat(messages, **body)
        return answer

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Gateway]:
        """The engine connected, in the event loop that serves. Whoever mounts :attr:`app` enters this first."""
        async with AsyncExitStack() as stack:
            given = self._given
            opens = getattr(given, "connected", None)
            self._engine = await stack.enter_async_context(opens()) if callable(opens) else given
            codec = None if isinstance(given, Upstream) else self._engine.codec
            if codec is not None and not callable(getattr(codec, "conversation_ids", None)):
                raise UsageError(
                    "an agent sends any messages, so the gateway needs a model with a chat template (ChatCodec); this "
                    "one has a prompt of its corpus alone"
                )
            self.codec = codec
            self.codec_with_tools = _with_tools(codec)
            if has_mcp():
                self.mcp = await stack.enter_async_context(running(mcp_manager(self)))
            watch = asyncio.create_task(self._watch())
            try:
                yield self
            finally:
                watch.cancel()
                for session in list(self._sessions.values()):
                    await session.finish()

    async def _watch(self) -> None:
        """Finish what nobody has used for a long time."""
        while True:
            await asyncio.sleep(min(self.idle, 30.0))
            for session in list(self._sessions.values()):
                if time.monotonic() - session.last_used > self.idle:
                    await session.finish(masked=f"nobody used the session for {self.idle:g} seconds")

    # Serving -----------------------------------------------------------------------------------------------------

    @property
    def app(self) -> Any:
        """The gateway as an ASGI application, to be mounted in one of your own (inside :meth:`connected`)."""
        from callwright.episodes.gateway.asgi import application

        return application(self)

    @asynccontextmanager
    async def serve(self, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Gateway]:
        """Serve in the event loop that enters this; ``port`` 0 takes a free one. ``url`` says where.

        Raises :class:`callwright.errors.MissingExtra` without uvicorn, and :class:`callwright.UsageError` for a port
        that is taken.
        """
        try:
            import uvicorn
        except ModuleNotFoundError as error:
            raise MissingExtra("the gateway", "gateway", "uvicorn") from error
        import socket

        # With its protocol named asyncio sends without delay: 40 ms less for each answer.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            listening.close()
            raise UsageError(f"the gateway cannot listen on {host}:{port}: {error.strerror}") from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{listening.getsockname()[1]}"

        class Guest(uvicorn.Server):
            """A server that leaves the signals of the process to whoever runs it."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                """Nothing is captured."""
                yield

        config = uvicorn.Config(self.app, log_config=None, access_log=False, lifespan="off", ws="none")
        server = Guest(config)
        async with self.connected():
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                while not server.started and not serving.done():
                    await asyncio.sleep(0.005)
                yield self
            finally:
                server.should_exit = True
                await serving
                listening.close()


def _with_tools(codec: Any) -> ChatCodec | None:
    """The codec with tools in the template; ``None`` for one that has no template."""
    try:
        return codec.with_tools() if isinstance(codec, ChatCodec) else codec
    except DataError:
        return None
