"""Tapes: what worlds answered while they were explored, so that exploring is gone through again without them.

What an explorer learns stands in thousands of small tables, from which a graph is proven; all of it follows from what
the calls came to. So these are kept, and whoever was stopped after exploring hears the same answers in the same order.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from attrs import define, field

from callwright.environments.protocol import Environment, Outcome
from callwright.errors import RunError
from callwright.language.long_numbers import json_text, json_value
from callwright.language.program import Call
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.synthesis.exploration.states import HEARD, Laboratory, OutOfCalls, State

_FORMAT: Final = "callwright-tape-1"


class OtherTape(Exception):
    """A tape is not of what is asked now: it was made by another version of the explorer, or is damaged."""


@define(eq=False)
class Tape:
    """The answers of the worlds of one environment, by world; with ``told`` they are there, else they are taken up."""

    worlds: list[list[Any]] = field(factory=list)
    told: bool = False
    _heard: int = field(default=0, init=False)

    def laboratory(
        self, environment: Environment, scenario: str, seed: int, calls: int, reporter: Reporter = SILENT
    ) -> Laboratory:
        """A laboratory for the next world. Raises :class:`OtherTape` where the tape has none."""
        if not self.told:
            self.worlds.append([])
            return _Recording(self.worlds[-1], environment, scenario, seed, calls, reporter)
        if self._heard >= len(self.worlds):
            raise OtherTape
        self._heard += 1
        return _Retelling(self.worlds[self._heard - 1], calls, reporter)

    def write(self, path: Path) -> bool:
        """Keep it, and say whether it could be: what is no JSON cannot be told again as it was.

        Raises :class:`callwright.errors.RunError` where the file cannot be written.
        """
        kept = {"format": _FORMAT, "worlds": self.worlds}
        try:
            text = json_text(kept, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            return False
        if json_value(text) != kept:
            return False
        try:
            path.write_bytes(gzip.compress(text.encode("utf-8"), 1, mtime=0))
        except OSError as error:
            raise RunError(f"{path} cannot be written: {error.strerror or error}") from error
        return True

    @classmethod
    def read(cls, path: Path) -> Tape | None:
        """What :meth:`write` kept; ``None`` for anything else."""
        try:
            kept = json_value(gzip.decompress(path.read_bytes()))
        except (OSError, EOFError, zlib.error, ValueError, RecursionError):
            return None
        match kept:
            case {"format": str(found), "worlds": list(worlds)} if found == _FORMAT:
                return cls([one for one in worlds if isinstance(one, list)], told=True)
        return None


class _Recording(Laboratory):
    """A laboratory whose answers are taken up."""

    def __init__(
        self, rows: list[Any], environment: Environment, scenario: str, seed: int, calls: int, reporter: Reporter
    ) -> None:
        super().__init__(environment, scenario, seed, calls, reporter)
        self._rows = rows
        rows.append([self.root.digest, super().tells_states(), super().now().isoformat()])

    def call(self, state: State, tool: str, arguments: Mapping[str, Any]) -> tuple[Outcome, str]:
        asked, before = _asked(state, tool, arguments), self.made
        try:
            outcome, digest = super().call(state, tool, arguments)
        except OutOfCalls:
            self._rows.append([asked, self.made - before])
            raise
        told = [outcome.kind, outcome.value, outcome.code, outcome.message]
        self._rows.append([asked, self.made - before, told, digest])
        return outcome, digest

    def known(self, entity: str) -> Mapping[str, Any]:
        known = super().known(entity)
        self._rows.append([entity, dict(known)])
        return known


class _Retelling(Laboratory):
    """A laboratory that has the answers already: it opens no session."""

    def __init__(self, rows: list[Any], calls: int, reporter: Reporter) -> None:
        self._rows, self._place, self.reporter = rows, 0, reporter
        self.left, self.made = calls, 0
        match self._next():
            case [str(digest), bool(tells), str(now)]:
                self._tells, self._now = tells, datetime.fromisoformat(now)
            case _:
                raise OtherTape
        self.root = State(0, (), digest, None)

    def _next(self) -> Any:
        if self._place >= len(self._rows):
            raise OtherTape
        self._place += 1
        return self._rows[self._place - 1]

    def close(self) -> None:
        self.reporter.advance(self.made % HEARD)

    def call(self, state: State, tool: str, arguments: Mapping[str, Any]) -> tuple[Outcome, str]:
        row, asked = self._next(), _asked(state, tool, arguments)
        match row:
            case [int(same), int(count)] if same == asked:
                self._counted(count)
                raise OutOfCalls
            case [int(same), int(count), [str(kind), value, str(code), str(message)], str(digest)] if same == asked:
                self._counted(count)
                return Outcome(kind, value, code, message), digest  # type: ignore[arg-type]
        raise OtherTape

    def _counted(self, count: int) -> None:
        for _ in range(count):
            self._count()

    def settle(self, parent: State, number: int, call: Call, digest: str) -> State:
        return State(number, (*parent.path, call), digest, None, parent=parent)

    def known(self, entity: str) -> Mapping[str, Any]:
        match self._next():
            case [str(same), dict(known)] if same == entity:
                return known
        raise OtherTape

    def tells_states(self) -> bool:
        return self._tells

    def now(self) -> datetime:
        return self._now


def _asked(state: State, tool: str, arguments: Mapping[str, Any]) -> int:
    return crc32(repr((state.digest, tool, arguments)).encode("utf-8", "surrogatepass"))
