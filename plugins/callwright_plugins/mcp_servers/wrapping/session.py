"""A session of a wrapped server: its calls, what is done again after a crash, and its digest.

A failure of the machinery moves the session to a new place, where its calls are done again and compared; what cannot be
saved that way is masked, never scored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from attrs import define, evolve, field

from callwright.digests import digest_of
from callwright.environments.calling import schema_error
from callwright.environments.goals import Comparison, Goal, check_paths
from callwright.environments.knowledge.asking import checked
from callwright.environments.protocol import Outcome, Session
from callwright.errors import InfrastructureFailure, UnknownName, UsageError
from callwright.tools.validation import check_arguments
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_servers.connecting.connection import Refused, Reply, ServerFailure
from callwright_plugins.mcp_servers.connecting.contents import contents, difference
from callwright_plugins.mcp_servers.connecting.foreign import as_wanted, check_result, read_refusal, read_reply
from callwright_plugins.mcp_servers.connecting.portal import PORTAL
from callwright_plugins.mcp_servers.wire import DIGEST, SCENARIO, SEED, SESSION, answer_of
from callwright_plugins.mcp_servers.wrapping.deciding import DigestSource
from callwright_plugins.mcp_servers.wrapping.pool import Seat, with_code

if TYPE_CHECKING:
    from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

#: How many calls of a session can be done again in a new process after a crash.
_REPLAYED: Final = 1000
#: Failures with which trying again would change nothing, or would hide something.
_FINAL: Final = frozenset({"diverged", "session", "protocol", "too_large", "changed"})
#: Those after which the server can go on.
_SOUND: Final = frozenset({"protocol", "too_large"})


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
    #: Whether a call was made that may have changed something and, done again, may change it once more.
    _wrote: bool = False
    _history: str = field(default="", repr=False)
    _state: str | None = field(default=None, repr=False)
    #: Why its calls are masked from now on; empty while it lives.
    _failure: str = ""
    _closed: bool = False
    _turn: asyncio.Lock = field(factory=asyncio.Lock, repr=False)

    def __reduce__(self) -> Any:
        raise UsageError(
            f"a session of {self.environment.name!r} is a conversation with a server that runs here, so it cannot be "
            "copied or sent to another process; send the environment, which is pickled as what it describes, and open "
            "a session there"
        )

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call.

        ``unknown_tool`` and ``schema_error`` are found by the listing before the server sees the call. The codes of
        ``infrastructure_error`` are ``crashed``, ``timeout``, ``protocol`` (an answer that cannot be read),
        ``too_large``, ``changed`` (other tools than before), ``diverged`` (a replay went otherwise) and ``session``;
        after one the session is over.
        """
        return PORTAL.run(self.acall(tool, arguments))

    def digest(self) -> str:
        """A hash of what ``digest_source`` names. Raises :class:`callwright.InfrastructureFailure` if it is lost."""
        if self.digest_source == "workspace" and not self._failure and self._seat is not None:
            return self._workspace_digest(self._seat)  # in the caller's thread: it reads files
        return PORTAL.run(self.adigest())

    @property
    def goal_state(self) -> Callable[[], Any] | None:
        """What tells the end state, where that is more than the digest: what the workspace holds otherwise than its
        template, or what the calls of the option ``digest`` answer. ``None`` where neither is there.
        """
        match self.digest_source:
            case "workspace":
                return self._changed
            case "discovery":
                return lambda: PORTAL.run(self.aanswers())
        return None

    @property
    def check_goal(self) -> Callable[[Mapping[str, Any]], Comparison] | None:
        """What holds a goal (:class:`callwright.environments.goals.Goal` as JSON) against :attr:`goal_state`; ``None``
        where there is none.
        """
        tell = self.goal_state
        # Of a folder that is as its template nothing is told; what named calls answered at first nobody has asked.
        first: dict[str, Any] | None = {"files": {}} if self.digest_source == "workspace" else None
        return None if tell is None else lambda goal: check_paths(Goal.from_json(goal), first, tell())

    def _changed(self) -> dict[str, Any]:
        if self._failure or self._seat is None or self._seat.workspace is None:
            raise InfrastructureFailure(self._failure or "the session has no place")
        self._check_open()
        workspace, ignore = self._seat.workspace, self.environment.options.digest_ignore
        then = contents(workspace.path, ignore, workspace.alias)
        return {"files": difference(self.environment.begins_with(self.scenario), then)}

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Back to the start, of another scenario or seed if given."""
        PORTAL.run(self.areset(scenario, seed))

    def fork(self) -> MCPSession:
        """Another session in the same state: by the server where it can, else by doing all calls again."""
        return PORTAL.run(self.afork())

    def helper(self, name: str, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Run a hidden tool: a hidden one of the listing, or a helper of an environment served with ``--helpers``."""
        return PORTAL.run(self.ahelper(name, dict(arguments or {})))

    def knowledge(self, entity: str = "me") -> dict[str, Any]:
        """What somebody knows: as the file of the option ``knowledge`` says, else as an environment that is served.

        Raises :class:`callwright.UsageError` for an environment that is served without ``--helpers``: it tells nobody.
        """
        files = self.environment.known
        if files or not self.environment.served:
            known = files.get(self.scenario, files.get("", {}))
            found: dict[str, Any] = copy_json(known.get(entity, {}))
            return found
        return PORTAL.run(self.aknowledge(entity))

    def close(self) -> None:
        """Give the place back. Closing twice is allowed."""
        if not self._closed:
            PORTAL.run(self.aclose())

    # In the portal's loop

    async def acall(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """:meth:`call`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._failure:
                return Outcome("infrastructure_error", None, "session", self._failure)
            known = self.environment.listing.get(tool)
            if not self.environment.served:
                if known is None or known.spec.hidden:
                    return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r}")
                if check_arguments(known.spec, arguments):
                    return schema_error(known.spec, arguments)
            elif known is not None and known.spec.hidden:
                return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
            original = known.original if known is not None else tool
            harmless = self._harmless(original)
            outcome = await self._retried(self._asking(original, arguments), harmless)
            self._wrote = self._wrote or not harmless
            if outcome.kind != "infrastructure_error":
                self._remember(tool, original, arguments, outcome)
            return outcome

    def _harmless(self, original: str) -> bool:
        """Whether the server says of a tool that calling it twice comes to the same as calling it once."""
        spec = self.environment.by_original.get(original)
        return spec is not None and (spec.read_only or spec.idempotent)

    def _doubtful(self, failure: ServerFailure, harmless: bool) -> str:
        """Why the session cannot be moved and the call made again; empty if it can.

        In a copy that begins anew everything may be done again. Elsewhere what was done has been done: only calls that
        never reached the server, and tools that say so, are called once more.
        """
        backend = self.environment.backend
        if backend is None or backend.fresh:
            return ""
        if failure.sent and not harmless:
            return (
                "It was not done again: it may have happened, the server is not a copy that begins anew, and the tool "
                "declares neither readOnlyHint nor idempotentHint"
            )
        if self._wrote:
            return "The session cannot be moved: its earlier calls changed something, and would be done twice"
        return ""

    async def _retried(self, work: Callable[[Seat], Awaitable[Outcome]], harmless: bool) -> Outcome:
        """Do this at the session's place; if that fails, again at a new one to which the session was moved.

        ``harmless`` says that doing it twice comes to the same as doing it once.
        """
        environment = self.environment
        doubt = ""
        for attempt in range(environment.retries + 1):
            try:
                if self._seat is None:
                    await self.sit_down()
                    await self._replay()
                assert self._seat is not None
                outcome = await work(self._seat)
                if outcome.kind == "infrastructure_error":  # the server's own word for it
                    self._failure = outcome.message or outcome.code
                return outcome
            except InfrastructureFailure as error:
                failure = with_code(error)
                environment.counts.last_error = str(failure)
                environment.counts.crashed += failure.code == "crashed"
                environment.counts.timed_out += failure.code == "timeout"
                doubt = self._doubtful(failure, harmless)
                await self._stand_up(broken=failure.code not in _SOUND)
                if doubt or self._calls is None or failure.code in _FINAL or attempt == environment.retries:
                    break
                environment.counts.retried += 1
        environment.counts.masked += 1
        self._failure = f"{failure}. {doubt}" if doubt and failure.code not in _FINAL else str(failure)
        return Outcome("infrastructure_error", None, failure.code, self._failure)

    def _asking(self, original: str, arguments: dict[str, Any]) -> Callable[[Seat], Awaitable[Outcome]]:
        return lambda seat: self._ask(seat, original, arguments)

    async def _ask(self, seat: Seat, original: str, arguments: dict[str, Any]) -> Outcome:
        workspace = seat.workspace
        sent = workspace.inward(arguments) if workspace is not None else arguments
        meta = seat.meta
        if self.environment.served:
            meta = {**meta, SCENARIO: self.scenario, SEED: self.seed, DIGEST: True}
        await self.environment.check_listing(seat.connection)
        try:
            reply = await seat.connection.call(original, sent, meta or None, self.environment.time_limit)
        except Refused as refusal:
            outcome = as_wanted(read_refusal(refusal, original), self.environment.options.undeclared)
        else:
            outcome = self._read(reply, original)
        if workspace is not None:
            message = workspace.outward(outcome.message)
            outcome = evolve(outcome, value=workspace.outward(outcome.value), message=message)
        return outcome

    def _read(self, reply: Reply, original: str) -> Outcome:
        if self.environment.served:
            result = {"_meta": reply.meta, "isError": reply.is_error, "structuredContent": reply.structured}
            answer = answer_of(result)
            if answer is not None:
                self._state = answer.digest
                return answer.outcome
        spec = self.environment.by_original.get(original)
        outcome = read_reply(reply, read_only=spec is not None and spec.read_only)
        if spec is not None and not spec.hidden:
            outcome = as_wanted(check_result(outcome, reply, spec), self.environment.options.undeclared)
        errors = self.environment.failures
        if errors is not None and isinstance(outcome.value, str) and errors.search(outcome.value):
            return Outcome("execution_error", None, "tool_error", outcome.value)
        return outcome

    def _remember(self, tool: str, original: str, arguments: dict[str, Any], outcome: Outcome) -> None:
        known = self.environment.listing.get(tool)
        if self._calls is not None:
            self._calls.append((original, copy_json(arguments), outcome))
            if len(self._calls) > _REPLAYED:
                self._calls = None
        if (outcome.executed or outcome.code == "bad_result") and (known is None or not known.spec.read_only):
            self._history = digest_of([self._history, tool, copy_json(arguments), outcome.kind, outcome.value])

    async def sit_down(self) -> None:
        """Take a place at a server, and open the session there if the server is an environment of Callwright."""
        backend = self.environment.backend
        if backend is None:
            raise InfrastructureFailure(f"{self.environment.target.label}: it was stopped")
        for attempt in range(self.environment.retries + 1):
            try:
                self._seat = await backend.acquire(self.scenario)
                if self.environment.served:
                    await self._manage("open")
                return
            except ServerFailure:
                await self._stand_up(broken=True)
                if attempt == self.environment.retries:
                    raise

    async def _stand_up(self, *, broken: bool = False) -> None:
        seat, self._seat = self._seat, None
        backend = self.environment.backend
        if seat is not None and backend is not None:
            await backend.release(seat, broken=broken)

    async def _replay(self) -> None:
        """Do all calls again in a new place; they must go as they went."""
        assert self._seat is not None
        for original, arguments, before in self._calls or ():
            after = await self._ask(self._seat, original, arguments)
            if (after.kind, after.code, after.value) != (before.kind, before.code, before.value):
                raise ServerFailure(
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
            if self._failure or self._seat is None:
                raise InfrastructureFailure(self._failure or "the session has no place")
            match self.digest_source:
                case "server":
                    if self._state is None:
                        await self._manage("digest")
                    assert self._state is not None
                    return self._state
                case "workspace":
                    return await asyncio.to_thread(self._workspace_digest, self._seat)
                case "discovery":
                    return digest_of(await self._discover())
            return digest_of([self.scenario, self.seed, self._history])

    def _workspace_digest(self, seat: Seat) -> str:
        self._check_open()
        assert seat.workspace is not None
        return seat.workspace.digest(self.environment.options.digest_ignore)

    async def aanswers(self) -> dict[str, Any]:
        """:attr:`goal_state` by the calls of the option ``digest``, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._failure or self._seat is None:
                raise InfrastructureFailure(self._failure or "the session has no place")
            return {"answers": await self._discover()}

    async def _discover(self) -> list[Any]:
        found: list[Any] = []
        for call in self.environment.options.digest:
            assert isinstance(call, Mapping)
            name, arguments = str(call.get("tool")), dict(call.get("arguments") or {})
            tool = self.environment.listing.get(name)
            if tool is None:
                raise UnknownName("tool (in the option digest)", name, self.environment.listing)
            outcome = await self._retried(self._asking(tool.original, arguments), self._harmless(tool.original))
            if outcome.kind == "infrastructure_error":
                raise InfrastructureFailure(outcome.message)
            found.append([name, outcome.kind, outcome.code, outcome.value])
        return found

    async def aknowledge(self, entity: str) -> dict[str, Any]:
        """:meth:`knowledge` of an environment that is served, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._failure or self._seat is None:
                raise InfrastructureFailure(self._failure or "the session has no place")
            found = await self._manage("knowledge", to=entity)
            return checked(found.get("knowledge"), entity, f"the server {self.environment.target.label}")

    async def areset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """:meth:`reset`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if scenario is not None:
                self.environment.check_scenario(scenario)
            changed = scenario not in (None, self.scenario) or seed not in (None, self.seed)
            self.scenario = self.scenario if scenario is None else scenario
            self.seed = self.seed if seed is None else seed
            self._calls, self._wrote, self._history, self._state = [], False, "", None
            if self.environment.served and self._seat is not None and not self._failure and not changed:
                await self._manage("reset")
                return
            await self._stand_up(broken=bool(self._failure))
            self._failure = ""
            await self.sit_down()

    async def afork(self) -> MCPSession:
        """:meth:`fork`, in the portal's loop."""
        async with self._turn:
            self._check_open()
            if self._failure:
                raise InfrastructureFailure(self._failure)
            other = MCPSession(self.environment, self.scenario, self.seed, self.digest_source)
            other._calls, other._history = list(self._calls) if self._calls is not None else None, self._history
            other._wrote = self._wrote
            if self.environment.served and self._seat is not None and self._seat.meta:
                id = uuid4().hex
                with suppress(UsageError):  # its sessions cannot be forked
                    state = (await self._manage("fork", to=id)).get("digest")
                    other._seat = Seat(self._seat.connection, self.scenario, {**self._seat.meta, SESSION: id})
                    other._state = state if isinstance(state, str) else None
                    return other
            backend = self.environment.backend
            if self._wrote and not (backend is not None and backend.fresh):
                raise InfrastructureFailure(
                    "the session's calls changed something where it cannot be done again in a copy that begins anew"
                )
            if self._calls is None:
                raise InfrastructureFailure(
                    f"the session's calls cannot be done again: helpers were run, or there are more than {_REPLAYED}"
                )
            await other.sit_down()
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
            if self._failure:
                return Outcome("infrastructure_error", None, "session", self._failure)
            tool = self.environment.listing.get(name)
            declared = self.environment.description.declares or {}
            if (tool is None or not tool.spec.hidden) and not declared.get("helpers"):
                raise UsageError(
                    f"there is no hidden tool {name!r}; the helpers of a served environment need 'env serve --helpers'"
                )
            original = tool.original if tool is not None else name
            self._calls = None  # what helpers did is not done again after a crash
            self._wrote = True
            return await self._retried(self._asking(original, arguments), harmless=False)

    async def aclose(self) -> None:
        """:meth:`close`, in the portal's loop."""
        if not self._closed:
            self._closed = True
            await self._stand_up(broken=bool(self._failure))

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
