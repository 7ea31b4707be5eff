"""Anybody's OpenEnv environment as an environment of ours."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any, Final, Literal

from attrs import evolve

from callwright.digests import digest_of
from callwright.environments.calling import schema_error
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure, UnknownName, UsageError
from callwright.options import read_options
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import check_arguments
from callwright_plugins.openenv_bridge.channels import Address, Broken, Channel, StepError, seated
from callwright_plugins.openenv_bridge.local import LocalChannel, LocalKind
from callwright_plugins.openenv_bridge.options import OpenEnvOptions
from callwright_plugins.openenv_bridge.reading import (
    about_environment,
    action_tool,
    called,
    calls_tools,
    greeting,
    listed_tools,
    refused_action,
    stepped,
)
from callwright_plugins.openenv_bridge.wire import BAD_ACTION, Stepped

#: Members of OpenEnv's base state: a random id, and a number that says nothing of what was done.
_BARE: Final = frozenset({"episode_id", "step_count"})


class OpenEnvEnvironment(Environment):
    """What an OpenEnv environment offers, wherever it runs; :func:`open_env` makes the right one of two kinds.

    An environment with MCP tools has these, listed by ``list_tools`` after a reset, and a call is its ``call_tool``.
    Any other one has a single tool, ``tool``, whose parameters are the fields of its action.
    """

    def __init__(self, options: OpenEnvOptions) -> None:
        self.options = options
        self._forget()

    def _forget(self) -> None:
        self._tools: dict[str, ToolSpec] | None = None
        #: By the name that models are offered, that of the server; empty where there is only the action.
        self.originals: dict[str, str] = {}
        #: Whether it is an environment of Callwright, which judges calls itself.
        self.served = False
        self._greets = False
        self._starting = Lock()

    def __reduce__(self) -> Any:
        return type(self), (self.options,)

    def connect(self, given: Mapping[str, Any]) -> tuple[Channel, dict[str, Any]]:
        """A fresh session that was reset, and its first observation."""
        raise NotImplementedError

    def _schema_and_about(self) -> tuple[dict[str, Any], str]:
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def pure(self) -> bool:
        """True: what goes in and out is a copy."""
        return True

    @property
    def blocking(self) -> bool:
        """True: calls wait for somebody else's code."""
        return True

    @property
    def disposable(self) -> bool:
        """As the option says: OpenEnv's sessions are worlds of their own that a reset begins anew."""
        return self.options.disposable

    @property
    def scenarios(self) -> Collection[str]:
        """The names of the option ``scenarios``; those of a served environment are known to it alone."""
        return tuple(self.options.scenarios)

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools by name. The environment is asked once, in a session of its own.

        Raises :class:`callwright.InfrastructureFailure` where it cannot be reached, and
        :class:`callwright.errors.DataError` for a listing or a schema that cannot be read.
        """
        if self._tools is None:
            with self._starting:
                if self._tools is None:
                    self._tools = self._read_tools()
        return self._tools

    def _read_tools(self) -> dict[str, ToolSpec]:
        schema, about = self._schema_and_about()
        channel, first = self.connect(self.reset_of(next(iter(self.options.scenarios), ""), 0))
        try:
            self._greets = bool(greeting(first["observation"]))
            if calls_tools(schema):
                listing = channel.step({"type": "list_tools"})["observation"]
                tools, self.originals, self.served = listed_tools(listing)
            else:
                tools = {self.options.tool: action_tool(schema, self.options.tool, about)}
        except StepError as error:
            raise InfrastructureFailure(f"{self.name}: the environment does not list its tools: {error}") from error
        finally:
            channel.close()
        for hidden in self.options.hide:
            if hidden not in tools:
                raise UnknownName("tool to hide", hidden, tools)
            tools[hidden] = evolve(tools[hidden], hidden=True)
        return tools

    @property
    def briefs(self) -> bool:
        """Whether it tells something at its reset; known from the first one."""
        _ = self.tools
        return self._greets

    def briefing(self, session: Session) -> str:
        """What it told at the reset of a session: a text, or JSON where it told more than one thing."""
        return session.greeting if isinstance(session, OpenEnvSession) else ""

    def reset_of(self, scenario: str, seed: int) -> dict[str, Any]:
        """What a reset is given. Raises :class:`callwright.errors.UnknownName` for a scenario that nobody named."""
        given: dict[str, Any] = dict(self.options.reset)
        if self.options.seeded:
            given["seed"] = seed
        if scenario in self.options.scenarios:
            given |= self.options.scenarios[scenario]
        elif scenario and self.served:
            given["scenario"] = scenario
        elif scenario:
            raise UnknownName("scenario (the option scenarios names them)", scenario, self.options.scenarios)
        elif self.options.scenarios:
            given |= next(iter(self.options.scenarios.values()))
        return given

    def open(self, scenario: str = "", seed: int = 0) -> OpenEnvSession:
        """A fresh session, reset with the scenario's keywords and the seed. Waits for a place at a full server."""
        _ = self.tools
        channel, first = self.connect(self.reset_of(scenario, seed))
        return OpenEnvSession(self, scenario, seed, channel, first)


class RemoteEnvironment(OpenEnvEnvironment):
    """An OpenEnv environment behind a URL."""

    #: Its sessions live in the server: isolation leaves them where they are.
    out_of_process: Literal[True] = True

    def __init__(self, options: OpenEnvOptions) -> None:
        super().__init__(options)
        assert options.url is not None
        self._address = Address(options.url, options.headers)

    def connect(self, given: Mapping[str, Any]) -> tuple[Channel, dict[str, Any]]:
        """A fresh session at the server. Waits for a place where it is full."""
        options = self.options
        return seated(
            self._address,
            given,
            wait_limit=options.wait_limit,
            time_limit=options.time_limit,
            start_limit=options.start_limit,
            reply_limit=options.reply_limit,
        )

    def _schema_and_about(self) -> tuple[dict[str, Any], str]:
        found = self._address.get("/schema", self.options.start_limit)
        action = found.get("action")
        if not isinstance(action, dict):
            raise Broken("protocol", f"{self._address.label} tells no schema of its actions")
        if calls_tools(action):
            return action, ""
        return action, about_environment(self._address.get("/metadata", self.options.start_limit))


