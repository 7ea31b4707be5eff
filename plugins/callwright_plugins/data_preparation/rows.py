"""Conversations cut into ToolRL's single-step rows: everything before a step stands in its user message.

The form is that of ToolRL's figures 4 and 11 and of its released rows; the words of the system message are ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from callwright_plugins.data_preparation.conversations import BadRow, Called, Conversation, Parameter, Tool, Turn

#: Where the list of tools goes in a system message.
PLACE: Final = "{tools}"
SYSTEM: Final = """You solve the user's task in a dialogue. You can call tools and you can answer in words.

**Available Tools**
These tools can be called:
{tools}

**Output Format**
<think> Your reasoning </think>
<tool_call>
{"name": "a tool", "parameters": {"a parameter": "its value"}}
</tool_call>
<response> Your words to the user </response>

**Notes**
1. Begin with `<think>`. After it comes `<tool_call>`, `<response>` or both.
2. In `<tool_call>` each line is one JSON object with "name" and "parameters"; "parameters" is {} if there are none.
3. The dialogue so far has the user's queries, your earlier steps, and what tools returned in `<obs>`.
"""
#: The data has no thoughts, and the reward does not read them.
_CALLING: Final = "A tool can do what the user asks for, so I call it with the values that were given."
_ANSWERING: Final = "No tool call is needed now, so I answer the user in words."
_TAG: Final = re.compile(r"</?(?:think|tool_call|response|obs|user)>")


@frozen
class Row:
    """A row of ToolRL's raw format."""

    instruction: str
    input: str
    output: str

    def to_json(self) -> dict[str, str]:
        """The row as an object."""
        return {"instruction": self.instruction, "input": self.input, "output": self.output}


def rows_of(conversation: Conversation, system: str = SYSTEM) -> Iterator[Row | BadRow]:
    """A row for each step of the assistant; a :class:`BadRow` for a step that no row can show.

    ``system`` is the system message, with ``{tools}`` where the list of tools goes.
    """
    instruction = system.replace(PLACE, tool_list(conversation.tools))
    said = ["**Dialogue Records History**"]
    asked = spoiled = False
    for turn in conversation.turns:
        text = turn.text if turn.by != "assistant" else _step(turn)
        spoiled = spoiled or _has_tags(turn)
        if turn.by == "assistant":
            if not asked:
                yield BadRow("a step before the user said anything")
            elif spoiled:  # the tags would not be those of the format
                yield BadRow("tags of the format within a text")
            elif not turn.calls and not turn.text:
                yield BadRow("a step with neither calls nor words")
            else:
                yield Row(instruction, "\n".join(said) + "\n", text)
            said.append(f"\n{text}")
        elif turn.by == "user":
            asked = True
            said.append(f"<user> {text} </user>" if len(said) == 1 else f"\n<user> {text} </user>")
        else:
            said.append(f"<obs> {text} </obs>")


def _step(turn: Turn) -> str:
    parts = [f"<think> {_CALLING if turn.calls else _ANSWERING} </think>"]
    if turn.calls:
        parts += ["<tool_call>", *(_line(call) for call in turn.calls), "</tool_call>"]
    if turn.text:
        parts.append(f"<response> {turn.text} </response>")
    return "\n".join(parts)


def _line(call: Called) -> str:
    return json.dumps({"name": call.tool, "parameters": dict(call.arguments)}, ensure_ascii=False)


def _has_tags(turn: Turn) -> bool:
    return bool(_TAG.search(turn.text)) or any(_TAG.search(_line(call)) for call in turn.calls)


def tool_list(tools: tuple[Tool, ...]) -> str:
    """The numbered list of a system message. The dialect has no ``required``: types say what is optional."""
    lines = []
    for number, tool in enumerate(tools, 1):
        shown = {parameter.name: _shown(parameter) for parameter in tool.parameters}
        lines.append(f"{number}. Name: {tool.name}\nDescription: {' '.join(tool.description.split())}")
        lines.append(f"Parameters: {json.dumps(shown, ensure_ascii=False)}")
    return "\n".join(lines)


def _shown(parameter: Parameter) -> dict[str, Any]:
    kind, text, default = parameter.type, parameter.description, parameter.default
    if parameter.required:
        if parameter.has_default and default not in (None, ""):  # beside a default it would be read as optional
            text = f"{text} (declared default: {json.dumps(default, ensure_ascii=False)})".strip()
        default = ""
    elif "optional" not in kind.lower():
        kind = f"{kind}, optional" if kind else "optional"
    return {"description": text, "type": kind, "default": "" if default is None else default}
