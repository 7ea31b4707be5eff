"""OpenTelemetry's GenAI spans in OTLP JSON: what the collector's file exporter and most back ends write.

Requests to models are spans (or events ``gen_ai.client.inference.operation.details``) with ``gen_ai.input.messages``,
``gen_ai.output.messages``, ``gen_ai.system_instructions`` and ``gen_ai.tool.definitions``; runs of tools are spans with
``gen_ai.operation.name`` ``execute_tool``. The requests below one ``invoke_agent`` span are a log, as are those of a
trace below none. Instrumentations record contents only where they are told to.

Source: the GenAI semantic conventions, version 0.1.0 of their own repository (development; before that 1.37 to 1.41 of
the OpenTelemetry semantic conventions), and OTLP 1.10 in its JSON encoding. A failed run has ``error.type``, or the
status ``ERROR``; the conventions ask for it wherever an operation ended in an error, so that a run without is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import peeked, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Shelf, outcome_of
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import ToolSpec
from callwright_plugins.log_formats.transcripts import Asked, Ran, transcribed

DETAILS: Final = "gen_ai.client.inference.operation.details"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_TOP: Final = ("resourceSpans", "resourceLogs")
_ERROR: Final = (2, "STATUS_CODE_ERROR")


@define(eq=False)
class Span:
    """A span with its attributes as plain values."""

    id: str
    parent: str
    trace: str
    begin: int
    attributes: dict[str, Any] = field(repr=False)
    failed: bool = False
    message: str = ""


class OpenTelemetry:
    """The log format ``otel``."""

    @property
    def name(self) -> str:
        """``otel``."""
        return "otel"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first value is an export of spans or events."""
        return any(key in peeked(head) for key in _TOP)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each agent of each trace. Raises :class:`callwright.errors.DataError` with the line."""
        spans: dict[tuple[str, str], Span] = {}
        details: list[tuple[str, str, int, dict[str, Any]]] = []
        for piece in pieces_of(path):
            if not isinstance(piece.value, Mapping) or not any(key in piece.value for key in _TOP):
                raise DataError(f"{piece.where}: no export of OTLP: expected an object with {' or '.join(_TOP)}")
            try:
                for span, events in _spans(piece.value):
                    spans[span.trace, span.id] = span
                    details += [(span.trace, span.id, span.begin, event) for event in events]
                details += _records(piece.value)
            except (TypeError, AttributeError, ValueError, KeyError) as error:
                raise DataError(f"{piece.where}: not as OTLP encodes spans: {error!r}"[:300]) from error
        for trace, at, begin, attributes in details:
            about = spans.setdefault((trace, at), Span(at, "", trace, begin, {}))  # whose span is in another file
            about.attributes = {**attributes, **about.attributes}
        yield from _logs(spans, Shelf(tools), str(path))


def _spans(export: Mapping[str, Any]) -> Iterator[tuple[Span, list[dict[str, Any]]]]:
    for scope in _each(_each([export], "resourceSpans"), "scopeSpans"):
        for one in scope.get("spans") or ():
            status = one.get("status") or {}
            attributes = _table(one.get("attributes"))
            events = [_table(each.get("attributes")) for each in one.get("events") or () if each.get("name") == DETAILS]
            span = Span(
                str(one.get("spanId") or ""),
                str(one.get("parentSpanId") or ""),
                str(one.get("traceId") or ""),
                int(one.get("startTimeUnixNano") or 0),
                attributes,
                status.get("code") in _ERROR or bool(attributes.get("error.type")),
                str(status.get("message") or ""),
            )
            yield span, events


def _records(export: Mapping[str, Any]) -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    """The details that stand in log records, with the span that they are about."""
    for scope in _each(_each([export], "resourceLogs"), "scopeLogs"):
        for one in scope.get("logRecords") or ():
            attributes = _table(one.get("attributes"))
            if DETAILS in (one.get("eventName"), attributes.get("event.name")):
                body = _plain(one["body"]) if one.get("body") else None
                held = body if isinstance(body, dict) else {}
                begin = int(one.get("timeUnixNano") or 0)
                yield str(one.get("traceId") or ""), str(one.get("spanId") or ""), begin, {**held, **attributes}


def _each(values: Iterable[Any], key: str) -> Iterator[Any]:
    for value in values:
        yield from value.get(key) or ()


def _table(pairs: Any) -> dict[str, Any]:
    return {str(pair["key"]): _plain(pair.get("value")) for pair in pairs or ()}


def _plain(value: Any) -> Any:
    """The value of an ``AnyValue``."""
    if not isinstance(value, Mapping) or not value:
        return None
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [_plain(one) for one in held.get("values") or ()]
    if kind == "kvlistValue":
        return _table(held.get("values"))
    return int(held) if kind == "intValue" else held  # OTLP writes 64-bit integers as texts


def _logs(spans: Mapping[tuple[str, str], Span], shelf: Shelf, where: str) -> Iterator[Log]:
    agents: dict[tuple[str, str], list[Span]] = {}
    for span in spans.values():
        if _INPUT in span.attributes or _OUTPUT in span.attributes or _operation(span) == "execute_tool":
            agents.setdefault((span.trace, _agent(span, spans)), []).append(span)
    for (trace, at), members in agents.items():
        agent = spans.get((trace, at))
        if any(_operation(one) == "execute_tool" for one in members) and agent is None and len(members) == 1:
            continue  # a tool that nobody asked for here, as on the side of a server
        yield _log(trace, at, agent, [one for one in members if one is not agent], shelf, where)


def _operation(span: Span) -> Any:
    return span.attributes.get("gen_ai.operation.name")


def _agent(span: Span, spans: Mapping[tuple[str, str], Span]) -> str:
    """The agent that a span belongs to: the nearest ``invoke_agent`` around it. Empty if there is none."""
    at, seen = span if _operation(span) == "invoke_agent" else spans.get((span.trace, span.parent)), set[str]()
    while at is not None and at.id not in seen:
        if _operation(at) == "invoke_agent":
            return at.id
        seen.add(at.id)
        at = spans.get((at.trace, at.parent))
    return ""


def _log(trace: str, at: str, agent: Span | None, members: list[Span], shelf: Shelf, where: str) -> Log:
    place = f"{where}: trace {trace}"
    runs = [one for one in members if _operation(one) == "execute_tool"]
    inner = {one.id for one in runs}
    ran = [_ran(one) for one in runs if one.parent not in inner]  # an MCP client's span within is the same run
    requests = [one for one in members if one not in runs]
    findings: list[str] = []
    if not requests and agent is not None and _OUTPUT in agent.attributes:
        requests = [agent]
        findings.append("the conversation is that of the agent's span: no request to a model was recorded")
    asked = [_asked(one, place) for one in requests]
    held = [
        one.attributes["gen_ai.tool.definitions"]
        for one in (*requests, *([agent] if agent else []))
        if "gen_ai.tool.definitions" in one.attributes
    ]
    definitions = _decoded(held[-1]) if held else None
    if isinstance(definitions, list) and not all(_is_specified(one) for one in definitions):
        findings.append("the file names the tools without their parameters: they are not taken as offered")
        definitions = None
    about = agent or min(requests or members, key=lambda one: one.begin)
    name = (agent.attributes.get("gen_ai.conversation.id") if agent else None) or (f"{trace}-{at}" if at else trace)
    origin = {"format": "otel", "trace": trace, "span": about.id}
    return transcribed(str(name), asked, ran, shelf.world(definitions, place), origin, findings)


def _is_specified(definition: Any) -> bool:
    return isinstance(definition, Mapping) and isinstance(definition.get("parameters"), Mapping)


def _asked(span: Span, where: str) -> Asked:
    given, answers = (_decoded(span.attributes.get(name)) for name in (_INPUT, _OUTPUT))
    system = _decoded(span.attributes.get("gen_ai.system_instructions"))
    try:
        inputs = None if given is None else [one for each in given for one in _messages(each)]
        outputs = [one for each in answers or () for one in _messages(each)]
        told = "".join(_said(part) for part in system or () if isinstance(part, Mapping))
    except (TypeError, AttributeError, KeyError) as error:
        raise DataError(f"{where}, span {span.id}: messages are not as the conventions have them: {error!r}") from error
    if inputs is not None and told:
        inputs = [Message.system(told), *inputs]
    reasons = span.attributes.get("gen_ai.response.finish_reasons") or [
        one.get("finish_reason") for one in answers or () if isinstance(one, Mapping)
    ]
    return Asked(span.begin, inputs, outputs, bool(reasons) and reasons[0] == "length")


def _messages(given: Mapping[str, Any]) -> Iterator[Message]:
    """A message of the conventions: one of ours, and one of the role ``tool`` for each response of a tool in it."""
    role, parts = str(given["role"]), given["parts"]
    calls, said, thought = [], [], []
    for part in parts:
        kind = part.get("type")
        if kind == "tool_call_response":
            yield Message.tool(_as_text(part.get("response", part.get("result"))), str(part.get("id") or ""))
        elif kind == "tool_call":
            calls.append(ToolCall(str(part.get("id") or ""), str(part["name"]), _as_text(part.get("arguments"))))
        elif kind == "reasoning":
            thought.append(_said(part))
        else:
            said.append(_said(part) if kind == "text" else part)
    if calls or said or thought:
        known: Any = role if role in ("system", "developer", "user", "assistant") else "user"
        content = "".join(said) if all(isinstance(one, str) for one in said) else tuple(said)
        yield Message(known, content, tool_calls=calls, reasoning="\n".join(thought))


def _said(part: Mapping[str, Any]) -> str:
    return str(part.get("content") or "")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _decoded(value: Any) -> Any:
    """An attribute in its structured form; a text that holds it as JSON is decoded."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _ran(span: Span) -> Ran:
    held = span.attributes
    result, error = held.get("gen_ai.tool.call.result"), str(held.get("error.type") or "")
    text = None if result is None else _as_text(result)
    if span.failed:
        outcome = outcome_of(text or span.message or error, True, error)
    elif text is None:
        message = "the log says that this call executed, and not what it returned"
        outcome = Outcome("unknown", None, "", message)
    else:
        outcome = outcome_of(text, False, value=None if isinstance(result, str) else result)
    given = held.get("gen_ai.tool.call.arguments")
    arguments = _decoded(given) if given is not None else None
    return Ran(
        span.begin,
        str(held.get("gen_ai.tool.name") or ""),
        arguments if isinstance(arguments, dict) else None,
        outcome,
        str(held.get("gen_ai.tool.call.id") or ""),
        text,
    )
