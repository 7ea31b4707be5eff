"""Trajectories of the Agent Trajectory Interchange Format (Harbor's RFC 0001, read in its versions 1.0 to 1.7).

A step has a ``source`` (``system``, ``user``, ``agent``), a ``message``, and those of an agent ``reasoning_content``,
``tool_calls`` and an ``observation`` with a result for each call. Results have no flag for errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.recording import recorded_log, specs_of
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import ToolSpec

_SOURCES: Final = ("system", "user", "agent")


class ATIF:
    """A trajectory a file, or JSON lines of them."""

    name = "atif"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it states a version of the format."""
        return b'"ATIF-v' in head

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each trajectory."""
        for number, (where, row) in enumerate(json_rows(path)):
            if not isinstance(row, Mapping) or not isinstance(row.get("steps"), list):
                raise DataError(f"{where}: a trajectory has 'steps', a list")
            try:
                yield _log(row, tools, where, f"{path.stem}-{number}")
            except DataError as error:
                raise DataError(f"{where}: {error}" if where not in str(error) else str(error)) from error


def _log(row: Mapping[str, Any], tools: Mapping[str, ToolSpec], where: str, name: str) -> Log:
    agent = row.get("agent")
    stated = agent.get("tool_definitions") if isinstance(agent, Mapping) else None
    offered = dict(tools) or (specs_of(stated, where) if stated else {})
    messages = [message for step in row["steps"] for message in _messages(step)]
    findings = []
    if row.get("subagent_trajectories") or "subagent_trajectory_ref" in json.dumps(row["steps"]):
        findings.append("what its sub-agents did is in trajectories of their own, and is left out")
    told = row.get("trajectory_id") or row.get("session_id")
    return recorded_log(str(told or name), messages, offered, findings=findings)


def _messages(step: Any) -> Iterator[Message]:
    if not isinstance(step, Mapping) or step.get("source") not in _SOURCES:
        raise DataError(f"a step has a 'source', one of {', '.join(_SOURCES)}")
    text = _text(step.get("message"))
    if step["source"] != "agent":
        yield Message.system(text) if step["source"] == "system" else Message.user(text)
        return
    calls = [
        ToolCall(
            str(one.get("tool_call_id") or ""),
            str(one.get("function_name") or ""),
            one["arguments"] if isinstance(one.get("arguments"), str) else json.dumps(one.get("arguments") or {}),
        )
        for one in step.get("tool_calls") or ()
        if isinstance(one, Mapping)
    ]
    yield Message.assistant(text, calls, reasoning=str(step.get("reasoning_content") or ""))
    observation = step.get("observation")
    for result in observation.get("results") or () if isinstance(observation, Mapping) else ():
        if isinstance(result, Mapping):
            call_id = str(result.get("source_call_id") or "")
            said = _text(result.get("content"))
            yield Message.tool(said, call_id) if call_id else Message.user(said)


def _text(message: Any) -> str:
    if isinstance(message, list):
        return "".join(str(part.get("text", "")) for part in message if isinstance(part, Mapping))
    return "" if message is None else str(message)
