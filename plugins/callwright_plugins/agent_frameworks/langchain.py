"""LangChain and LangGraph: tools that know their call's id and its place in the message, and messages as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Annotated, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException

from callwright.episodes.logs.log import Log
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import FunctionTool, ToolSpec
from callwright_plugins.agent_frameworks.offering import ForeignTool, Offered, Told, as_calls, object_schema, offered

try:
    from langgraph.prebuilt import InjectedState
except ImportError:  # plain LangChain: there is no graph whose state tells the message
    InjectedState = None  # type: ignore[assignment, misc]

#: The parameter in which a graph hands its state to a tool. No model sees it.
_STATE: Final = "callwright_graph_state"
#: Parts of a content that are calls, which stand in ``tool_calls``, too.
_CALLS: Final = ("tool_use", "tool_call", "function_call", "input_json_delta")
#: What :meth:`callwright.Log.call` is told of the call at hand: LangChain hands a tool its arguments alone.
_told: Final[ContextVar[Mapping[str, Any]]] = ContextVar("callwright_call", default={})  # noqa: B039 - never changed


class LangChain:
    """LangChain's agents and LangGraph's tool nodes, which run the calls of a message in threads."""

    name = "langchain"

    def tools(self, log: Log) -> list[BaseTool]:
        """A tool for each that the task offers. A failed call is a message with the status ``error``."""
        return [_LogTool.of(tool) for tool in offered(log)]

    def messages(self, run: Any) -> list[Message]:
        """The conversation of a graph's state, or of a list of LangChain's messages."""
        found = run.get("messages") if isinstance(run, Mapping) else getattr(run, "messages", run)
        if not isinstance(found, Iterable):
            raise DataError(f"LangChain's agents return a state with 'messages', not {type(run).__name__}")
        return [_message(one) for one in found]

    def function_tools(self, tools: Iterable[Any]) -> Sequence[FunctionTool]:
        """LangChain's tools as ours."""
        return [_ours(tool) for tool in tools]


def _where_the_state_goes(**given: Any) -> None:
    """Its annotations alone count: a graph reads in them where it puts its state."""


if InjectedState is not None:
    _where_the_state_goes.__annotations__ = {_STATE: Annotated[Any, InjectedState()]}


class _LogTool(BaseTool):
    """A tool of a log. A graph injects its state, in which the message stands that a call is of."""

    tool: Offered
    func: Any = _where_the_state_goes
    handle_tool_error: Any = True

    @classmethod
    def of(cls, tool: Offered) -> _LogTool:
        return cls(
            name=tool.name, description=tool.description or tool.name, args_schema=dict(tool.parameters), tool=tool
        )

    def run(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **options: Any) -> Any:
        """Run the tool on its arguments, which LangChain has taken out of the call."""
        tool_input, about = _split(tool_input, tool_call_id)
        token = _told.set(about)
        try:
            return super().run(tool_input, *args, tool_call_id=tool_call_id, **options)
        finally:
            _told.reset(token)

    async def arun(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **options: Any) -> Any:
        """As :meth:`run`."""
        tool_input, about = _split(tool_input, tool_call_id)
        token = _told.set(about)
        try:
            return await super().arun(tool_input, *args, tool_call_id=tool_call_id, **options)
        finally:
            _told.reset(token)

    def _run(self, /, **arguments: Any) -> str:
        return _answer(self.tool.call(arguments, **_told.get()))

    async def _arun(self, /, **arguments: Any) -> str:
        return _answer(await self.tool.acall(arguments, **_told.get()))


def _answer(told: Told) -> str:
    if told.failed:
        raise ToolException(told.text)
    return told.text


def _split(tool_input: Any, call_id: str | None) -> tuple[Any, dict[str, Any]]:
    """The arguments without the graph's state, and what that says of the call: its message, and which go before it."""
    about: dict[str, Any] = {"call_id": call_id or ""}
    if not isinstance(tool_input, dict) or _STATE not in tool_input:
        return tool_input, about
    state = tool_input[_STATE]
    said = state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", ())
    for message in reversed(list(said)):
        ids = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
        if call_id in ids:
            about["turn"] = str(message.id or ids[0])
            about["after"] = [one for one in ids[: ids.index(call_id)] if one]
            break
    return {key: value for key, value in tool_input.items() if key != _STATE}, about


# Messages -------------------------------------------------------------------------------------------------------------


def _message(given: Any) -> Message:
    if isinstance(given, Message | Mapping):
        return Message.from_openai(given)
    if not isinstance(given, BaseMessage):
        raise DataError(f"this is no message of LangChain: {type(given).__name__}")
    content: Any = given.content
    parts = content if isinstance(content, str) else tuple(_part(one) for one in content if not _is_call(one))
    if isinstance(given, AIMessage):
        thought = str(given.additional_kwargs.get("reasoning_content", ""))
        return Message.assistant(parts, _calls(given), reasoning=thought)
    if isinstance(given, ToolMessage):
        return Message.tool(parts, given.tool_call_id, name=given.name or "")
    if isinstance(given, SystemMessage):
        return Message.system(parts)
    return Message.user(parts)


def _part(part: Any) -> Any:
    return part if isinstance(part, str | Mapping) else str(part)


def _is_call(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _CALLS


def _calls(message: AIMessage) -> list[ToolCall]:
    """The calls with their text as it was sampled, where LangChain kept it; those that it could not read, too."""
    sampled = {
        one.get("id"): one["function"].get("arguments")
        for one in message.additional_kwargs.get("tool_calls", ())
        if isinstance(one, Mapping) and isinstance(one.get("function"), Mapping)
    }
    known: list[dict[str, Any]] = [dict(call) for call in message.tool_calls]
    broken = [{**call, "args": call["args"] or ""} for call in message.invalid_tool_calls]
    return [
        ToolCall(call.id, call.name, sampled.get(call.id) or call.arguments) for call in as_calls([*known, *broken])
    ]


# Their tools ----------------------------------------------------------------------------------------------------------


def _ours(tool: Any) -> FunctionTool:
    if not isinstance(tool, BaseTool):
        raise DataError(f"this is no tool of LangChain: {type(tool).__name__}; decorate it with its @tool")
    schema: Any = tool.tool_call_schema
    stated = schema if isinstance(schema, dict) else schema.model_json_schema()

    async def run(**arguments: Any) -> Any:
        return await tool.ainvoke(arguments)

    parameters = {key: value for key, value in stated.items() if key not in ("title", "description")}
    return ForeignTool(ToolSpec(tool.name, tool.description, object_schema(parameters)), run)
