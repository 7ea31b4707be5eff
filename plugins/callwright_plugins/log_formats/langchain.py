"""LangChain's messages as they are stored, and the runs that LangSmith exports.

Messages come in four writings: ``{"type": "ai", "data": {...}}`` (``messages_to_dict``), ``{"type": "ai", "content":
...}`` (``model_dump``), ``{"lc": 1, "id": [..., "AIMessage"], "kwargs": {...}}`` (``dumpd``), and OpenAI's. A tool's
message has a ``status``, and a run of a tool an ``error``: both tell whether a call failed. LangChain repairs the JSON
of streamed calls, so that what a model wrote wrongly may not be there any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.recording import outcome_of, recorded_log
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import ToolSpec

_TYPES: Final = ("human", "ai", "tool", "system")
_CLASSES: Final = {"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool", "SystemMessage": "system"}
_REPAIRED: Final = "LangChain repairs the JSON of calls: what was written wrongly may not show"


class LangChain:
    """JSON or JSON lines of messages, of states with ``messages``, or of LangSmith's runs."""

    name = "langchain"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it has one of LangChain's writings of messages, or runs of LangSmith."""
        compact = head.replace(b" ", b"")
        return (
            b'"lc":1' in compact
            or b'"run_type":' in compact
            or any(b'"type":"%s"' % one in compact for one in (b"human", b"ai"))
        )

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each conversation, or of each trace of runs."""
        rows = list(json_rows(path))
        if rows and all(isinstance(row, Mapping) and "run_type" in row for _, row in rows):
            yield from _of_runs(path, [row for _, row in rows], tools)
            return
        if rows and all(_is_message(row) for _, row in rows):
            rows = [(rows[0][0], [row for _, row in rows])]
        for number, (where, row) in enumerate(rows):
            listed = row.get("messages") if isinstance(row, Mapping) else row
            if not isinstance(listed, list):
                raise DataError(f"{where}: expected messages of LangChain, or runs of LangSmith")
            yield _log(f"{path.stem}-{number}", listed, tools, where)


def _log(name: str, listed: Sequence[Any], tools: Mapping[str, ToolSpec], where: str) -> Log:
    messages: list[Message] = []
    outcomes: dict[str, Outcome] = {}
    for one in listed:
        message, failed = _message(one, where)
        messages.append(message)
        if message.role == "tool" and failed is not None:
            outcomes[message.tool_call_id] = outcome_of(message.text, failed)
    return recorded_log(name, messages, tools, outcomes, findings=(_REPAIRED,))


# Messages -------------------------------------------------------------------------------------------------------------


def _is_message(row: Any) -> bool:
    return isinstance(row, Mapping) and (row.get("type") in _TYPES or "role" in row or row.get("lc") == 1)


def _message(given: Any, where: str) -> tuple[Message, bool | None]:
    """A message, and of a tool's whether the call failed, where it says so."""
    if isinstance(given, Mapping) and "role" in given:
        try:
            return Message.from_openai(given), None
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
    kind, data = _opened(given)
    if kind not in _TYPES:
        raise DataError(f"{where}: this is no message of LangChain: {str(given)[:60]}")
    content = data.get("content") or ""
    said = content if isinstance(content, str) else "".join(_text(part) for part in content)
    if kind == "human":
        return Message.user(said), None
    if kind == "system":
        return Message.system(said), None
    if kind == "tool":
        status = data.get("status")
        failed = None if status is None else status == "error"
        return Message.tool(said, str(data.get("tool_call_id") or ""), name=str(data.get("name") or "")), failed
    calls = [*(data.get("tool_calls") or ()), *(data.get("invalid_tool_calls") or ())]
    made = [
        ToolCall(
            str(one.get("id") or ""),
            str(one.get("name") or ""),
            one["args"] if isinstance(one.get("args"), str) else json.dumps(one.get("args") or {}, ensure_ascii=False),
        )
        for one in calls
        if isinstance(one, Mapping)
    ]
    thought = (data.get("additional_kwargs") or {}).get("reasoning_content") or ""
    return Message.assistant(said, made, reasoning=str(thought)), None


def _opened(given: Any) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(given, Mapping):
        return "", {}
    if given.get("lc") == 1:
        return _CLASSES.get(str((given.get("id") or [""])[-1]), ""), given.get("kwargs") or {}
    data = given.get("data")
    return str(given.get("type")), data if isinstance(data, Mapping) else given


def _text(part: Any) -> str:
    return part if isinstance(part, str) else str(part.get("text", "")) if isinstance(part, Mapping) else ""


# Runs -----------------------------------------------------------------------------------------------------------------


def _of_runs(path: Path, runs: Sequence[Mapping[str, Any]], tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
    """A trace's last run of a model has the conversation; the runs of its tools say what came of the calls."""
    traces: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        traces.setdefault(str(run.get("trace_id") or run.get("id")), []).append(run)
    for name, members in traces.items():
        members = sorted(members, key=lambda run: str(run.get("dotted_order") or run.get("start_time") or ""))
        models = [run for run in members if run.get("run_type") == "llm"]
        if not models:
            continue
        where = f"{path}: trace {name}"
        listed = [*_inputs(models[-1], where), *_outputs(models[-1])]
        messages = [_message(one, where)[0] for one in listed]
        outcomes, order = {}, []
        for run in members:
            call_id = _call_of(run) if run.get("run_type") == "tool" else ""
            if call_id:
                order.append(call_id)
                heard = next((one.text for one in messages if one.tool_call_id == call_id), "")
                error = run.get("error")
                status = _status(run)
                failed = bool(error) or status == "error"
                outcomes[call_id] = outcome_of(heard or str(error or ""), failed)
        yield recorded_log(name, messages, tools, outcomes, order=order, findings=(_REPAIRED,))


def _inputs(run: Mapping[str, Any], where: str) -> list[Any]:
    given = run.get("inputs")
    listed = given.get("messages") if isinstance(given, Mapping) else None
    if isinstance(listed, list) and listed and isinstance(listed[0], list):
        listed = listed[0]
    if not isinstance(listed, list):
        raise DataError(f"{where}: the inputs of its last run of a model hold no 'messages'")
    return listed


def _outputs(run: Mapping[str, Any]) -> list[Any]:
    made = run.get("outputs")
    if not isinstance(made, Mapping):
        return []
    generations = made.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, Mapping) and generations.get("message"):
        return [generations["message"]]
    choices = made.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) and choices[0].get("message"):
        return [choices[0]["message"]]
    return list(made.get("messages") or ())[-1:]


def _output_of(run: Mapping[str, Any]) -> Mapping[str, Any]:
    outputs = run.get("outputs")
    output = outputs.get("output") if isinstance(outputs, Mapping) else None
    return _opened(output)[1] if isinstance(output, Mapping) else {}


def _call_of(run: Mapping[str, Any]) -> str:
    extra = run.get("extra") if isinstance(run.get("extra"), Mapping) else {}
    return str(_output_of(run).get("tool_call_id") or extra.get("tool_call_id") or "")  # type: ignore[union-attr]


def _status(run: Mapping[str, Any]) -> str:
    return str(_output_of(run).get("status") or "")
