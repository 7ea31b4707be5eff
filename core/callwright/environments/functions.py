"""Environments made of plain Python functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, get_args

from callwright.capability import has
from callwright.digests import digest_of
from callwright.environments.backends.backend import Backend
from callwright.environments.backends.session import GoalTold, session_over
from callwright.environments.calling import ReadyTool, call_tool, in_use, ready
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.sizes import check_state
from callwright.environments.undeclared import Undeclared, account_of, holds_foreign
from callwright.errors import CallwrightError, ComponentError, NameClash, UsageError
from callwright.machines.awaiting import is_async
from callwright.pickling import ByName, need_name
from callwright.tools.spec import FunctionTool, ToolSpec


class FunctionEnvironment(ByName, Environment):
    """An environment whose tools are typed functions, each session with its own state.

    ``state`` makes the state of a session from the scenario and the seed; tools with a positional-only first parameter
    receive it. Without it sessions have no state. A state may be a :class:`callwright.environments.backends.Backend`,
    such as a database; any other is copied before a call that writes. A tool reports a documented failure by raising
    :class:`callwright.ToolError`; whatever it did to the state before is undone.

    ``goal_state`` makes of a state, after any call, what the session has come to: JSON without what is no goal, such as
    counters and logs. Then tasks may have goals (:class:`callwright.environments.protocol.TellsGoalState`).

    ``undeclared`` says what any other exception of a tool becomes, after its changes were undone:

    - ``"execution_error"``: a failed call, as rewards for calls that execute have it (TIER, section 2.2);
    - ``"mask"``: an ``infrastructure_error``, which masks the sample: no model pays for a bug of a tool;
    - ``"raise"``: :class:`callwright.errors.ComponentError`, which stops the run.

    In the first two cases the outcome says that it was undeclared, and reports count it by tool.
    """

    def __init__(
        self,
        name: str,
        tools: Sequence[FunctionTool],
        *,
        state: Callable[[str, int], Any] | None = None,
        undeclared: Undeclared = "execution_error",
        goal_state: Callable[[Any], Any] | None = None,
    ) -> None:
        if undeclared not in get_args(Undeclared):
            raise UsageError(
                f"environment {name!r}: undeclared must be one of {', '.join(get_args(Undeclared))}, not "
                f"{undeclared!r:.80}"
            )
        self._name = name
        if is_async(state):
            raise UsageError(
                f"environment {name!r}: the function that makes a state is async; let it make an empty state, and let "
                "async tools fill it"
            )
        if goal_state is not None and (not callable(goal_state) or is_async(goal_state) or state is None):
            wanted = "a function of the state, not async, beside state="
            raise UsageError(f"environment {name!r}: goal_state is {wanted}, not {goal_state!r:.80}")
        self._functions: dict[str, FunctionTool] = {}
        for tool in tools:
            if not isinstance(tool, FunctionTool):
                raise UsageError(f"environment {name!r}: {tool!r:.80} is not a tool; decorate it with @callwright.tool")
            if tool.spec.name in self._functions:
                raise NameClash(f"environment {name!r} has two tools named {tool.spec.name!r}")
            self._functions[tool.spec.name] = tool
        self._specs = {tool_name: tool.spec for tool_name, tool in self._functions.items()}
        self._state, self._goal_state = state, goal_state
        self._ready: dict[str, ReadyTool] = {}
        self._undeclared: Undeclared = undeclared
        self._foreign = holds_foreign(tools)

    def __getstate__(self) -> dict[str, Any]:
        need_name(self._state, f"the state of environment {self._name!r}")
        need_name(self._goal_state, f"the goal_state of environment {self._name!r}")
        return {key: value for key, value in self.__dict__.items() if key not in ("_specs", "_ready")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._specs = {tool_name: tool.spec for tool_name, tool in self._functions.items()}
        self._ready = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool by name."""
        return self._specs

    @property
    def functions(self) -> tuple[FunctionTool, ...]:
        """The tools as functions."""
        return tuple(self._functions.values())

    @property
    def pure(self) -> bool:
        """False: nothing is known of what the functions do with their arguments."""
        return False

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        state = self._state(scenario, seed) if self._state else None
        if state is not None and has(state, Backend):
            return session_over(self, state, (scenario, seed), self._goal_state is not None)
        return FunctionSession(self, state) if self._goal_state is None else _ToldFunctionSession(self, state)

    def goal_of(self, state: Any) -> Any:
        """What a state comes to, by the function ``goal_state``; ``None`` without one.

        Raises :class:`callwright.errors.ComponentError` where the function fails.
        """
        if self._goal_state is None:
            return None
        try:
            return self._goal_state(state)
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"goal_state of the environment {self._name!r} raised {type(error).__name__}: {error}\n"
                "This is a bug of the environment"
            ) from error

    def backend(self, scenario: str, seed: int) -> Backend:
        """A fresh state of a session, where it is a :class:`callwright.environments.backends.Backend`.

        Raises :class:`callwright.UsageError` where it is not.
        """
        state = self._state(scenario, seed) if self._state else None
        if not has(state, Backend):
            raise UsageError(f"the state of environment {self._name!r} is no backend: it has no tables() and close()")
        return state

    @property
    def foreign(self) -> bool:
        """Whether a tool is code that is not part of this distribution."""
        return self._foreign

    @property
    def ready(self) -> Mapping[str, ReadyTool]:
        """The tools, made ready for calls at the first session: it imports the library that checks schemas."""
        if not self._ready:
            self._ready = {tool_name: _ready(tool) for tool_name, tool in self._functions.items()}
        return self._ready

    @property
    def undeclared(self) -> Undeclared:
        """What an exception becomes that is no :class:`callwright.ToolError`."""
        return self._undeclared


