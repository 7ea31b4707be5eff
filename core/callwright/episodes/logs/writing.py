"""Writing logs in our own format: JSON lines that hold all of one, outcomes and digests included.

    {"callwright_log": 1, "id": …, "query": …, "world": …, "scenario": …, "seed": …, "tools": [{"name": …}],
     "answer": […], "program": {…}, "messages": [{"role": …}], "calls": [{"tool": …, "arguments": …, "kind": …}],
     "findings": […], "truncated": true, "origin": {…}}

What is empty is left out. Where ``tools`` or ``answer`` is absent nobody states it, so that rewards which need it
abstain. The world is a name: what is read cannot be executed, unless it is read for its task.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from callwright.compression.packing import packed
from callwright.episodes.logs.logged import ORIGIN, Logged
from callwright.episodes.logs.unstated import UnstatedAnswer, UnstatedTools
from callwright.errors import RunError, UsageError
from callwright.language.long_numbers import json_text
from callwright.language.messages import Message
from callwright.walk.task_rows.rows import answer_row, program_row
from callwright.walk.task_rows.tools import spec_row

if TYPE_CHECKING:
    from callwright.episodes.logs.log import Log

MARK: Final = "callwright_log"
VERSION: Final = 1
#: Texts of an outcome that stand in the row of its call.
TEXTS: Final = ("code", "message", "injected", "undeclared")


def log_row(log: Log, messages: Iterable[Any] | None = None) -> dict[str, Any]:
    """A log as an object of JSON. ``messages`` are those of a live one, whose agent has them.

    Raises :class:`callwright.UsageError` for values that are no JSON.
    """
    task = log.task
    said = log.messages if messages is None else tuple(Message.from_openai(one) for one in messages)
    row: dict[str, Any] = {MARK: VERSION, "id": task.id, "query": task.query, "world": task.environment.name}
    row |= {"scenario": task.scenario} if task.scenario else {}
    row |= {"seed": task.seed} if task.seed else {}
    if not isinstance(task.tools, UnstatedTools):
        row["tools"] = [spec_row(spec) for spec in task.tools.values()]
    if not isinstance(task.answer, UnstatedAnswer):
        row["answer"] = answer_row("the answer", task.answer)
    if task.program is not None:
        row["program"] = program_row(task.program)
    row["messages"] = [message.to_openai() for message in said]
    row["calls"] = [_call_row(one) for one in log.calls]
    if findings := log.noted:
        row["findings"] = list(findings)
    if log.truncated:
        row["truncated"] = True
    if origin := task.facts.get(ORIGIN):
        row["origin"] = origin
    return row


def _call_row(one: Logged) -> dict[str, Any]:
    outcome = one.outcome
    row: dict[str, Any] = {"tool": one.tool, "arguments": dict(one.arguments), "kind": outcome.kind}
    if outcome.value is not None:
        row["value"] = outcome.value
    row |= {name: text for name in TEXTS if (text := getattr(outcome, name))}
    if outcome.notices:
        row["notices"] = list(outcome.notices)
    return row | {name: text for name in ("call_id", "before", "state") if (text := getattr(one, name))}


def log_line(log: Log, messages: Iterable[Any] | None = None) -> bytes:
    """The line of a log. Raises :class:`callwright.UsageError` for values that are no JSON."""
    try:
        text = json_text(log_row(log, messages), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"the log of task {log.task.id!r} cannot be written: it holds what is no JSON: {error}"
        ) from error


def write_logs(path: str | Path, logs: Iterable[Log], *, append: bool = False) -> int:
    """Write logs to a file, a line each, and return how many; ``.gz`` and ``.zst`` are compressed.

    The file is there whole or not at all; with ``append`` each log is added to it, whole or not at all. Raises
    :class:`callwright.UsageError` for a log that holds what is no JSON, :class:`callwright.errors.RunError` for a file
    that cannot be written, and :class:`callwright.errors.MissingExtra` for Zstandard without its package.
    """
    path, count = Path(path), 0
    beside = path if append else path.with_name(f".{path.name}.unfinished")
    try:
        with beside.open("ab" if append else "wb") as file:
            for log in logs:
                file.write(packed(log_line(log), path.name))
                count += 1
        if not append:
            os.replace(beside, path)  # noqa: PTH105
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if not append:
            beside.unlink(missing_ok=True)
    return count
