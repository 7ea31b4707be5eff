"""OpenAI's Agents SDK: function tools over a log, the items of a run as messages."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Sequence
from typing import Any

from agents import FunctionTool as TheirTool
from agents.tool_context import ToolContext

from callwright.environments.protocol import Outcome
from callwright.environments.telling import tell
from callwright.episodes.logs.log import Log
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.others.responses import messages_of_items
from callwright.language.parser import DEFAULT_LIMITS
from callwright.language.strict_json import decode
from callwright.tools.spec import FunctionTool, ToolSpec
from callwright_plugins.agent_frameworks.offering import ForeignTool, Offered, object_schema, offered


class OpenAIAgents:
    """Agents of OpenAI's SDK, which starts the calls of a message in their order."""

    name = "openai-agents"

    def tools(self, log: Log) -> list[TheirTool]:
        """A tool for each that the task offers, with its schema as it is (``strict_json_schema=False``)."""
        return [_tool(one) for one in offered(log)]

    def messages(self, run: Any) -> list[Message]:
        """The conversation of a run's result, or of a list of input items."""
        told = getattr(run, "to_input_list", None)
        items = told() if callable(told) else run
        if not isinstance(items, list | tuple):
            raise DataError(f"agents of OpenAI's SDK return a result with to_input_list(), not {type(run).__name__}")
        if all(isinstance(one, Message) for one in items):
            return list(items)
        return list(messages_of_items(items))

    def function_tools(self, tools: Iterable[Any]) -> Sequence[FunctionTool]:
        """Function tools of the SDK as ours."""
        return [_ours(tool) for tool in tools]


def _tool(tool: Offered) -> TheirTool:
    async def invoke(context: ToolContext[Any], written: str) -> str:
        arguments = _read(written)
        if arguments is None:  # it never reaches the world, and the message shows it
            return tell(Outcome("schema_error", None, "invalid_json", "the arguments are not a JSON object"))
        return (await tool.acall(arguments, call_id=context.tool_call_id)).text

    return TheirTool(tool.name, tool.description, dict(tool.parameters), invoke, strict_json_schema=False)


def _read(written: str) -> dict[str, Any] | None:
    """The arguments as the form of native calls reads them: strictly, and none where nothing is written."""
    found = decode(written.strip() or "{}", 0, DEFAULT_LIMITS.nesting)
    return found if isinstance(found, dict) else None


def _ours(tool: Any) -> FunctionTool:
    """A tool of the SDK; what it tells of an error instead of raising (its ``failure_error_function``) is a result."""
    if not isinstance(tool, TheirTool):
        raise DataError(f"this is no function tool of the SDK: {type(tool).__name__}; decorate it with @function_tool")

    async def run(**arguments: Any) -> Any:
        written = json.dumps(arguments, ensure_ascii=False)
        context: ToolContext[Any] = ToolContext(None, tool_name=tool.name, tool_call_id="", tool_arguments=written)
        found = tool.on_invoke_tool(context, written)
        return await found if inspect.isawaitable(found) else found

    return ForeignTool(ToolSpec(tool.name, tool.description, object_schema(tool.params_json_schema)), run)
