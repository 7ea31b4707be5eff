"""Harbor's Agent Trajectory Interchange Format (ATIF): one JSON document a trajectory, or one a line.

A step of the ``user`` or ``system`` is a message; a step of the ``agent`` is one with its ``tool_calls``, and its
``observation`` holds what they came to, by ``source_call_id``. Steps that were copied from another trajectory
(``is_copied_context``), and those that no model made (``llm_call_count`` 0), are not the model's turns: they are left
out. Trajectories of sub-agents that are embedded are logs of their own.

Source: RFC 0001 of harborframework.com, version 1.7 (April 2026); files since 1.0 are read. It has no mark for a
failed call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import peeked, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Failing, Shelf, outcome_of, told_calls, told_log
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.language.strict_json import kind as json_kind
from callwright.tools.spec import ToolSpec

MARK = "ATIF-v"


class Trajectories:
    """The log format ``atif``. ``failed`` is a regular expression that is found in the results of failed calls.

    Raises :class:`callwright.errors.DataError` for what is no expression.
    """

    def __init__(self, failed: str = "") -> None:
        self._failed = Failing(failed)

    @property
    def name(self) -> str:
        """``atif``."""
        return "atif"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first value states a version of the format."""
        return str(peeked(head).get("schema_version", "")).startswith(MARK)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each trajectory. Raises :class:`callwright.errors.DataError` with the line."""
        shelf = Shelf(tools)
        for piece in pieces_of(path):
            found = piece.value if isinstance(piece.value, list) else [piece.value]
            for number, one in enumerate(found, piece.number):
                yield from self._logs(one, piece.where, f"{path.name.partition('.')[0]}-{number}", shelf)

    def _logs(self, row: Any, where: str, usual: str, shelf: Shelf, parent: str = "") -> Iterator[Log]:
        if not isinstance(row, Mapping) or not str(row.get("schema_version", "")).startswith(MARK):
            raise DataError(f"{where}: no trajectory: expected an object whose 'schema_version' begins with {MARK}")
        findings: list[str] = []
        messages: list[Message] = []
        for number, step in enumerate(_list(row, "steps", where), 1):
            messages += _messages(step, f"{where}: step {number}", findings)
        name = str(row.get("trajectory_id") or row.get("session_id") or usual)
        agent = row.get("agent")
        definitions = agent.get("tool_definitions") if isinstance(agent, Mapping) else None
        origin = {"format": self.name, "version": row["schema_version"], **({"parent": parent} if parent else {})}
        calls = told_calls(messages, self._outcome, findings)
        yield told_log(name, messages, calls, shelf.world(definitions, where), origin=origin, findings=findings)
        for number, one in enumerate(_list(row, "subagent_trajectories", where)):
            yield from self._logs(one, f"{where}: sub-agent {number}", f"{name}-{number}", shelf, name)

    def _outcome(self, message: Message) -> Outcome:
        return outcome_of(message.text, self._failed(message.text))


def _messages(step: Any, where: str, findings: list[str]) -> Iterator[Message]:
    if not isinstance(step, Mapping):
        raise DataError(f"{where} is {json_kind(step)}, expected an object")
    source = step.get("source")
    if source not in ("system", "user", "agent"):
        raise DataError(f"{where}: 'source' is {source!r:.40}, expected system, user or agent")
    said = _content(step.get("message"), where)
    if source != "agent":
        yield Message("system" if source == "system" else "user", said)
        return
    if step.get("is_copied_context") is True or step.get("llm_call_count") == 0:
        why = "it was copied from another trajectory" if step.get("is_copied_context") else "no model made it"
        findings.append(f"step {step.get('step_id')} is left out: {why}")
        return
    calls = [_call(one, where) for one in _list(step, "tool_calls", where)]
    reasoning = step.get("reasoning_content")
    yield Message.assistant(said, calls, reasoning=reasoning if isinstance(reasoning, str) else "")
    observation = step.get("observation")
    for result in _list(observation, "results", where) if isinstance(observation, Mapping) else ():
        if not isinstance(result, Mapping):
            raise DataError(f"{where}: a result is {json_kind(result)}, expected an object")
        content, call_id = _content(result.get("content"), where), result.get("source_call_id")
        if isinstance(call_id, str) and call_id:
            yield Message.tool(content, call_id)
        elif content:
            yield Message.user(content)


def _call(given: Any, where: str) -> ToolCall:
    if not isinstance(given, Mapping) or not isinstance(given.get("function_name"), str):
        raise DataError(f"{where}: a call has no 'function_name'")
    arguments = given.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ToolCall(str(given.get("tool_call_id") or ""), given["function_name"], text)


def _content(given: Any, where: str) -> Any:
    """A text, or parts: texts and images (since 1.6)."""
    if given is None or isinstance(given, str):
        return given or ""
    if not isinstance(given, list) or not all(isinstance(part, str | Mapping) for part in given):
        raise DataError(f"{where}: a content is {json_kind(given)}, expected text or a list of parts")
    return tuple(
        part["text"] if isinstance(part, Mapping) and isinstance(part.get("text"), str) else part for part in given
    )


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = row.get(name)
    if value is None and name != "steps":
        return []
    if not isinstance(value, list):
        raise DataError(f"{where}: {name!r} is {json_kind(value)}, expected a list")
    return value
