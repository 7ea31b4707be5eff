"""Rows of a source, one after the other: lines from a place on, or what a reader of logs makes of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import frozen

from callwright.episodes.logs.files import parse, pieces_of
from callwright.walk.task_rows.head import is_head
from callwright_plugins.viewer.sources.finding import Source

if TYPE_CHECKING:
    from callwright.episodes.logs.log import Log
    from callwright.plugins import Registry


@frozen
class Placed:
    """A row with the bytes that it stands in. ``raw`` is the row itself where it has no place of its own."""

    row: dict[str, Any] | None
    start: int
    size: int
    raw: bytes | None = None


def rows_of(source: Source, start: int, registry: Registry) -> Iterator[Placed]:
    """The rows from byte ``start`` on. A line that is no object has the row ``None``; a torn last one is left out.

    Sources without lines are read whole. Raises :class:`callwright.errors.DataError` for a log that cannot be read.
    """
    if source.is_lines:
        yield from _lines(source, start)
    elif source.kind == "log":
        from callwright.episodes.logs.reading import read_log

        for log in read_log(source.rows, source.format, registry=registry):
            yield _whole(log_row(log))
    else:
        for piece in pieces_of(source.rows):
            if isinstance(piece.value, dict) and not is_head(piece.value):
                yield _whole(piece.value)


def _lines(source: Source, start: int) -> Iterator[Placed]:
    try:
        file = source.rows.open("rb")
    except OSError:  # not begun yet
        return
    with file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            row = read_row(line)
            if not (start == 0 and row is not None and is_head(row)):
                yield Placed(row, start, len(line))
            start += len(line)


def read_row(line: bytes) -> dict[str, Any] | None:
    """The row of a line; ``None`` for what is no object of JSON."""
    try:
        row = parse(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _whole(row: dict[str, Any]) -> Placed:
    return Placed(row, 0, 0, json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass"))


def log_row(log: Log) -> dict[str, Any]:
    """A recorded session as a row: its conversation and its calls."""
    return {
        "id": log.task.id,
        "task": log.task.id,
        "query": log.task.query,
        "messages": [message.to_openai() for message in log.messages],
        "trace": [
            {
                "call": call.number,
                "tool": call.tool,
                "arguments": call.arguments,
                "kind": call.outcome.kind,
                **({} if call.outcome.value is None else {"value": call.outcome.value}),
                **({"code": call.outcome.code, "message": call.outcome.message} if call.outcome.failed else {}),
            }
            for call in log.calls
        ],
        "findings": list(log.findings()),
        "truncated": log.truncated,
    }
