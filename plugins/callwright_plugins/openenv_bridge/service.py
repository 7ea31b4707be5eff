"""An environment of ours behind OpenEnv's messages: sessions, and what they answer. No network is in here."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from callwright.capability import has
from callwright.environments.capabilities import blocks
from callwright.environments.hazards.policy import Hazards
from callwright.environments.living.opening import prepare
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import Briefs, Environment, Outcome, Session
from callwright.environments.sessions import call_session, open_session, undeclared_failure
from callwright.environments.telling import tell
from callwright.errors import CallwrightError, ComponentError, InfrastructureFailure, UsageError
from callwright.language.program import Call
from callwright_plugins.openenv_bridge.wire import (
    BAD_ACTION,
    FULL,
    STEP_RAISED,
    TOOLS,
    outcome_to_wire,
    said_of_tool,
    tool_to_wire,
)

#: Error codes of JSON-RPC.
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, SERVER_ERROR = -32700, -32600, -32601, -32602, -32000
_LONGEST_ID: Final = 255
_ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    "list_tools": frozenset({"type", "metadata"}),
    "call_tool": frozenset({"type", "metadata", "tool_name", "arguments"}),
}


class Refusal(Exception):
    """A message that is answered with an ``error`` of this code (``WSErrorCode``)."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        self.data = {"message": message, "code": code, **more}
        super().__init__(message)


