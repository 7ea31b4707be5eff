"""Items of OpenAI's Responses API: ``{"input": [...], "output": [...], "tools": [...]}``, or a list of items.

A ``function_call_output`` has a status, which says that it is complete and not that the call went well: no flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.recording import recorded_log, specs_of
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.responses import messages_of_items
from callwright.tools.spec import ToolSpec


class Responses:
    """JSON or JSON lines of items, or of requests with their responses."""

    name = "responses"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it holds items of functions, or a response with its input."""
        return b'"function_call_output"' in head or (
            b'"input"' in head and b'"output"' in head and b'"output_text"' in head
        )

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each request, or of a list of items."""
        for number, (where, row) in enumerate(_rows(path)):
            try:
                messages = _messages(row)
                stated = row.get("tools") if isinstance(row, Mapping) else None
                functions = [one for one in stated or () if isinstance(one, Mapping) and one.get("type") == "function"]
                offered = dict(tools) or (specs_of(functions, where) if functions else {})
            except DataError as error:
                raise DataError(f"{where}: {error}" if where not in str(error) else str(error)) from error
            name = str(row.get("id") or "") if isinstance(row, Mapping) else ""
            yield recorded_log(name or f"{path.stem}-{number}", messages, offered)


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    rows = list(json_rows(path))
    if rows and all(isinstance(row, Mapping) and ("type" in row or "role" in row) for _, row in rows):
        yield rows[0][0], [row for _, row in rows]
        return
    yield from rows


def _messages(row: Any) -> list[Message]:
    if isinstance(row, list):
        return list(messages_of_items(row))
    if not isinstance(row, Mapping) or not ("input" in row or "output" in row):
        raise DataError("expected a list of items, or an object with 'input' and 'output'")
    given, made = row.get("input") or [], row.get("output") or []
    given = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(given, list) or not isinstance(made, list):
        raise DataError("'input' and 'output' must be lists of items")
    said = row.get("instructions")
    head = [Message.system(said)] if isinstance(said, str) and said else []
    return [*head, *messages_of_items([*given, *made])]
