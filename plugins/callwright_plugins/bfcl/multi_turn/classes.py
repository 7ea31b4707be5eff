"""The classes of the pinned wheel in their process: entries made known, answers held against them, sessions opened.

The process may be lost at any time. Its successor knows no entry and no session: entries are told again, a session
that is gone is an infrastructure failure.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.errors import InfrastructureFailure, UsageError
from callwright.machines.foreign_code.code import ForeignCode, ForeignLimits, ForeignRaised
from callwright_plugins.bfcl.multi_turn.calls import Wire, call_of
from callwright_plugins.bfcl.multi_turn.entries import Entry
from callwright_plugins.bfcl.multi_turn.package import Package

#: An entry, and the calls of an answer by turn and step.
Asked = tuple[Entry, Sequence[Sequence[Sequence[Wire]]]]

_BACKEND: Final = Path(__file__).parent / "backend"
_MODULE: Final = "official_classes"


class OfficialClasses:
    """The classes of a version, of the wheel that ``place`` is or was unpacked in.

    Raises :class:`callwright.UsageError` for what is not that wheel, and, once they are used, for what the classes need
    and is not installed.
    """

    def __init__(self, place: str | Path, version: str, *, limits: ForeignLimits | None = None) -> None:
        self._made = str(place), version, limits or ForeignLimits(time=60)
        self._open()

    def _open(self) -> None:
        place, version, limits = self._made
        self._package = Package(Path(place), version)
        self._code = ForeignCode(self._package.folder, paths=[_BACKEND], limits=limits)
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._described: Mapping[str, Sequence[str]] = {}
        self._methods: dict[tuple[str, ...], frozenset[str]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_made": self._made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def close(self) -> None:
        """End the process. Closing twice is allowed."""
        self._code.close()

    def methods(self, entry: Entry) -> frozenset[str]:
        """The public methods of an entry's classes."""
        found = self._methods.get(entry.classes)
        if found is None:
            if not self._described:
                self._described = self._ask("describe")
            found = frozenset().union(*(self._described[name] for name in entry.classes))
            self._methods[entry.classes] = found
        return found

    def verdicts(self, asked: Sequence[Asked]) -> list[dict[str, Any] | InfrastructureFailure]:
        """What the checker says of the calls of answers, by turn and step; as many turns as the gold side has.

        They are asked for together, as to change from process to process takes longer than to judge. Where the process
        is lost, each is asked for alone, so that only those are failures of the machinery that lose it.
        """
        try:
            return list(self._together(asked))
        except InfrastructureFailure as error:
            if len(asked) == 1:
                return [error]
            return [self.verdicts([one])[0] for one in asked]

    def _together(self, asked: Sequence[Asked]) -> list[dict[str, Any]]:
        stated = [{"key": entry.id, "turns": turns} for entry, turns in asked]
        found: list[dict[str, Any]] = self._ask("judge", json.dumps(stated))
        again = [at for at, one in enumerate(found) if not one]
        if again:
            self._tell({asked[at][0].id: asked[at][0] for at in again}.values())
            for at, one in zip(again, self._ask("judge", json.dumps([stated[at] for at in again])), strict=True):
                found[at] = one
        if not all(found):
            raise InfrastructureFailure("the process of BFCL's classes was lost twice")
        return found

    def begin(self, entry: Entry) -> tuple[int, str]:
        """A session of an entry: its number, and the digest of its state."""
        with self._guard:
            number = next(self._numbers)
        found = self._ask("begin", number, entry.id)
        if not found:
            self._tell([entry])
            found = self._ask("begin", number, entry.id)
        if not found:
            raise InfrastructureFailure("the process of BFCL's classes was lost twice")
        return number, found["digest"]

    def call(self, number: int, call: Wire) -> tuple[str, str]:
        """What a call in a session comes to, and the digest after it."""
        found = self._ask("call", number, json.dumps(call))
        if not found:
            raise InfrastructureFailure("the process of BFCL's classes was lost, and the session with it")
        return found["result"], found["digest"]

    def end(self, number: int) -> None:
        """Forget a session. One that is gone already is no matter."""
        self._ask("end", number)

    def _tell(self, entries: Iterable[Entry]) -> None:
        stated = []
        for entry in entries:
            methods = self.methods(entry)
            stated.append(
                {
                    "key": entry.id,
                    "classes": entry.classes,
                    "config": entry.config,
                    "long_context": entry.long_context,
                    "gold": [[call_of(text, methods) for text in calls] for calls in entry.gold],
                }
            )
        self._ask("prepare", json.dumps(stated))

    def _ask(self, function: str, *given: Any) -> Any:
        try:
            return json.loads(self._code.call(f"{_MODULE}:{function}", *given))
        except ForeignRaised as error:
            if error.kind in ("ImportError", "ModuleNotFoundError"):
                raise UsageError(
                    f"BFCL's classes cannot be imported: {error.said}. Install what they need into this environment "
                    "(pip install mpmath)"
                ) from error
            raise InfrastructureFailure(f"BFCL's classes failed: {error}") from error
