"""Our own format: a row of a log as :func:`callwright.episodes.write_logs` writes it. Nothing but the world is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.reading import VERSION, json_rows
from callwright.episodes.logs.recording import specs_of
from callwright.episodes.logs.world import UnknownWorld
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task


class Callwright:
    """Rows with ``callwright_log``: 1."""

    name = "callwright"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first row says that it is one."""
        return head.lstrip().startswith(b'{"' + VERSION.encode())

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each row. ``tools`` take the place of those of the row."""
        for where, row in json_rows(path):
            try:
                yield _log(row, tools, where)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise DataError(f"{where}: it is no row of a log: {type(error).__name__}: {error}") from error


def _log(row: Any, tools: Mapping[str, ToolSpec], where: str) -> Log:
    if not isinstance(row, Mapping) or row.get(VERSION) != 1:
        raise DataError(f"{where}: it is no row of a log: {VERSION!r} is not 1")
    offered = dict(tools) or specs_of(row["tools"], where)
    world = UnknownWorld(offered, str(row["environment"]))
    task = Task(str(row["id"]), str(row["query"]), offered, Answer(), world, str(row["scenario"]), int(row["seed"]))
    calls = [
        Logged(
            number,
            one["tool"],
            one["arguments"],
            Outcome(**{**one["outcome"], "notices": tuple(one["outcome"].get("notices", ()))}),
            one.get("call_id", ""),
            one.get("before", ""),
            one.get("state", ""),
        )
        for number, one in enumerate(row["calls"])
    ]
    messages = [Message.from_openai(one) for one in row["messages"]]
    return Log.recorded(task, calls, messages, findings=row.get("findings", ()))
