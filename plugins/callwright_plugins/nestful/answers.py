"""Answers in the release's form: programs of ours written as labelled calls, and the release's own result rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.language.parser import Parser
from callwright.language.program import Call, Program, Reference
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright_plugins.nestful.reading import Sample, output_of

_WHOLE: Final = re.compile(r"\$([^.$]+)\.([^.\[\]$]+)\$")
#: What stands before the list in answers of the models that the release's scorer was written for.
_TAGS: Final = ("<|tool_call|>", "<tool_call>")


class OfficialAnswer(Attempt):
    """An attempt that stands for a row of the release: ``written`` are its calls, whatever shape they have."""

    written: Any = ()
    labelled: bool = False


def official(row: Mapping[str, Any], task: Task, parser: Parser) -> OfficialAnswer | None:
    """The attempt of a row with ``generated_text`` (a result file) or ``calls``; ``None`` for another one.

    A text is read as the release reads those of Granite 3.1 and Qwen: the tags are taken out, and the rest is JSON.
    """
    text = row.get("generated_text")
    if isinstance(text, str):
        for tag in _TAGS:
            text = text.replace(tag, "")
        try:
            written = json.loads(text)
        except (ValueError, RecursionError):
            written = []
    elif "calls" in row:
        written = row["calls"]
        text = json.dumps(written)
    else:
        return None
    made = OfficialAnswer(task, text, parser)
    made.written, made.labelled = written, "label" in text
    return made


def written_of(program: Program, sample: Sample) -> list[dict[str, Any]]:
    """A program as labelled calls, its labels as those of the sample.

    A bare reference means the tool's one output. A path that goes further has no place in the release's form: it is
    written, and nothing is found by it.
    """
    place = {call.id: number for number, call in enumerate(program.calls, 1)}
    outputs = {tool["name"]: output_of(tool) for tool in sample.tools}
    tools = {call.id: call.tool for call in program.calls}
    dollar = "" if sample.prefix.startswith("$") else "$"

    def text(reference: Reference) -> str:
        number = place.get(reference.call)
        label = f"{sample.prefix}{number}" if number else f"{sample.prefix}none"
        path = reference.path or (outputs.get(tools.get(reference.call, ""), ""),)
        tail = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        return f"{dollar}{label}{tail}$"

    def plain(value: Any) -> Any:
        if isinstance(value, Reference):
            return text(value)
        if isinstance(value, Mapping):
            return {key: plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value

    return [
        {"name": call.tool, "label": f"{sample.prefix}{place[call.id]}", "arguments": plain(call.arguments)}
        for call in program.calls
    ]


def program_of(sample: Sample) -> Program:
    """The gold calls of a sample as a program. A text that is more than one reference stays as it is."""
    places: dict[str, int] = {}
    calls = []
    for number, call in enumerate(sample.calls):
        calls.append(Call(number, call["name"], {key: _read(one, places) for key, one in call["arguments"].items()}))
        places[str(call.get("label", "")).replace("$", "")] = number
    return Program(tuple(calls))


def _read(value: Any, places: Mapping[str, int]) -> Any:
    if isinstance(value, str):
        match = _WHOLE.fullmatch(value)
        return Reference(places[match[1]], (match[2],)) if match and match[1] in places else value
    if isinstance(value, list):
        return [_read(one, places) for one in value]
    return value