def _ready(tool: FunctionTool) -> ReadyTool:
    if tool.state is None:
        return ready(tool.spec, lambda **arguments: tool.call(None, arguments), "arguments")
    return ready(tool.spec, lambda held, arguments: tool.call(held.state, arguments), "mapping")


class _Held:
    """The state of a session, and a copy of it from before the call at hand."""

    __slots__ = ("_before", "_copied", "state")

    def __init__(self, state: Any) -> None:
        self.state = state
        self._before: Any = None
        self._copied = False

    def begin(self, read_only: bool) -> None:
        """Copy the state, unless nothing is going to change."""
        self._copied = not read_only
        self._before = copy.deepcopy(self.state) if self._copied else None

    def end(self) -> None:
        """The call stays, unless the state became too large. Functions have no way to warn."""
        if self._copied:
            check_state(self.state)
            self._copied, self._before = False, None

    def undo(self) -> None:
        """Put the copy in its place."""
        if self._copied:
            self.state = self._before
        self._copied, self._before = False, None


class FunctionSession(Session):
    """A session of a :class:`FunctionEnvironment`, for one thread at a time."""

    __slots__ = ("_held", "_tools", "_turn", "environment")
    bounds_results = True

    def __init__(self, environment: FunctionEnvironment, state: Any) -> None:
        self.environment = environment
        self._tools = environment.ready
        self._held = _Held(state)
        self._turn = Lock()

    def __reduce__(self) -> tuple[type[FunctionSession], tuple[FunctionEnvironment, Any]]:
        return type(self), (self.environment, self._held.state)

    @property
    def state(self) -> Any:
        """The state, which is another object after a call that was undone."""
        return self._held.state

    @state.setter
    def state(self, state: Any) -> None:
        self._held.state = state

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Check the arguments against the schema, then run the function; a failure leaves the state as it was."""
        held = self._held
        try:
            return call_tool(self._tools, tool, arguments, held, held, self._turn, None, self.environment.undeclared)
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"{account_of(tool, error)}\nThis is a bug of the tool (undeclared='raise')"
            ) from error

    def digest(self) -> str:
        """SHA-256 of the state; see :func:`callwright.digests.digest_of` for what it may be made of."""
        if not self._turn.acquire(False):
            raise in_use()
        try:
            return digest_of(self._held.state)
        finally:
            self._turn.release()

    def close(self) -> None:
        """Nothing to give back."""


class _ToldFunctionSession(GoalTold, FunctionSession):
    """A session that tells what it has come to."""

    __slots__ = ()
