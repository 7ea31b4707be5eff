"""Environments made of plain Python functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from callwright.digests import digest_of
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure, NameClash, UsageError
from callwright.pickling import ByName, need_name
from callwright.tools.spec import ArgumentError, FunctionTool, ToolError, ToolSpec
from callwright.tools.validation import check_arguments


class FunctionEnvironment(ByName):
    """An environment whose tools are typed functions, each session with its own state.

    ``state`` makes the state of a session from the scenario and the seed; tools with a positional-only first parameter
    receive it. Without it sessions have no state. A tool reports a documented failure by raising
    :class:`callwright.ToolError`; whatever it did to the state before is undone.
    """

    def __init__(
        self, name: str, tools: Sequence[FunctionTool], *, state: Callable[[str, int], Any] | None = None
    ) -> None:
        self._name = name
        self._functions: dict[str, FunctionTool] = {}
        for tool in tools:
            if not isinstance(tool, FunctionTool):
                raise UsageError(f"environment {name!r}: {tool!r:.80} is not a tool; decorate it with @callwright.tool")
            if tool.spec.name in self._functions:
                raise NameClash(f"environment {name!r} has two tools named {tool.spec.name!r}")
            self._functions[tool.spec.name] = tool
        self._specs = {tool_name: tool.spec for tool_name, tool in self._functions.items()}
        self._state = state

    def __getstate__(self) -> dict[str, Any]:
        need_name(self._state, f"the state of environment {self._name!r}")
        return self.__dict__

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool by name."""
        return self._specs

    @property
    def pure(self) -> bool:
        """False: nothing is known of what the functions do with their arguments."""
        return False

    def open(self, scenario: str = "", seed: int = 0) -> FunctionSession:
        """A fresh session."""
        return FunctionSession(self._functions, self._state(scenario, seed) if self._state else None)


@define(eq=False)
class FunctionSession:
    """A session of a :class:`FunctionEnvironment`."""

    functions: Mapping[str, FunctionTool] = field(repr=False)
    state: Any = None

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Check the arguments against the schema, then run the function; a failure leaves the state as it was."""
        function = self.functions.get(tool)
        if function is None:
            return Outcome("unknown_tool", code="unknown_tool", message=f"no tool named {tool!r}")
        problems = check_arguments(function.spec, arguments)
        if problems:
            return Outcome("schema_error", code=problems[0].kind, message=str(problems[0]))
        before = copy.deepcopy(self.state) if function.state and not function.spec.read_only else None
        try:
            value = function.call(self.state, arguments)
        except InfrastructureFailure:
            self._restore(before)
            raise
        except ArgumentError as error:
            return Outcome("schema_error", code=error.code, message=error.message)
        except ToolError as error:
            self._restore(before)
            return Outcome("execution_error", code=error.code, message=error.message)
        except Exception as error:  # the tool's own failure, whatever it raises
            self._restore(before)
            return Outcome("execution_error", code=type(error).__name__, message=str(error))
        return Outcome("empty" if value in ([], {}) else "ok", value)

    def _restore(self, before: Any) -> None:
        if before is not None:
            self.state = before

    def digest(self) -> str:
        """SHA-256 of the state; see :func:`callwright.digests.digest_of` for what it may be made of."""
        return digest_of(self.state)

    def close(self) -> None:
        """Nothing to give back."""


def _conforms(environment: FunctionEnvironment, session: FunctionSession) -> tuple[Environment, Session]:
    """Checked by mypy only: both classes fit their protocols."""
    return environment, session
