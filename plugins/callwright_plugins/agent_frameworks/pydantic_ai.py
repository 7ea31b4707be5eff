"""Pydantic AI: tools that know their call's id and message, and its requests and responses as messages."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic_ai import ModelRequest, ModelResponse, RunContext, Tool
from pydantic_ai.messages import (
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from callwright.episodes.logs.log import Log
from callwright.errors import DataError, UsageError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import FunctionTool, ToolSpec
from callwright_plugins.agent_frameworks.offering import ForeignTool, Offered, object_schema, offered


class PydanticAI:
    """Pydantic AI's agents, which run the calls of a message at once."""

    name = "pydantic-ai"

    def tools(self, log: Log) -> list[Tool[Any]]:
        """A tool for each that the task offers. A failed call returns what is told of it, as in every rollout: what
        Pydantic AI has for failures (``ModelRetry``, ``ToolFailed``) would put other words around it.
        """
        return [_tool(one) for one in offered(log)]

    def messages(self, run: Any) -> list[Message]:
        """The conversation of a run's result, or of a list of requests and responses."""
        told = getattr(run, "all_messages", None)
        found = told() if callable(told) else run
        if not isinstance(found, list | tuple):
            raise DataError(f"Pydantic AI's agents return a result with all_messages(), not {type(run).__name__}")
        return [message for one in found for message in _messages(one)]

    def function_tools(self, tools: Iterable[Any]) -> Sequence[FunctionTool]:
        """Pydantic AI's tools as ours: ``Tool`` objects, or the functions of which it makes them.

        Raises :class:`callwright.UsageError` for one that takes a run's context: there is none outside of a run.
        """
        return [_ours(_tool_of(tool)) for tool in tools]


def _tool(tool: Offered) -> Tool[Any]:
    async def run(context: RunContext[Any], /, **arguments: Any) -> str:
        call_id = context.tool_call_id or ""
        turn, after = _place(context, call_id)
        return (await tool.acall(arguments, call_id=call_id, turn=turn, after=after)).text

    return Tool.from_schema(run, tool.name, tool.description, dict(tool.parameters), takes_ctx=True)


def _place(context: RunContext[Any], call_id: str) -> tuple[str, list[str]]:
    """What tells the call's message from others, and the ids of the calls before it."""
    for message in reversed(context.messages):
        if isinstance(message, ModelResponse):
            ids = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            if call_id in ids:
                return ids[0], ids[: ids.index(call_id)]
    return "", []


# Messages -------------------------------------------------------------------------------------------------------------


def _messages(given: Any) -> Iterator[Message]:
    if isinstance(given, ModelResponse):
        yield _answer(given)
    elif isinstance(given, ModelRequest):
        for part in given.parts:
            yield from _heard(part)
    else:
        yield Message.from_openai(given)


def _answer(response: ModelResponse) -> Message:
    said = [part.content for part in response.parts if isinstance(part, TextPart)]
    thought = [part.content for part in response.parts if isinstance(part, ThinkingPart)]
    calls = [
        ToolCall(part.tool_call_id, part.tool_name, _text(part.args))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    return Message.assistant("".join(said), calls, reasoning="\n".join(thought))


def _text(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)


def _heard(part: Any) -> Iterator[Message]:
    if isinstance(part, SystemPromptPart):
        yield Message.system(part.content)
    elif isinstance(part, UserPromptPart):
        yield Message.user(part.content if isinstance(part.content, str) else tuple(map(str, part.content)))
    elif isinstance(part, ToolReturnPart):
        yield Message.tool(part.model_response_str(), part.tool_call_id, name=part.tool_name)
    elif isinstance(part, RetryPromptPart):
        text, name = part.model_response(), part.tool_name
        yield Message.user(text) if name is None else Message.tool(text, part.tool_call_id, name=name)


# Their tools ----------------------------------------------------------------------------------------------------------


def _tool_of(given: Any) -> Tool[Any]:
    if isinstance(given, Tool):
        return given
    if not inspect.isroutine(given):
        raise DataError(f"this is no tool of Pydantic AI: {type(given).__name__}; give a Tool, or a function")
    return Tool(given)


def _ours(tool: Tool[Any]) -> FunctionTool:
    if tool.takes_ctx:
        raise UsageError(f"the tool {tool.name!r} takes a run's context, which only a run of an agent has")
    schema = tool.function_schema

    async def run(**arguments: Any) -> Any:
        checked = schema.validator.validate_python(arguments)
        found = schema.function(**checked) if isinstance(checked, dict) else schema.function(checked)
        return await found if asyncio.iscoroutine(found) else found

    return ForeignTool(ToolSpec(tool.name, tool.description or "", object_schema(schema.json_schema)), run)
