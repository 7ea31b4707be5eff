"""Rows of chat messages, as OpenAI's fine-tuning files, most data sets and most home-made logs have them.

A row is ``{"messages": [...], "tools": [...]}``, or a list of messages alone; ``id`` names it. No flag says whether a
call failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.recording import recorded_log, specs_of
from callwright.errors import DataError, MissingExtra
from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec

#: What stands in files of formats that hold such messages, too.
_OTHERS: Final = (
    b'"callwright_log"',
    b'"samples"',
    b'"observations"',
    b'"GENERATION"',
    b'"run_type"',
    b'"resourceSpans"',
    b'"lc":1',
    b'"type":"human"',
    b'"type":"function_call',
    b'"output_text"',
)


class OpenAIChat:
    """JSON, JSON lines or Parquet with a column ``messages``."""

    name = "openai"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it holds messages with roles and contents, and nothing that only other formats have."""
        if head.startswith(b"PAR1"):
            return True
        compact = head.replace(b" ", b"").replace(b"\n", b"")
        if head.startswith(b"PK") or any(mark in compact for mark in _OTHERS):
            return False
        return b'"role":' in compact and (b'"messages":[' in compact or compact.startswith((b"[{", b"[[")))

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each row."""
        rows = _parquet(path) if path.suffix == ".parquet" else _whole(json_rows(path))
        for number, (where, row) in enumerate(rows):
            listed = row.get("messages") if isinstance(row, Mapping) else row
            if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
                raise DataError(f"{where}: expected 'messages', a list of objects with 'role'")
            try:
                messages = [Message.from_openai(one) for one in listed]
                stated = row.get("tools") if isinstance(row, Mapping) else None
                offered = dict(tools) or (specs_of(_read(stated), where) if stated else {})
            except DataError as error:
                raise DataError(f"{where}: {error}" if where not in str(error) else str(error)) from error
            name = str(row.get("id") or "") if isinstance(row, Mapping) else ""
            yield recorded_log(name or f"{path.stem}-{number}", messages, offered)


def _read(stated: Any) -> Any:
    """Tools may be a text of JSON, as columns of data sets have them."""
    return json.loads(stated) if isinstance(stated, str) else stated


def _whole(rows: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Rows; a list whose members are messages is one conversation."""
    first = list(rows)
    if first and all(isinstance(row, Mapping) and "role" in row for _, row in first):
        yield first[0][0], [row for _, row in first]
        return
    yield from first


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise MissingExtra("reading Parquet", "data", "pyarrow") from error
    try:
        file = ParquetFile(path)
    except (ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: it is no Parquet file: {error}") from error
    number = 0
    for batch in file.iter_batches(batch_size=256):
        for row in batch.to_pylist():
            yield f"{path}[{number}]", row
            number += 1
