"""The log format ``callwright``: what :mod:`callwright.episodes.logs.writing` wrote, read back as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from attrs import evolve

from callwright.environments.protocol import Outcome, OutcomeKind
from callwright.episodes.logs.files import peeked, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import ORIGIN, Logged
from callwright.episodes.logs.told import read_messages
from callwright.episodes.logs.unstated import UNSTATED_ANSWER, UNSTATED_TOOLS
from callwright.episodes.logs.world import UnknownWorld
from callwright.episodes.logs.writing import MARK, TEXTS, VERSION
from callwright.errors import DataError
from callwright.language.strict_json import kind as json_kind
from callwright.tools.spec import ToolSpec
from callwright.walk.task_rows.rows import read_answer, read_program
from callwright.walk.task_rows.tools import read_spec
from callwright.walk.tasks import Task

_KINDS: Final = frozenset(get_args(OutcomeKind))


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
        return Log.recorded(
            task,
            calls,
            messages,
            findings=findings,
            truncated=row.get("truncated") is True,
            attempted="origin" not in row,  # a live log, written without the conversation
        )

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
    texts: dict[str, Any] = {name: _text(row, name) for name in TEXTS if name in row}
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
        raise DataError(f"{name!r} is {json_kind(value)}, expected a list")
    return value
