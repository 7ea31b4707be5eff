"""Our own format of logs: JSON lines that hold all of one, outcomes and digests included, and give it back as it was.

    {"callwright_log": 1, "id": …, "query": …, "world": …, "scenario": …, "seed": …, "tools": [{"name": …}],
     "answer": […], "program": {…}, "messages": [{"role": …}], "calls": [{"tool": …, "arguments": …, "kind": …}],
     "findings": […], "truncated": true, "origin": {…}}

What is empty is left out. Where ``tools`` or ``answer`` is absent nobody states it, so that rewards which need it
abstain. The world is a name: what is read cannot be executed, unless it is read for its task.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from attrs import evolve

from callwright.compression.packing import packed
from callwright.environments.protocol import Outcome, OutcomeKind
from callwright.episodes.logs.files import peeked, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.told import ORIGIN, read_messages
from callwright.episodes.logs.unstated import UNSTATED_ANSWER, UNSTATED_TOOLS, UnstatedAnswer, UnstatedTools
from callwright.episodes.logs.world import UnknownWorld
from callwright.errors import DataError, RunError, UsageError
from callwright.language.long_numbers import json_text
from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec
from callwright.walk.task_rows.rows import answer_row, program_row, read_answer, read_program
from callwright.walk.task_rows.tools import read_spec, spec_row
from callwright.walk.tasks import Task

MARK: Final = "callwright_log"
VERSION: Final = 1
_KINDS: Final = frozenset(get_args(OutcomeKind))
_TEXTS: Final = ("code", "message", "injected", "undeclared")


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
    row |= {name: text for name in _TEXTS if (text := getattr(outcome, name))}
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


class OwnLogs:
    """The log format ``callwright``."""

    @property
    def name(self) -> str:
        """``callwright``."""
        return "callwright"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line says so."""
        return MARK in peeked(head)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """The logs of a file in its order. Raises :class:`callwright.errors.DataError` with the line."""
        reader = _Reader(tools)
        for piece in pieces_of(path):
            try:
                log = reader.log(piece.value)
            except DataError as error:
                raise DataError(f"{piece.where}: {error}") from error
            yield log


class _Reader:
    """Rows as logs; equal lists of tools are one world."""

    def __init__(self, given: Mapping[str, ToolSpec]) -> None:
        self._given = given
        self._worlds: dict[str, UnknownWorld] = {}

    def log(self, row: Any) -> Log:
        if not isinstance(row, dict) or row.get(MARK) != VERSION:
            raise DataError(f"no log of this format: expected an object with {MARK!r}: {VERSION}")
        world = self._world(row.get("tools"), _text(row, "world"))
        seed = row.get("seed", 0)
        if type(seed) is not int:
            raise DataError(f"'seed' is {seed!r:.40}, expected a whole number")
        task = Task(
            _text(row, "id"),
            _text(row, "query"),
            world.tools if "tools" in row or self._given else UNSTATED_TOOLS,
            read_answer(row["answer"], "answer") if "answer" in row else UNSTATED_ANSWER,
            world,
            _text(row, "scenario"),
            seed,
            program=read_program(row["program"]) if "program" in row else None,
            facts={ORIGIN: row["origin"]} if "origin" in row else {},
        )
        calls = [_call(number, one) for number, one in enumerate(_list(row, "calls"))]
        messages = read_messages(_list(row, "messages"), "'messages'")
        findings = [str(one) for one in _list(row, "findings")]
        return Log.recorded(task, calls, messages, findings=findings, truncated=row.get("truncated") is True)

    def _world(self, rows: Any, name: str) -> UnknownWorld:
        key = f"{name}\n{rows!r}"
        made = self._worlds.get(key)
        if made is None:
            specs = {spec.name: spec for spec in map(read_spec, rows or ())}
            made = self._worlds[key] = UnknownWorld({**specs, **self._given}, name)
        return made


def _call(number: int, row: Any) -> Logged:
    if not isinstance(row, dict) or not isinstance(row.get("arguments"), dict):
        raise DataError(f"call {number} is no object with a 'tool' and 'arguments'")
    if row.get("kind") not in _KINDS:
        raise DataError(f"call {number}: {row.get('kind')!r:.40} is no kind of outcome: {', '.join(sorted(_KINDS))}")
    outcome = Outcome(cast(OutcomeKind, row["kind"]), row.get("value"))
    texts = {name: _text(row, name) for name in _TEXTS if name in row}
    notices = tuple(str(one) for one in _list(row, "notices"))
    if texts or notices:
        outcome = evolve(outcome, notices=notices, **texts)
    ids = (_text(row, "call_id"), _text(row, "before"), _text(row, "state"))
    return Logged(number, _text(row, "tool"), row["arguments"], outcome, *ids)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    if not isinstance(value, str):
        raise DataError(f"{name!r} is {value!r:.40}, expected text")
    return value


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name, [])
    if not isinstance(value, list):
        raise DataError(f"{name!r} is {type(value).__name__}, expected a list")
    return value