class Service:
    """An environment and its sessions.

    ``scenario`` and ``seed`` are those of episodes whose reset names none. At most ``capacity`` sessions are open: one
    more is refused, as OpenEnv's own server does, and never takes another's place. ``idle`` is after how many seconds
    without a message a session is given up that no connection holds; ``None``: never. ``clock`` lets time move in
    every session, ``hazards`` are what its calls meet.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        scenario: str = "",
        seed: int = 0,
        capacity: int = 4096,
        idle: float | None = 1800.0,
        clock: ClockPolicy | None = None,
        hazards: Hazards | None = None,
    ) -> None:
        self.environment, self.default = environment, (scenario, seed)
        self.capacity, self.idle = capacity, idle
        self.clock, self.hazards = clock, hazards
        offered = [spec for spec in environment.tools.values() if not spec.hidden]
        self.listing = [tool_to_wire(spec) for spec in offered]
        self.said = {spec.name: said_of_tool(spec) for spec in offered}
        #: Whether a message may take long: then it is answered in a thread.
        self.slow = not environment.pure or blocks(environment)
        self._seats: dict[str, Seat] = {}
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._seats)

    def take(self) -> Seat:
        """A place for a session. Raises :class:`Refusal` where all are taken."""
        with self._guard:
            gone = self._given_up()
            active = len(self._seats)
            if active < self.capacity:
                seat = Seat(self)
                self._seats[seat.id] = seat
        for one in gone:
            one.end()
        if active >= self.capacity:
            raise Refusal(
                FULL,
                f"Server at capacity: {active}/{self.capacity} sessions active; start it with more --sessions",
                active_sessions=active,
                max_sessions=self.capacity,
            )
        return seat

    def _given_up(self) -> list[Seat]:
        if self.idle is None:
            return []
        limit = time.monotonic() - self.idle
        gone = [seat for seat in self._seats.values() if not seat.held and seat.used < limit]
        for seat in gone:
            del self._seats[seat.id]
        return gone

    def seat(self, id: object) -> Seat | None:
        """The session of this id, if there is one."""
        return self._seats.get(id) if isinstance(id, str) else None

    def leave(self, seat: Seat) -> None:
        """Give a place back."""
        with self._guard:
            self._seats.pop(seat.id, None)
        seat.end()

    def close(self) -> None:
        """Give all back."""
        for seat in list(self._seats.values()):
            self.leave(seat)


class Seat:
    """A session: what OpenEnv's server calls an environment. An episode begins at its reset, or at the first step."""

    def __init__(self, service: Service) -> None:
        self.id = str(uuid4())
        self.used = time.monotonic()
        #: Whether a connection is bound to it.
        self.held = False
        self._service = service
        self._session: Session | None = None
        self._world = service.default
        self._episode, self._steps = str(uuid4()), 0
        self._turn = threading.Lock()

    # Messages

    def answer(self, message: Any) -> dict[str, Any]:
        """What a message of the WebSocket is answered with. ``close`` is for the connection."""
        self.used = time.monotonic()
        try:
            if not isinstance(message, Mapping):
                raise Refusal(BAD_ACTION, "a message is an object with a type")
            kind, data = message.get("type", ""), message.get("data", {})
            if kind in ("reset", "step", "mcp") and not isinstance(data, Mapping):
                raise Refusal(BAD_ACTION, "Invalid message: data must be an object")
            match kind:
                case "reset":
                    return {"type": "observation", "data": self.reset(data)}
                case "step":
                    return {"type": "observation", "data": self.step(data)}
                case "state":
                    return {"type": "state", "data": self.state()}
                case "mcp":
                    return {"type": "mcp", "data": self.rpc(data)}
            raise Refusal("UNKNOWN_TYPE", f"Unknown message type: {kind}")
        except Refusal as refusal:
            return {"type": "error", "data": refusal.data}
        except CallwrightError as error:
            return {"type": "error", "data": {"message": str(error), "code": STEP_RAISED}}

    def reset(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Begin an episode of ``seed`` and ``scenario``; what the observation holds. Raises :class:`Refusal`."""
        scenario, seed = self._service.default
        seed = _of_type(data, "seed", int, seed)
        scenario = _of_type(data, "scenario", str, scenario)
        episode = _of_type(data, "episode_id", str, "") or str(uuid4())
        if len(episode) > _LONGEST_ID:
            raise Refusal(BAD_ACTION, f"episode_id has more than {_LONGEST_ID} characters")
        with self._turn:
            self._begin(scenario, seed, episode)
            told = self._briefing()
        observation: dict[str, Any] = {"metadata": {}}
        if told:
            observation["briefing"] = told
        return {"observation": observation, "reward": None, "done": False}

    def step(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Act: ``list_tools`` or ``call_tool``. Raises :class:`Refusal` for another action."""
        kind = action.get("type", "call_tool" if "tool_name" in action else None)
        if kind not in _ACTIONS:
            raise Refusal(
                BAD_ACTION, 'Invalid message: the action is {"type": "list_tools"}, or "call_tool" with a tool_name'
            )
        for name in action:
            if name not in _ACTIONS[kind]:
                raise Refusal(BAD_ACTION, f"Invalid message: {kind} has no field {name!r:.80}")
        if kind == "list_tools":
            listing = {"tools": self._service.listing, "metadata": {TOOLS: self._service.said}}
            return {"observation": listing, "reward": None, "done": False}
        tool, arguments = action.get("tool_name"), action.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, Mapping):
            raise Refusal(BAD_ACTION, "Invalid message: tool_name must be a string and arguments an object")
        return outcome_to_wire(tool, self.call(tool, dict(arguments)))

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """One call, in the episode that is under way. Whatever is wrong with it is the outcome."""
        with self._turn:
            try:
                session = self._begun()
            except InfrastructureFailure as error:
                return Outcome("infrastructure_error", None, "session", str(error))
            self._steps += 1
            spec = self._service.environment.tools.get(tool)
            if spec is not None and spec.hidden:
                return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
            try:
                outcome = call_session(session, Call(0, tool, arguments), arguments)
                json.dumps(outcome.value, allow_nan=False)
            except ComponentError as error:  # a bug of the tool: whoever asked is told, and the server goes on
                return undeclared_failure(tool, error.__cause__ or error)
            except (TypeError, ValueError, RecursionError) as error:
                broken = f"the result of {tool} is not JSON: {error}"
                return Outcome("execution_error", None, "not_json", broken)
            return outcome

    def state(self) -> dict[str, Any]:
        """The episode and its number of steps, its world, and a digest of all of it."""
        with self._turn:
            digest = self._begun().digest()
            scenario, seed = self._world
            return {
                "episode_id": self._episode,
                "step_count": self._steps,
                "environment": self._service.environment.name,
                "scenario": scenario,
                "seed": seed,
                "digest": digest,
            }

    def rpc(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request of MCP in this session: ``tools/list`` or ``tools/call``."""
        self.used = time.monotonic()
        id, params = request.get("id"), request.get("params", {})
        if not isinstance(params, Mapping):
            return rpc_error(INVALID_PARAMS, "Params must be an object", id)
        match request.get("method"):
            case "tools/list":
                tools = [
                    {"name": one["name"], "description": one["description"], "inputSchema": one["input_schema"]}
                    for one in self._service.listing
                ]
                return rpc_result({"tools": tools}, id)
            case "tools/call":
                tool, arguments = params.get("name"), params.get("arguments", {})
                if not isinstance(tool, str) or not isinstance(arguments, Mapping):
                    return rpc_error(INVALID_PARAMS, "Invalid params - 'name' is required", id)
                return rpc_result(_as_mcp(self.call(tool, dict(arguments))), id)
            case "openenv/session/create":
                return rpc_result({"session_id": self.id}, id)
        return rpc_error(NO_METHOD, f"Method not found: {request.get('method')!s:.80}", id)

    def end(self) -> None:
        """Close the session, if there is one."""
        with self._turn:
            self._leave()

    # With the turn

    def _begun(self) -> Session:
        if self._session is None:
            self._begin(*self._service.default, self._episode)
        assert self._session is not None
        return self._session

    def _begin(self, scenario: str, seed: int, episode: str) -> None:
        service = self._service
        session = open_session(service.environment, scenario, seed)
        prepare(session, service.clock, service.hazards, service.environment.name)
        self._leave()  # only now: a reset that is refused leaves the episode as it was
        self._session, self._world, self._episode, self._steps = session, (scenario, seed), episode, 0

    def _briefing(self) -> str:
        environment = self._service.environment
        if not has(environment, Briefs) or not environment.briefs:
            return ""
        assert self._session is not None
        return environment.briefing(self._session)

    def _leave(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(InfrastructureFailure):  # it was lost already
                session.close()


def _of_type(data: Mapping[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    value = data.get(name)
    if value is None:
        return default
    if type(value) is not kind:
        raise Refusal(BAD_ACTION, f"Invalid message: {name} must be of the type {kind.__name__}, not {value!r:.80}")
    return value


# JSON-RPC -------------------------------------------------------------------------------------------------------------


def rpc_result(result: Any, id: Any) -> dict[str, Any]:
    """A response."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def rpc_error(code: int, message: str, id: Any = None, data: Any = None) -> dict[str, Any]:
    """A response that is an error."""
    error: dict[str, Any] = {"code": code, "message": message, "data": data}
    return {"jsonrpc": "2.0", "id": id, "error": error}


def _as_mcp(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the result of ``tools/call``; ``data`` is the value, which OpenEnv's own client looks for."""
    failed = outcome.kind == "unknown" or not outcome.executed
    result: dict[str, Any] = {"content": [{"type": "text", "text": tell(outcome)}], "isError": failed}
    if not failed:
        result["data"] = outcome.value
        result["structuredContent"] = outcome.value if isinstance(outcome.value, dict) else {"result": outcome.value}
    return result


def described(environment: Environment) -> dict[str, Any]:
    """What ``GET /metadata`` says."""
    import callwright

    tools = sum(not spec.hidden for spec in environment.tools.values())
    return {
        "name": environment.name,
        "description": f"The Callwright environment {environment.name!r}: {tools} tools, called by call_tool.",
        "readme_content": None,
        "version": callwright.__version__,
        "author": None,
        "documentation_url": None,
    }


def checked(service: Service) -> None:
    """Open and close a session, so that a wrong scenario is said when the server starts. Raises what opening raises."""
    seat = service.take()
    try:
        seat.reset({})
    except Refusal as refusal:  # pragma: no cover - the default is of the right types
        raise UsageError(str(refusal)) from refusal
    finally:
        service.leave(seat)
