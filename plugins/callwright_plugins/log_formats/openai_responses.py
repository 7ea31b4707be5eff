"""Rows of OpenAI's Responses API: the items of a request and of its response.

A row is a response as the API returns it (``output``, ``instructions``, ``tools``) with the ``input`` that it was
asked with, beside it or under ``request``; an object with ``items``; or a list of items. Responses that name a
``previous_response_id`` of the same file continue that one: they are one log.

Source: platform.openai.com, "Responses" of the API reference (version 2.3.0 of its OpenAPI file). A
``function_call_output`` has no mark for a failed call; an ``mcp_call``, which OpenAI's servers run, has its ``error``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import peek, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Failing, Shelf, outcome_of, told_calls, told_log
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.others.responses import messages_of_items
from callwright.language.strict_json import kind as json_kind
from callwright.tools.spec import ToolSpec

_READ = ("message", "reasoning", "function_call", "function_call_output", "item_reference")
_ITEMS = (*_READ[1:4], "mcp_call")


@define
class _Row:
    """A response, or a conversation of several."""

    id: str
    where: str
    items: list[Any]
    tools: Any
    before: str = ""
    truncated: bool = False
    task: Any = None
    findings: list[str] = field(factory=list)


class OpenAIResponses:
    """The log format ``responses``. ``failed`` is a regular expression that is found in the results of failed calls.

    Raises :class:`callwright.errors.DataError` for what is no expression.
    """

    def __init__(self, failed: str = "") -> None:
        self._failed = Failing(failed)

    @property
    def name(self) -> str:
        """``responses``."""
        return "responses"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first value is a response, or has items that only this API has."""
        value = peek(head)
        if not isinstance(value, Mapping):
            return False
        answer = value["response"] if isinstance(value.get("response"), Mapping) else value
        if answer.get("object") == "response" or value.get("type") in _ITEMS:
            return True
        items = value.get("items", value.get("output", value.get("input")))
        return isinstance(items, list) and any(isinstance(one, Mapping) and one.get("type") in _ITEMS for one in items)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each conversation. Raises :class:`callwright.errors.DataError` with the line."""
        # Those that nothing has gone on with, and the latest of all: several may go on with one.
        shelf, waiting, latest = Shelf(tools), dict[str, _Row](), dict[str, _Row]()
        for piece in pieces_of(path):
            for at, row in enumerate(rows := _rows(piece.value)):
                number = piece.number if len(rows) == 1 else at + 1
                where = piece.where if len(rows) == 1 else f"{piece.where}: row {at}"
                read = _read(row, where, f"{path.name.partition('.')[0]}-{number}")
                if before := (waiting.pop(read.before, None) or latest.get(read.before)) if read.before else None:
                    read.items = [*before.items, *read.items]
                    read.findings = [*before.findings, *read.findings]
                    read.task = before.task if read.task is None else read.task
                    read.tools = read.tools if read.tools is not None else before.tools
                elif read.before:
                    read.findings.append(f"the response before it, {read.before}, is not in the file")
                if (same := waiting.pop(read.id, None)) is not None:  # another one of this id
                    yield self._log(same, shelf)
                waiting[read.id] = latest[read.id] = read
                if len(waiting) > 1000:  # a conversation goes on soon, or not at all
                    yield self._log(waiting.pop(next(iter(waiting))), shelf)
                if len(latest) > 1000:
                    del latest[next(iter(latest))]
        for left in waiting.values():
            yield self._log(left, shelf)

    def _log(self, row: _Row, shelf: Shelf) -> Log:
        known: dict[str, Outcome] = {}
        try:
            messages = list(messages_of_items(_readable(row, known)))
        except DataError as error:
            raise DataError(f"{row.where}: {error}") from error

        def outcome(message: Message) -> Outcome:
            found = known.get(message.tool_call_id)
            return outcome_of(message.text, self._failed(message.text)) if found is None else found

        calls = told_calls(messages, outcome, row.findings)
        origin = {"format": self.name, **({"task": row.task} if isinstance(row.task, str | int) else {})}
        world = shelf.world(row.tools, row.where)
        return told_log(row.id, messages, calls, world, origin=origin, findings=row.findings, truncated=row.truncated)


def _rows(value: Any) -> list[Any]:
    if isinstance(value, list) and value and not _is_item(value[0]):
        return value
    return [value]


def _is_item(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("type") in (*_READ, *_ITEMS) or "role" in value)


def _read(row: Any, where: str, usual: str) -> _Row:
    if isinstance(row, list) and row:
        return _Row(usual, where, row, None)
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: a row is a response, or a list of items, not {json_kind(row)}")
    asked = row["request"] if isinstance(row.get("request"), Mapping) else row
    answer = row["response"] if isinstance(row.get("response"), Mapping) else row
    given = asked.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    output = row.get("items", answer.get("output", []))
    if not isinstance(items, list) or not isinstance(output, list) or not (items or output):
        raise DataError(f"{where}: the row has no list of items: 'items', or 'input' and 'output'")
    told = asked.get("instructions") or answer.get("instructions")
    system = [{"role": "system", "content": told}] if isinstance(told, str) and told else []
    before = asked.get("previous_response_id") or answer.get("previous_response_id")
    cut = answer.get("incomplete_details")
    tools = asked.get("tools", answer.get("tools"))
    if isinstance(tools, list):  # those of OpenAI's own are no functions: no call of them is read
        tools = [one for one in tools if not isinstance(one, Mapping) or one.get("type", "function") == "function"]
    return _Row(
        str(answer.get("id") or usual),
        where,
        [*([] if before else system), *items, *output],
        tools,
        str(before or ""),
        isinstance(cut, Mapping) and cut.get("reason") == "max_output_tokens",
        row.get("task"),
    )


def _readable(row: _Row, known: dict[str, Outcome]) -> Iterator[Any]:
    """The items that are read; calls of MCP tools as calls of functions, whose outcomes are known."""
    for item in row.items:
        kind = item.get("type") or "message" if isinstance(item, Mapping) else "message"
        if kind == "mcp_call":
            call_id, error = str(item.get("id") or ""), item.get("error")
            yield {**item, "type": "function_call", "call_id": call_id}
            if error is None and item.get("output") is None:
                continue
            text = item["output"] if error is None else error
            text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
            known[call_id] = outcome_of(text, error is not None, "mcp")
            yield {"type": "function_call_output", "call_id": call_id, "output": text}
        elif kind in _READ:
            yield item
        else:
            row.findings.append(f"an item of the type {kind!r:.60} is left out: it is no call of a function")
