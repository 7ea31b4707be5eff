"""Traces of Langfuse: a trace with its ``observations`` (Download JSON), or rows of observations (its API and exports).

The last ``GENERATION`` of a trace has the conversation as its input and output. A ``TOOL`` observation says what came
of a call; its ``level`` is ``ERROR`` where it failed. It rarely holds the call's id, so it is matched by name and
arguments, in time order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.recording import outcome_of, recorded_log, specs_of
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec


class Langfuse:
    """JSON or JSON lines of traces, or of observations."""

    name = "langfuse"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it holds observations with their types."""
        compact = head.replace(b" ", b"")
        return b'"type":"GENERATION"' in compact or (b'"observations"' in compact and b'"startTime"' in compact)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each trace in which a model answered."""
        traces: dict[str, list[Mapping[str, Any]]] = {}
        for where, row in json_rows(path):
            if not isinstance(row, Mapping):
                raise DataError(f"{where}: expected a trace or an observation of Langfuse")
            listed = row.get("observations", row.get("data", [row]))
            if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
                raise DataError(f"{where}: 'observations' must be a list of objects")
            for one in listed:
                if "type" not in one:
                    raise DataError(f"{where}: an observation has no 'type'")
                traces.setdefault(str(one.get("traceId") or row.get("id")), []).append(one)
        for name, members in traces.items():
            members = sorted(members, key=lambda one: str(one.get("startTime") or ""))
            answers = [one for one in members if one["type"] == "GENERATION"]
            if answers:
                try:
                    yield _log(name, answers[-1], members, tools)
                except DataError as error:
                    raise DataError(f"{path}: trace {name}: {error}") from error


def _log(name: str, last: Mapping[str, Any], members: Sequence[Any], tools: Mapping[str, ToolSpec]) -> Log:
    given, made = _value(last.get("input")), _value(last.get("output"))
    listed = given.get("messages") if isinstance(given, Mapping) else given
    stated = given.get("tools") if isinstance(given, Mapping) else None
    if not isinstance(listed, list):
        raise DataError("the input of its last generation holds no messages")
    said = [made] if isinstance(made, Mapping) and "role" in made else made if isinstance(made, list) else []
    if isinstance(made, str):
        said = [{"role": "assistant", "content": made}]
    messages = [Message.from_openai(one) for one in [*listed, *said]]
    calls = [call for message in messages if message.role == "assistant" for call in message.tool_calls]
    outcomes: dict[str, Outcome] = {}
    order = []
    for one in (member for member in members if member["type"] == "TOOL"):
        arguments = _value(one.get("input"))
        found = next(
            (
                call
                for call in calls
                if call.id not in outcomes
                and call.name == one.get("name")
                and _value(call.arguments or "{}") == arguments
            ),
            None,
        )
        if found is not None:
            order.append(found.id)
            failed = one.get("level") == "ERROR"
            text = _text(one.get("output")) or (str(one.get("statusMessage") or "") if failed else "")
            outcomes[found.id] = outcome_of(text, failed)
    offered = dict(tools) or (specs_of(stated) if stated else {})
    return recorded_log(name, messages, offered, outcomes, order=order)


def _value(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