class LocalEnvironment(OpenEnvEnvironment):
    """An OpenEnv environment whose class runs here."""

    #: It is somebody else's code, whichever class holds it.
    foreign = True

    def __init__(self, options: OpenEnvOptions) -> None:
        super().__init__(options)
        assert options.environment is not None
        self._kind = LocalKind(options.environment, options.action)

    def connect(self, given: Mapping[str, Any]) -> tuple[Channel, dict[str, Any]]:
        """A fresh instance. Raises :class:`callwright.UsageError` for a reset that it refuses."""
        channel = LocalChannel(self._kind)
        try:
            return channel, channel.reset(given)
        except StepError as error:
            channel.close()
            raise UsageError(f"{self._kind.name} refuses reset({given!r:.200}): {error.message}") from error

    def _schema_and_about(self) -> tuple[dict[str, Any], str]:
        schema = self._kind.schema()
        return schema, "" if calls_tools(schema) else about_environment(self._kind.metadata())


class OpenEnvSession(Session):
    """A session: an episode of the environment, for one thread at a time; a second one waits.

    ``rewards`` are what it gave for each step that reached it, in their order, and ``done`` whether it says that the
    episode is over: later calls are an ``execution_error`` of the code ``episode_over`` and never reach it.
    """

    def __init__(
        self, environment: OpenEnvEnvironment, scenario: str, seed: int, channel: Channel, first: Mapping[str, Any]
    ) -> None:
        self.environment, self.scenario, self.seed = environment, scenario, seed
        self.greeting = greeting(first["observation"])
        self.rewards: list[float | None] = []
        self.done = bool(first.get("done"))
        self._channel = channel
        self._history = digest_of([scenario, seed])
        #: Why its calls are masked from now on; empty while it lives.
        self._failure = ""
        self._closed = False
        self._turn = Lock()

    def __reduce__(self) -> Any:
        raise UsageError(
            f"a session of {self.environment.name!r} is a conversation with an environment that runs elsewhere, so it "
            "cannot be copied or sent to another process; send the environment and open a session there"
        )

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call.

        The codes of ``infrastructure_error`` are ``crashed``, ``timeout``, ``protocol``, ``transport_error`` and, from
        then on, ``session``.
        """
        with self._turn:
            if self._closed:
                raise UsageError("the session is closed")
            if self._failure:
                return Outcome("infrastructure_error", None, "session", self._failure)
            spec = self.environment.tools.get(tool)
            if not self.environment.served or (spec is not None and spec.hidden):
                if spec is None or spec.hidden:
                    return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
                if check_arguments(spec, arguments):
                    return schema_error(spec, arguments)
            if self.done:
                return Outcome("execution_error", None, "episode_over", "the episode is over: nothing more can be done")
            outcome = self._asked(tool, arguments)
            if isinstance(outcome, Stepped):
                self.done = outcome.done
            self.rewards.append(outcome.reward if isinstance(outcome, Stepped) else None)
            if outcome.kind == "infrastructure_error":
                self._failure = outcome.message or outcome.code
            elif outcome.executed:
                self._history = digest_of([self._history, tool, arguments, outcome.value])
            return outcome

    def _asked(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        originals = self.environment.originals
        try:
            if not originals:
                return stepped(self._channel.step(arguments))
            original = originals.get(tool, tool)
            return called(self._channel.step({"type": "call_tool", "tool_name": original, "arguments": arguments}))
        except StepError as error:
            return refused_action(error.code, error.message, tool, error.code == BAD_ACTION)
        except Broken as error:
            return Outcome("infrastructure_error", None, error.code, str(error))

    def digest(self) -> str:
        """A hash of what the option ``digest`` names; ``auto`` takes the state where it tells more than a step count.

        ``history`` is of the calls that executed and what they came to: equal ones mean that the same was done, not
        that nothing else happened. Raises :class:`callwright.InfrastructureFailure` if the session is lost.
        """
        with self._turn:
            if self._failure:
                raise InfrastructureFailure(self._failure)
            wanted = self.environment.options.digest
            if wanted == "history":
                return self._history
            try:
                state = self._channel.state()
            except StepError as error:
                raise InfrastructureFailure(f"{self.environment.name}: it does not tell its state: {error}") from error
            own = state.get("digest")
            if self.environment.served and isinstance(own, str):
                return own
            ignored = {*_BARE, *self.environment.options.digest_ignore}
            told = {name: value for name, value in state.items() if name not in ignored}
            return digest_of(told) if told or wanted == "state" else self._history

    def close(self) -> None:
        """End the episode. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            self._channel.close()


def open_env(url: str | None = None, **options: Any) -> OpenEnvEnvironment:
    """An OpenEnv environment as one of ours; the options are those of :class:`.options.OpenEnvOptions`.

    Nothing is connected to or made before its tools are asked for. Raises :class:`callwright.UsageError` for options
    that cannot be, and without the packages that they need.
    """
    read = read_options(OpenEnvOptions, {"url": url, **options}, "the environment 'openenv'")
    return RemoteEnvironment(read) if read.url is not None else LocalEnvironment(read)


open_env.__signature__ = inspect.signature(OpenEnvOptions)  # type: ignore[attr-defined]
