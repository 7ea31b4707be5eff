"""Traces and observations that Langfuse exports: of its API (``traces/{id}`` with ``observations``), its interface, or
its blob storage (a row an observation, with ``trace_id`` for ``traceId``).

Observations of the type ``GENERATION`` are requests: ``input`` has the messages, with ``tools`` beside them, ``output``
the answer. Those of the type ``TOOL`` are runs of tools. The requests of a trace are a log; those below an observation
of a tool, such as of a sub-agent, are another one. A run of a tool whose ``level`` is ``ERROR`` failed, with the
``statusMessage``; ``DEFAULT`` and ``DEBUG`` are those of a run that ended well, ``WARNING`` says neither.

Source: langfuse.com, "Observation types", "Blob storage export field reference" and the schema of ``Observation`` in
the public API (as of November 2026).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import peek, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Shelf, outcome_of
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.strict_json import kind as json_kind
from callwright.tools.spec import ToolSpec
from callwright_plugins.log_formats.langchain import is_message, read_message
from callwright_plugins.log_formats.transcripts import Asked, Ran, transcribed

_FAILED: Final = {"ERROR": True, "DEFAULT": False, "DEBUG": False}
#: Keys of the API and of the interface, as blob storage writes them.
_KEYS: Final = {
    "trace_id": "traceId",
    "parent_observation_id": "parentObservationId",
    "start_time": "startTime",
    "status_message": "statusMessage",
    "tool_definitions": "toolDefinitions",
}
_TYPES: Final = frozenset(
    ("SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)


class LangfuseTraces:
    """The log format ``langfuse``."""

    @property
    def name(self) -> str:
        """``langfuse``."""
        return "langfuse"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first value is an observation, or a trace with some."""
        value = peek(head)
        if not isinstance(value, Mapping):
            return False
        held = value.get("observations", value.get("data"))
        first = held[0] if isinstance(held, list) and held else value
        return isinstance(first, Mapping) and _is_observation(_named(first))

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each agent of each trace. Raises :class:`callwright.errors.DataError` with the line."""
        traces: dict[str, dict[str, Mapping[str, Any]]] = {}
        places: dict[str, str] = {}
        for piece in pieces_of(path):
            for one in _observations(piece.value, piece.where):
                trace = str(one.get("traceId"))
                traces.setdefault(trace, {})[str(one["id"])] = one
                places.setdefault(trace, f"{piece.where}: trace {trace}")
        shelf = Shelf(tools)
        for trace, held in traces.items():
            yield from _logs(trace, held, shelf, places[trace])


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_KEYS.get(key, key): value for key, value in row.items()}


def _is_observation(row: Mapping[str, Any]) -> bool:
    return str(row.get("type")).upper() in _TYPES and "traceId" in row and "id" in row


def _observations(value: Any, where: str) -> Iterator[Mapping[str, Any]]:
    for row in value if isinstance(value, list) else [value]:
        if not isinstance(row, Mapping):
            raise DataError(f"{where}: no trace or observation: expected an object, not {json_kind(row)}")
        held = row.get("observations", row.get("data"))
        for one in held if isinstance(held, list) else [row]:
            if not isinstance(one, Mapping):
                raise DataError(f"{where}: an observation is {json_kind(one)}, expected an object")
            named = _named(one)
            named.setdefault("traceId", row.get("id") if held is not None else None)
            if not _is_observation(named):
                raise DataError(f"{where}: no observation: expected an object with 'id', 'traceId' and a 'type'")
            yield named


def _logs(trace: str, held: Mapping[str, Mapping[str, Any]], shelf: Shelf, where: str) -> Iterator[Log]:
    agents: dict[str, list[Mapping[str, Any]]] = {}
    for one in held.values():
        if _type(one) in ("GENERATION", "TOOL"):
            agents.setdefault(_around(one, held), []).append(one)
    for around, members in agents.items():
        requests = [one for one in members if _type(one) == "GENERATION"]
        if not requests:
            continue
        statuses: dict[str, bool | None] = {}
        asked = [_asked(one, where, statuses) for one in requests]
        ran = [_ran(one, where, statuses) for one in members if _type(one) == "TOOL"]
        found = [tools for one in requests if (tools := _tools(one)) is not None]
        origin = {"format": "langfuse", "trace": trace, "span": around or str(requests[0]["id"])}
        name = f"{trace}-{around}" if around else trace
        yield transcribed(name, asked, ran, shelf.world(found[-1] if found else None, where), origin)


def _type(one: Mapping[str, Any]) -> str:
    return str(one["type"]).upper()


def _around(one: Mapping[str, Any], held: Mapping[str, Mapping[str, Any]]) -> str:
    """The observation of a tool that one is below; empty if there is none."""
    at, seen = held.get(str(one.get("parentObservationId"))), set[str]()
    while at is not None and (name := str(at["id"])) not in seen:
        if _type(at) == "TOOL":
            return name
        seen.add(name)
        at = held.get(str(at.get("parentObservationId")))
    return ""


def _at(one: Mapping[str, Any]) -> str:
    return str(one.get("startTime") or "").removesuffix("Z")  # which comes after ".5Z", as text


def _asked(one: Mapping[str, Any], where: str, statuses: dict[str, bool | None]) -> Asked:
    given, answer = _decoded(one.get("input")), _decoded(one.get("output"))
    messages = given.get("messages") if isinstance(given, Mapping) else given
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    answers = answer if isinstance(answer, list) else [answer]
    inputs = messages if isinstance(messages, list) and messages else None
    return Asked(
        _at(one),
        None if inputs is None else [_message(each, "user", where, statuses) for each in inputs],
        [_message(each, "assistant", where, statuses) for each in answers if each is not None],
    )


def _message(given: Any, usual: str, where: str, statuses: dict[str, bool | None]) -> Message:
    """A message of OpenAI's format or LangChain's; anything else is what somebody said."""
    if isinstance(given, Mapping):
        if is_message(given):
            return read_message(given, where, statuses)
        given = given["message"] if isinstance(given.get("message"), Mapping) else given
        if "role" in given:
            try:
                return Message.from_openai(given)
            except DataError as error:
                raise DataError(f"{where}: {error}") from error
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return Message.from_openai({"role": usual, "content": text})


def _tools(one: Mapping[str, Any]) -> Any:
    given = _decoded(one.get("input"))
    for tools in (given.get("tools") if isinstance(given, Mapping) else None, _decoded(one.get("toolDefinitions"))):
        if isinstance(tools, Mapping):  # of blob storage: definitions as texts, by the name of the tool
            tools = [_decoded(value) for value in tools.values()]
        if isinstance(tools, list) and tools and all(_is_specified(tool) for tool in tools):
            return tools
    return None


def _is_specified(tool: Any) -> bool:
    return isinstance(tool, Mapping) and any(key in tool for key in ("function", "parameters", "input_schema"))


def _ran(one: Mapping[str, Any], where: str, statuses: dict[str, bool | None]) -> Ran:
    given, result = _decoded(one.get("input")), _decoded(one.get("output"))
    call_id, text, value = "", None, None
    failed = _FAILED.get(str(one.get("level", "")).upper())
    if isinstance(result, Mapping) and is_message(result):
        message = read_message(result, where, statuses)
        call_id, text = message.tool_call_id, message.text
        failed = failed or statuses.get(call_id) or False if failed is not None else statuses.get(call_id)
    elif result is not None:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        value = None if isinstance(result, str) else result
    if failed:
        told = text if text is not None else str(one.get("statusMessage") or "")
        outcome = outcome_of(told, True, "error")
    elif text is None:
        outcome = Outcome("unknown", None, "", "the log does not say what this call returned")
    else:
        outcome = outcome_of(text, failed, value=value if failed is False else None)
    metadata = _decoded(one.get("metadata"))
    if not call_id and isinstance(metadata, Mapping):
        call_id = str(metadata.get("tool_call_id") or "")
    arguments = dict(given) if isinstance(given, Mapping) else None
    return Ran(_at(one), str(one.get("name") or ""), arguments, outcome, call_id, text)


def _decoded(value: Any) -> Any:
    """A value that blob storage wrote as a text of JSON; any other one as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
