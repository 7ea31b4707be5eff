"""smolagents: tools over a log, and the steps of an agent's memory as messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import smolagents

from callwright.episodes.logs.log import Log
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import FunctionTool, ToolSpec
from callwright_plugins.agent_frameworks.offering import ForeignTool, Offered, object_schema, offered

#: How smolagents spells the call by which an agent answers.
_ANSWER: Final = "final_answer"
_TYPES: Final = frozenset({"string", "boolean", "integer", "number", "array", "object", "null"})


class Smolagents:
    """Agents of smolagents. It tells a tool neither the id nor the message of a call.

    Parallel calls of one message run in threads; ``ToolCallingAgent(..., max_tool_threads=1)`` keeps their order.
    """

    name = "smolagents"

    def tools(self, log: Log) -> list[smolagents.Tool]:
        """A tool for each that the task offers. What a failed call tells is its result: smolagents has no other way."""
        return [_LogTool(one) for one in offered(log)]

    def messages(self, run: Any) -> list[Message]:
        """The conversation in an agent's memory; of an agent, its memory, or a list of its steps.

        Calls of ``final_answer`` are answers in words.
        """
        memory = getattr(run, "memory", run)
        steps = getattr(memory, "steps", memory)
        if not isinstance(steps, list | tuple):
            raise DataError(f"give the agent (its memory holds the conversation), not {type(run).__name__}")
        read = [message for step in steps for message in _messages(step)]
        if steps and not read:
            raise DataError("these are no steps of smolagents: give the agent, whose memory holds them")
        return read

    def function_tools(self, tools: Iterable[Any]) -> Sequence[FunctionTool]:
        """Tools of smolagents as ours."""
        return [_ours(tool) for tool in tools]


class _LogTool(smolagents.Tool):  # type: ignore[misc]  # without types
    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, tool: Offered) -> None:
        self._offered = tool
        self.name, self.description = tool.name, tool.description or tool.name
        self.inputs = _inputs(tool.parameters)
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        """Run the call. What the model left out, smolagents leaves out, too."""
        return self._offered.call(arguments).text


def _inputs(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Parameters as smolagents has them: a type it knows, ``any`` for what is more than one word."""
    required = parameters.get("required", ())
    made = {}
    for name, schema in parameters.get("properties", {}).items():
        stated = schema.get("type")
        known = stated in _TYPES if isinstance(stated, str) else False
        made[name] = {**schema, "type": stated if known else "any", "description": schema.get("description") or name}
        if name not in required:
            made[name]["nullable"] = True
    return made


# Messages -------------------------------------------------------------------------------------------------------------


def _messages(step: Any) -> Iterator[Message]:
    if isinstance(step, Message):
        yield step
    elif isinstance(step, smolagents.memory.SystemPromptStep):
        yield Message.system(step.system_prompt)
    elif isinstance(step, smolagents.memory.TaskStep):
        yield Message.user(step.task)
    elif isinstance(step, smolagents.ActionStep) and step.model_output_message is not None:
        yield from _acted(step)


def _acted(step: smolagents.ActionStep) -> Iterator[Message]:
    """What a model wrote in one step, and what its calls came to: smolagents keeps the results as one text."""
    written: Any = step.model_output_message
    said = written.content if isinstance(written.content, str) else _joined(written.content)
    calls = [ToolCall(one.id, one.function.name, _text(one.function.arguments)) for one in written.tool_calls or ()]
    if not calls and step.tool_calls:  # the agent found them in the text
        calls = [ToolCall(one.id, one.name, _text(one.arguments)) for one in step.tool_calls]
        said = ""
    answers = [call for call in calls if call.name == _ANSWER]
    calls = [call for call in calls if call.name != _ANSWER]
    if calls or not answers:
        yield Message.assistant(said, calls)
        text = step.observations or (str(step.error) if step.error else "")
        for place, call in enumerate(calls):
            yield Message.tool("" if place else text, call.id, name=call.name)
    for call in answers:
        yield Message.assistant(_answer(call.arguments))


def _joined(content: Any) -> str:
    return "".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def _answer(arguments: str) -> str:
    try:
        found = json.loads(arguments)
    except ValueError:
        return arguments
    answer = found.get("answer", arguments) if isinstance(found, dict) else found
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


# Their tools ----------------------------------------------------------------------------------------------------------


def _ours(tool: Any) -> FunctionTool:
    if not isinstance(tool, smolagents.Tool):
        raise DataError(f"this is no tool of smolagents: {type(tool).__name__}; decorate it with its @tool")
    properties = {name: _property(stated) for name, stated in tool.inputs.items()}
    required = [name for name, stated in tool.inputs.items() if not stated.get("nullable")]
    schema = object_schema({"properties": properties, "required": required, "additionalProperties": False})
    return ForeignTool(ToolSpec(tool.name, tool.description, schema), tool)


def _property(stated: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in stated.items() if key not in ("type", "nullable")}
    kinds = stated["type"] if isinstance(stated["type"], list) else [stated["type"]]
    if "any" not in kinds:
        kinds = [*kinds, "null"] if stated.get("nullable") and "null" not in kinds else kinds
        made["type"] = kinds[0] if len(kinds) == 1 else kinds
    return made
