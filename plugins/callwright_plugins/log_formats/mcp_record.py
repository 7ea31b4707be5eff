"""What ``callwright env serve --record`` wrote: every call of every session, and no conversation.

Outcomes are exact. There are no messages, so each call is a turn of its own, and what the agent said is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.world import UnknownWorld
from callwright.errors import DataError
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task


class MCPRecord:
    """JSON lines of calls and of what was done to sessions."""

    name = "mcp-record"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first row is one of a session."""
        return head.lstrip().startswith(b'{"session"')

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each session, from its beginning or its last reset on."""
        sessions: dict[str, list[Mapping[str, Any]]] = {}
        for where, row in json_rows(path):
            if not isinstance(row, Mapping) or not isinstance(row.get("session"), str):
                raise DataError(f"{where}: a row of a record has a 'session'")
            if "op" in row:
                if row["op"] == "reset":
                    sessions[row["session"]] = []
                continue
            if "tool" not in row or "kind" not in row:
                raise DataError(f"{where}: a row of a call has 'tool' and 'kind'")
            sessions.setdefault(row["session"], []).append(row)
        for name, rows in sessions.items():
            if rows:
                yield _log(name, rows, tools)


def _log(name: str, rows: list[Mapping[str, Any]], tools: Mapping[str, ToolSpec]) -> Log:
    offered = dict(tools) or {row["tool"]: ToolSpec(row["tool"]) for row in rows}
    calls = []
    before = ""
    for number, row in enumerate(rows):
        outcome = Outcome(row["kind"], row.get("value"), row.get("code") or "", row.get("message") or "")
        state = str(row.get("digest") or "")
        calls.append(Logged(number, row["tool"], row.get("arguments") or {}, outcome, "", before, state))
        before = state
    first = rows[0]
    world = UnknownWorld(offered)
    task = Task(name, "", offered, Answer(), world, str(first.get("scenario") or ""), int(first.get("seed") or 0))
    masked = None if tools else "a record does not say which tools were offered; give them (tools=, --tools FILE)"
    return Log.recorded(task, calls, findings=("a record holds no conversation: each call is a turn",), masked=masked)
