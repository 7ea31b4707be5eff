"""OpenTelemetry spans of generative AI, as OTLP JSON (semantic conventions 1.37 and later: messages as attributes).

Of a trace the last span of a model's answer has the conversation: ``gen_ai.input.messages`` and
``gen_ai.output.messages``. Spans of ``execute_tool`` say what came of a call, in which order, and by ``error.type``
whether it failed, which the conventions require of a span that ended in an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.recording import outcome_of, recorded_log, specs_of
from callwright.errors import DataError
from callwright.language.messages import Message, Role, ToolCall
from callwright.tools.spec import ToolSpec

_ANSWERS: Final = ("chat", "generate_content", "text_completion")
_ROLES: Final[Mapping[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class OTel:
    """OTLP JSON: one export, or a line for each, as collectors write them to files."""

    name = "otel"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is an export of spans."""
        return b'"resourceSpans"' in head or b'"resource_spans"' in head

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each conversation (``gen_ai.conversation.id``, else the trace) in which a model answered."""
        grouped: dict[str, list[dict[str, Any]]] = {}
        for where, row in json_rows(path):
            for span in _spans(row, where):
                about = span["about"]
                grouped.setdefault(str(about.get("gen_ai.conversation.id") or span["trace"]), []).append(span)
        for name, spans in grouped.items():
            spans.sort(key=lambda span: span["start"])
            answers = [span for span in spans if span["about"].get("gen_ai.operation.name") in _ANSWERS]
            if answers:
                try:
                    yield _log(name, answers, spans, tools)
                except DataError as error:
                    raise DataError(f"{path}: trace {name}: {error}") from error


def _log(name: str, answers: Sequence[Any], spans: Sequence[Any], tools: Mapping[str, ToolSpec]) -> Log:
    last = answers[-1]["about"]
    findings = []
    if "gen_ai.input.messages" not in last and "gen_ai.output.messages" not in last:
        findings.append("the spans hold no messages; whoever instruments has to opt in to record content")
    messages = [
        *_instructions(last.get("gen_ai.system_instructions")),
        *_messages(last.get("gen_ai.input.messages")),
        *_messages(last.get("gen_ai.output.messages")),
    ]
    stated = next(
        (one["about"]["gen_ai.tool.definitions"] for one in answers[::-1] if "gen_ai.tool.definitions" in one["about"]),
        None,
    )
    offered = dict(tools) or (specs_of(_value(stated)) if stated else {})
    outcomes: dict[str, Outcome] = {}
    order = []
    for span in spans:
        about = span["about"]
        if about.get("gen_ai.operation.name") != "execute_tool" or not about.get("gen_ai.tool.call.id"):
            continue
        call_id = str(about["gen_ai.tool.call.id"])
        order.append(call_id)
        failed = "error.type" in about or span["failed"]
        result = about.get("gen_ai.tool.call.result")
        heard = next((one.text for one in messages if one.tool_call_id == call_id), None)
        if failed:
            told = _text(result) or span["said"] or heard or ""
            outcomes[call_id] = outcome_of(told, True, str(about.get("error.type") or "error"))
        elif result is not None or heard is not None:
            outcomes[call_id] = outcome_of(_text(result) if result is not None else heard or "", False)
    return recorded_log(name, messages, offered, outcomes, order=order, findings=findings)


# Messages -------------------------------------------------------------------------------------------------------------


def _instructions(given: Any) -> Iterator[Message]:
    parts = _value(given)
    if isinstance(parts, list) and parts:
        yield Message.system("\n".join(str(part.get("content", "")) for part in parts if isinstance(part, Mapping)))


def _messages(given: Any) -> Iterator[Message]:
    listed = _value(given)
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, Mapping):
            raise DataError("a message of gen_ai.input.messages is no object")
        role = _ROLES.get(str(one.get("role")))
        if role is None:
            raise DataError(f"a message has the role {one.get('role')!r:.40}")
        parts = [part for part in one.get("parts") or () if isinstance(part, Mapping)]
        results = [part for part in parts if part.get("type") == "tool_call_response"]
        if results:
            for part in results:
                said = part.get("response", part.get("result"))
                yield Message.tool(_text(said), str(part.get("id") or ""))
            continue
        said = "".join(str(part.get("content", "")) for part in parts if part.get("type") == "text")
        if role != "assistant":
            yield Message(role, said)
            continue
        thought = "\n".join(str(part.get("content", "")) for part in parts if part.get("type") == "reasoning")
        calls = [
            ToolCall(str(part.get("id") or ""), str(part.get("name") or ""), _text(part.get("arguments") or {}))
            for part in parts
            if part.get("type") == "tool_call"
        ]
        yield Message.assistant(said, calls, reasoning=thought)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _value(given: Any) -> Any:
    """An attribute that is structured, or that was written as JSON text where exporters know texts alone."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise DataError(f"an attribute that should hold JSON does not: {error}") from error


# OTLP -----------------------------------------------------------------------------------------------------------------


def _spans(row: Any, where: str) -> Iterator[dict[str, Any]]:
    exports = row.get("resourceSpans", row.get("resource_spans")) if isinstance(row, Mapping) else None
    if not isinstance(exports, list):
        raise DataError(f"{where}: an export of OTLP has 'resourceSpans', a list")
    try:
        for export in exports:
            for scope in export.get("scopeSpans", export.get("scope_spans")) or ():
                for span in scope.get("spans") or ():
                    status = span.get("status") or {}
                    yield {
                        "trace": str(span.get("traceId", span.get("trace_id", ""))),
                        "start": int(span.get("startTimeUnixNano", span.get("start_time_unix_nano", 0)) or 0),
                        "failed": status.get("code") in (2, "STATUS_CODE_ERROR"),
                        "said": str(status.get("message") or ""),
                        "about": {one["key"]: _any(one.get("value")) for one in span.get("attributes") or ()},
                    }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: it is no export of OTLP JSON: {type(error).__name__}: {error}") from error


def _any(value: Any) -> Any:
    """OTLP's AnyValue: an object with one member that says the type."""
    if not isinstance(value, Mapping):
        return value
    for key, one in value.items():
        if key == "intValue":
            return int(one)
        if key == "arrayValue":
            return [_any(member) for member in one.get("values") or ()]
        if key == "kvlistValue":
            return {member["key"]: _any(member.get("value")) for member in one.get("values") or ()}
        return one
    return None
