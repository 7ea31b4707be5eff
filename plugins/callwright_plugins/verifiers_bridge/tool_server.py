"""The server of a task's tools, which verifiers starts for each rollout: ``python -m`` this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import verifiers.v1 as vf
from mcp.server.mcpserver.tools.base import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata

from callwright.errors import UsageError
from callwright.tools.reading import without_marks
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Task
from callwright_plugins.verifiers_bridge.calling import RolloutSession


class CallwrightState(vf.State):  # type: ignore[misc]
    """What a tool server tells the scorer."""

    masked: str | None = None
    """Why nothing is known of this rollout: a session failed, not the model."""


class EnvironmentToolset(vf.Toolset[vf.ToolsetConfig, CallwrightState]):  # type: ignore[misc]
    """The tools of a task, in one session of its scenario, with their own schemas and under their own names."""

    TOOL_PREFIX: ClassVar[str | None] = None

    async def setup_task(self, task: Any) -> None:
        """Open the session of the rollout's task."""
        self._task: Task = task.task
        self._session = RolloutSession(self._task)
        self._exit_stack.callback(self._session.close)

    def register(self, mcp: Any) -> None:
        """Offer the task's tools. Raises :class:`callwright.UsageError` where the server was given no task."""
        if getattr(self, "_task", None) is None:
            raise UsageError("the tools of a task need its session: start this server for each rollout, not shared")
        for spec in self._task.offered.values():
            # The one way to state a schema: add_tool reads it off a signature, which cannot say everything.
            mcp._tool_manager._tools[spec.name] = self._tool(spec)

    def _tool(self, spec: ToolSpec) -> Any:
        async def call(arguments: dict[str, Any]) -> str:
            return self.call(spec.name, arguments)

        return Tool.model_construct(
            fn=self._with_state(call),
            name=spec.name,
            description=spec.description,
            parameters=without_marks(spec.parameters),
            fn_metadata=PlainArguments(arg_model=ArgModelBase),
            is_async=True,
        )

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Execute a call; the result is the JSON that every rollout of Callwright shows."""
        told = self._session.call(tool, arguments)
        if self._session.masked is not None:
            self.state.masked = self._session.masked
        return told


class PlainArguments(FuncMetadata):
    """Arguments as they came: the session judges them, so that what a model got wrong reads as in every rollout."""

    async def call_fn_with_arg_validation(
        self, fn: Callable[..., Any], fn_is_async: bool, arguments_to_validate: dict[str, Any], *given: Any, **more: Any
    ) -> Any:
        """Hand the arguments on."""
        return await fn(arguments_to_validate)


if __name__ == "__main__":
    EnvironmentToolset.run()
