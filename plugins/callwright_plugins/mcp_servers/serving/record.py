"""A record of what clients did: every call and its outcome, a line each, read back as turns that can be told.

A row of a call has ``session``, ``scenario``, ``seed``, ``time`` (UTC), ``seconds``, ``tool``, ``arguments``, ``kind``,
``code``, ``message``, ``value`` and, where the environment gives it at no cost, the ``digest`` after the call. A row of
what was done to a session has ``session``, ``time`` and ``op``: ``reset``, ``fork`` (into ``to``) or ``close``.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, Self, get_args

from attrs import define, evolve, field, frozen

from callwright.compression.packing import unpacked
from callwright.environments.protocol import Outcome, OutcomeKind
from callwright.errors import DataError, UsageError
from callwright.language.program import Call, Program
from callwright.walk import told_turn
from callwright.walk.turn import Turn
from callwright_plugins.mcp_servers.wire import Answer

_KINDS: Final = frozenset(get_args(OutcomeKind))


@define(eq=False)
class Record:
    """Where calls are written to. Only its owner may read the file: arguments hold what clients were trusted with."""

    path: Path
    _file: IO[str] = field(repr=False)
    #: Told once that the file cannot be written any more.
    notice: Callable[[str], None] = lambda text: None

    @classmethod
    def at(cls, path: str | Path, notice: Callable[[str], None] = lambda text: None) -> Self:
        """Append to a file, or begin it. Raises :class:`callwright.UsageError` if it cannot be written."""
        path = Path(path)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"--record {path}: it cannot be written: {error.strerror}") from error
        # Text that is no Unicode is written as JSON escapes it.
        return cls(path, os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace"), notice)

    def call(
        self,
        session: str,
        world: tuple[str, int] | None,
        tool: str,
        arguments: Mapping[str, Any],
        answer: Answer | None,
        seconds: float,
    ) -> None:
        """A call was answered. ``world`` is the session's scenario and seed, ``None`` if it never opened."""
        if answer is None:
            return
        outcome = answer.outcome
        row: dict[str, Any] = {"session": session, "time": _now(), "seconds": round(seconds, 6), "tool": tool}
        if world is not None:
            row["scenario"], row["seed"] = world
        row |= {"arguments": arguments, "kind": outcome.kind, "code": outcome.code, "message": outcome.message}
        row["value"] = outcome.value
        if answer.digest is not None:
            row["digest"] = answer.digest
        self._write(row)

    def managed(self, session: str, op: str, to: str | None = None) -> None:
        """A session was reset, forked or closed."""
        self._write({"session": session, "time": _now(), "op": op, **({"to": to} if to is not None else {})})

    def _write(self, row: Mapping[str, Any]) -> None:
        if not self._file.closed:
            try:
                self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
                self._file.flush()  # a record is read while its server runs, and after it was killed
            except OSError as error:  # the disk is full: clients are served all the same
                self.notice(f"--record {self.path}: it could not be written and ends here: {error.strerror}")
                self.close()

    def close(self) -> None:
        with suppress(OSError):  # of a line that was not written
            self._file.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@frozen
class RecordedCall:
    """A call, what came of it, and the digest of the state after it (empty if nobody took one)."""

    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome
    digest: str = ""


@frozen
class RecordedSession:
    """What was done in one session, from its opening or reset on."""

    session: str
    scenario: str
    seed: int
    calls: list[RecordedCall]

    def turns(self) -> list[Turn]:
        """A turn for each call, for :meth:`callwright.walk.Attempt.told`. What clients said is not in a record.

        Calls that failed for want of a machine are of outcomes that nobody knows, so that rewards abstain.
        """
        return [
            told_turn(
                Program((Call(0, call.tool, dict(call.arguments)),)),
                [None if call.outcome.kind == "infrastructure_error" else call.outcome],
                states=[call.digest] if call.digest else (),
            )
            for call in self.calls
        ]


def read_record(path: str | Path) -> list[RecordedSession]:
    """The sessions of a record that have calls, in the order in which they began.

    After a reset, and under an id that was closed before, another session begins. A fork begins with the calls of the
    session that it was made of. Calls that came to no session are left out. Raises
    :class:`callwright.errors.DataError` with the line of what is no row of a record.
    """
    try:
        with Path(path).open("rb") as file:
            text = unpacked(file, str(path)).read().decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the record cannot be read: {error}") from error
    found: list[RecordedSession] = []
    current: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _take(_row(line, f"{path}:{number}"), found, current, f"{path}:{number}")
    return [session for session in found if session.calls]


def _take(row: Mapping[str, Any], found: list[RecordedSession], current: dict[str, int], where: str) -> None:
    id = row["session"]
    match row.get("op"):
        case "fork" if id in current:
            made = found[current[id]]
            current[str(row.get("to"))] = len(found)
            found.append(evolve(made, session=str(row.get("to")), calls=list(made.calls)))
        case "reset" | "close":
            current.pop(id, None)
        case None if "scenario" in row:
            if id not in current:
                current[id] = len(found)
                found.append(RecordedSession(id, row["scenario"], row["seed"], []))
            found[current[id]].calls.append(_call(row, where))


def _call(row: Mapping[str, Any], where: str) -> RecordedCall:
    if not isinstance(row.get("kind"), str) or row["kind"] not in _KINDS:
        raise DataError(f"{where}: {row.get('kind')!r} is no kind of outcome")
    if not isinstance(row.get("tool"), str) or not isinstance(row.get("arguments"), dict):
        raise DataError(f"{where}: a call needs a text 'tool' and an object 'arguments'")
    outcome = Outcome(row["kind"], row.get("value"), str(row.get("code", "")), str(row.get("message", "")))
    return RecordedCall(row["tool"], row["arguments"], outcome, str(row.get("digest", "")))


def _row(line: str, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not a row of JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("session"), str):
        raise DataError(f"{where}: not a row of a record: it names no session")
    if "scenario" in row and (not isinstance(row["scenario"], str) or type(row.get("seed")) is not int):
        raise DataError(f"{where}: a call needs a text 'scenario' and a whole number 'seed'")
    return row
