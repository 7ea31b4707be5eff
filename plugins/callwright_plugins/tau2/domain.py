"""A domain of tau2-bench: where its dialogues take place, and what they leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure, UnknownName, UsageError
from callwright.machines.foreign_code.code import ForeignLost
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright_plugins.tau2.source import Left, Recorded, Tau2Source

_ERROR: Final = "Error: "
#: Losses of a process that are the doing of the call that was under way.
_OWN_DOING: Final = ("timeout", "memory")
#: The call that makes a benchmark again, whose corpus has the environment.
Made = tuple[Callable[..., Any], tuple[Any, ...]]


class Domain(Protocol):
    """Where the tasks of a benchmark take place."""

    @property
    def environment(self) -> Environment:
        """Tools of the agent and, by ``user_tools``, of the user."""

    def left_together(self, asked: Sequence[Recorded]) -> list[Left | InfrastructureFailure]:
        """What dialogues leave; in place of what is not known stands why."""


class SourceDomain:
    """A domain of the source that the user points at; ``tasks`` are as its file states them, by id."""

    def __init__(self, name: str, source: Tau2Source, tasks: Mapping[str, Mapping[str, Any]], made: Made) -> None:
        self.name, self.source = name, source
        self.environment: Final = SourceEnvironment(name, source, tasks, made)

    def left_together(self, asked: Sequence[Recorded]) -> list[Left | InfrastructureFailure]:
        """What tau2's own code says, of all in one message."""
        return self.source.left_together(self.name, asked)


class SourceEnvironment(Environment):
    """tau2's tools over its databases, in the process of its code.

    A call executes whatever its arguments are, as there: what a tool says of bad ones is its failure.
    """

    __slots__ = ("__weakref__", "_briefing", "_domain", "_made", "_source", "_tasks", "_tools", "_user_tools")
    pure: bool = True
    takes_anything: Literal[True] = True
    out_of_process: Literal[True] = True
    keeps_time: Literal[True] = True
    briefs: bool = True
    #: Sessions begin as the task says whose id is their scenario.
    scenarios_are_tasks: Literal[True] = True

    def __init__(self, domain: str, source: Tau2Source, tasks: Mapping[str, Mapping[str, Any]], made: Made) -> None:
        self._domain, self._source, self._tasks, self._made = domain, source, tasks, made
        told = source.describe(domain)
        self._briefing = str(told["policy"]).strip()
        self._tools = _specs(told["tools"])
        self._user_tools = _specs(told["user_tools"])

    def __reduce__(self) -> Any:
        return made_by(self, _environment_of, *self._made)

    @property
    def name(self) -> str:
        """``tau2-retail`` and so on."""
        return f"tau2-{self._domain}"

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The agent's."""
        return self._tools

    @property
    def user_tools(self) -> Mapping[str, ToolSpec]:
        """The user's: those of its phone, in telecom."""
        return self._user_tools

    def briefing(self, session: Session) -> str:
        """The policy of the domain."""
        return self._briefing

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """The databases as a task finds them, by its id; ``""`` is the first task. Nothing is drawn.

        Raises :class:`callwright.errors.UnknownName` for another id.
        """
        task = self._tasks.get(scenario or next(iter(self._tasks), ""))
        if task is None:
            raise UnknownName(f"task of {self.name}", scenario, self._tasks)
        return _Dialogue(self, self._source, self._domain, task)


class _Dialogue(Session):
    """The databases of one dialogue, which are forked with the first thing that is asked of them.

    A process that another dialogue cost is no loss to this one: its calls are made again in the next.
    """

    __slots__ = ("_closed", "_digest", "_domain", "_environment", "_made", "_number", "_source", "_task")

    def __init__(
        self, environment: SourceEnvironment, source: Tau2Source, domain: str, task: Mapping[str, Any]
    ) -> None:
        self._environment, self._source, self._domain, self._task = environment, source, domain, task
        self._number: int | None = None
        self._digest, self._closed = "", False
        self._made: list[tuple[str, str, dict[str, Any]]] = []

    def _opened(self) -> int:
        if self._closed:
            raise InfrastructureFailure("the session was closed")
        if self._number is None:
            self._number, self._digest = self._source.begin(self._domain, self._task)
        return self._number

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """A call of the agent; one that takes longer, or more memory, than it may has failed.

        Raises :class:`callwright.InfrastructureFailure` where the process ended otherwise meanwhile.
        """
        return self._called("assistant", tool, arguments, self._environment.tools)

    def user_call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """A call of the user. Raises as :meth:`call`."""
        return self._called("user", tool, arguments, self._environment.user_tools)

    def _called(self, by: str, tool: str, arguments: dict[str, Any], tools: Mapping[str, ToolSpec]) -> Outcome:
        if tool not in tools:
            return Outcome("unknown_tool", None, "unknown_tool", f"there is no tool {tool!r}")
        try:
            found = self._source.call(self._opened(), by, tool, arguments)
            if found is None:
                self._begin_again()
                found = self._source.call(self._opened(), by, tool, arguments)
        except ForeignLost as lost:
            if lost.code not in _OWN_DOING:
                raise
            return Outcome("execution_error", None, lost.code, "the call used more than it may, and was ended")
        if found is None:
            raise InfrastructureFailure("the process of tau2's code was lost again and again")
        self._made.append((by, tool, arguments))
        self._digest = str(found["digest"])
        content = str(found["content"])
        if found["error"]:
            return Outcome("execution_error", None, "raised", content.removeprefix(_ERROR))
        return Outcome("ok", _value(content))

    def _begin_again(self) -> None:
        self._number = None
        for by, tool, arguments in self._made:
            self._source.call(self._opened(), by, tool, arguments)

    def digest(self) -> str:
        """A hash of both databases."""
        self._opened()
        return self._digest

    def __reduce__(self) -> Any:
        raise UsageError(
            "a dialogue of tau2's code lives in a process of this one, so it cannot be copied or sent to another; send "
            "the environment, and open a session there"
        )

    def close(self) -> None:
        """Forget the databases. Closing twice is allowed."""
        number, self._number, self._closed = self._number, None, True
        if number is not None:
            try:
                self._source.end(number)
            except (InfrastructureFailure, UsageError):
                return  # the process is gone, and they with it


def _specs(definitions: Sequence[Mapping[str, Any]]) -> dict[str, ToolSpec]:
    specs = map(ToolSpec.from_openai, definitions)
    return {spec.name: spec for spec in specs}


def _value(content: str) -> Any:
    """What the model reads: the object that the official program hands on as text, or that text."""
    try:
        return json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return content


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _environment_of(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return make(*arguments).corpus.environment
