"""Rows of OpenAI's chat completions, as servers, proxies, fine-tuning files and batches write them.

A row is an object with ``messages`` and ``tools`` (the fine-tuning format); a request with its response (``request`` or
``body``, and ``response`` with ``choices``, as batches and proxies have them); an object with ``prompt`` and
``completion`` as lists of messages (TRL); or a list of messages. ``id``, ``custom_id`` and ``task`` name
it, and ``truth`` is what would have been right (:mod:`callwright.episodes.logs.truth`).

Source: platform.openai.com, "Chat completions" and "Batch" of the API reference (version 2.3.0 of its OpenAPI file),
and "Supervised fine-tuning". The format has no mark for a failed call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.episodes.logs.files import peek, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Failing, Shelf, outcome_of, read_messages, told_calls, told_log
from callwright.episodes.logs.truth import with_truth
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.strict_json import kind as json_kind
from callwright.tools.spec import ToolSpec

_ROLES = ("system", "developer", "user", "assistant", "tool")
_LANGCHAIN = ("lc", "data", "type", "invalid_tool_calls")


class OpenAIChat:
    """The log format ``openai``. ``failed`` is a regular expression that is found in the results of failed calls.

    Raises :class:`callwright.errors.DataError` for what is no expression.
    """

    def __init__(self, failed: str = "") -> None:
        self._failed = Failing(failed)

    @property
    def name(self) -> str:
        """``openai``."""
        return "openai"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first value is such a row, and none of another format that has messages, too."""
        value = peek(head)
        if _is_message(value):
            return head.lstrip()[:1] == b"["
        if isinstance(value, Mapping) and "callwright_log" in value:
            return False
        try:
            messages, _ = _parts(value, "")
        except DataError:
            return False
        return bool(messages) and _is_message(messages[0])

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each row. Raises :class:`callwright.errors.DataError` with the line."""
        shelf = Shelf(tools)
        for piece in pieces_of(path):
            for at, row in enumerate(rows := _rows(piece.value)):
                where = piece.where if len(rows) == 1 else f"{piece.where}: row {at}"
                number = piece.number if len(rows) == 1 else at + 1
                yield self._log(row, where, f"{path.name.partition('.')[0]}-{number}", shelf)

    def _log(self, row: Any, where: str, usual: str, shelf: Shelf) -> Log:
        given, definitions = _parts(row, where)
        messages = read_messages(given, where)
        findings: list[str] = []
        calls = told_calls(messages, self._outcome, findings)
        about = row if isinstance(row, Mapping) else {}
        name = about.get("id") or about.get("custom_id")
        origin = {"format": self.name, **({"task": about["task"]} if isinstance(about.get("task"), str | int) else {})}
        if "truth" in about:
            origin["truth"] = about["truth"]
        log = told_log(
            usual if name is None else str(name),
            messages,
            calls,
            shelf.world(definitions, where),
            origin=origin,
            findings=findings,
            truncated=_cut_off(about),
        )
        try:
            with_truth(log.task, about.get("truth"))  # so that what is wrong with it is said with its line
        except DataError as error:
            raise DataError(f"{where}: 'truth': {error}") from error
        return log

    def _outcome(self, message: Message) -> Any:
        return outcome_of(message.text, self._failed(message.text))


def _rows(value: Any) -> list[Any]:
    """The rows of a line or document: itself, or what is in it if it is a list of rows."""
    if isinstance(value, list) and value and not _is_message(value[0]):
        return value
    return [value]


def _parts(row: Any, where: str) -> tuple[list[Any], Any]:
    """The messages of a row, its answer among them, and the definitions of its tools."""
    if isinstance(row, list) and row:
        return row, None
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: a row is an object with 'messages', or a list of messages, not {json_kind(row)}")
    asked = next((row[key] for key in ("request", "body", "input") if isinstance(row.get(key), Mapping)), row)
    messages = asked.get("messages")
    if messages is None and isinstance(row.get("prompt"), list) and isinstance(row.get("completion"), list):
        messages = [*row["prompt"], *row["completion"]]
    if not isinstance(messages, list):
        raise DataError(f"{where}: the row has no list of 'messages'")
    tools = asked.get("tools", row.get("tools"))
    if tools is None and "functions" in asked:
        tools = asked["functions"]
    choices = _answer(row).get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) and "message" in choices[0]:
        messages = [*messages, choices[0]["message"]]
    return messages, tools


def _answer(row: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = next((row[key] for key in ("response", "output") if isinstance(row.get(key), Mapping)), row)
    body = answer.get("body")
    return body if isinstance(body, Mapping) else answer


def _cut_off(row: Mapping[str, Any]) -> bool:
    choices = _answer(row).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else row
    return isinstance(first, Mapping) and first.get("finish_reason") == "length"


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("role") in _ROLES and not any(key in value for key in _LANGCHAIN)
