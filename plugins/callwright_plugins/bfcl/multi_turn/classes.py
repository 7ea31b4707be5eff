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
from callwright_plugins.bfcl.multi_turn.calls import Wire, sent
from callwright_plugins.bfcl.multi_turn.entries import Entry
from callwright_plugins.bfcl.multi_turn.package import Package

#: An entry, and the calls of an answer by turn and step, each as JSON.
Asked = tuple[Entry, Sequence[Sequence[Sequence[str]]]]

_BACKEND: Final = Path(__file__).parent / "backend"
_MODULE: Final = "official_classes"


class OfficialClasses:
    """The classes of a version, of the wheel that ``place`` is or was unpacked in.

    Answers are judged in one process, and sessions live in another, so that what ends one ends no episode.

    Raises :class:`callwright.UsageError` for what is not that wheel, and, once they are used, for what the classes need
    and is not installed.
    """

    def __init__(self, place: str | Path, version: str, *, limits: ForeignLimits | None = None) -> None:
        self._made = str(place), version, limits or ForeignLimits(time=30)
        self._open()

    def _open(self) -> None:
        place, version, limits = self._made
        self._package = Package(Path(place), version)
        self._judging, self._living = (
            ForeignCode(self._package.folder, paths=[_BACKEND], limits=limits) for _ in range(2)
        )
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
        """End the process, and forget the unpacked classes. Closing twice is allowed."""
        self._judging.close()
        self._living.close()
        self._package.close()

    def methods(self, entry: Entry) -> frozenset[str]:
        """The public methods of an entry's classes."""
        found = self._methods.get(entry.classes)
        if found is None:
            if not self._described:
                self._described = _ask(self._judging, "describe")
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
        stated = [f'{{"key": {json.dumps(entry.id)}, "turns": {_listed(map(_turn, turns))}}}' for entry, turns in asked]
        found: list[dict[str, Any]] = _ask(self._judging, "judge", _listed(stated))
        again = [at for at, one in enumerate(found) if not one]
        if again:
            self._tell(self._judging, {asked[at][0].id: asked[at][0] for at in again}.values())
            told = _ask(self._judging, "judge", _listed(stated[at] for at in again))
            for at, one in zip(again, told, strict=True):
                found[at] = one
        if not all(found):
            raise InfrastructureFailure("the process of BFCL's classes was lost twice")
        return found

    def begin(self, entry: Entry) -> tuple[int, str]:
        """A session of an entry: its number, and the digest of its state."""
        with self._guard:
            number = next(self._numbers)
        found = _ask(self._living, "begin", number, entry.id)
        if not found:
            self._tell(self._living, [entry])
            found = _ask(self._living, "begin", number, entry.id)
        if not found:
            raise InfrastructureFailure("the process of BFCL's classes was lost twice")
        return number, found["digest"]

    def call(self, number: int, call: Wire) -> tuple[str, str]:
        """What a call in a session comes to, and the digest after it."""
        found = _ask(self._living, "call", number, json.dumps(call))
        if not found:
            raise InfrastructureFailure("the process of BFCL's classes was lost, and the session with it")
        return found["result"], found["digest"]

    def end(self, number: int) -> None:
        """Forget a session. One that is gone already is no matter."""
        _ask(self._living, "end", number)

    def _tell(self, code: ForeignCode, entries: Iterable[Entry]) -> None:
        stated = []
        for entry in entries:
            methods = self.methods(entry)
            known = {
                "key": entry.id,
                "classes": entry.classes,
                "config": entry.config,
                "long_context": entry.long_context,
            }
            gold = _turn([sent(text, methods) for text in calls] for calls in entry.gold)
            stated.append(f'{{"gold": {gold}, {json.dumps(known)[1:]}')
        _ask(code, "prepare", _listed(stated))


def _listed(members: Iterable[str]) -> str:
    return f"[{','.join(members)}]"


def _turn(steps: Iterable[Iterable[str]]) -> str:
    return _listed(map(_listed, steps))


def _ask(code: ForeignCode, function: str, *given: Any) -> Any:
    try:
        return json.loads(code.call(f"{_MODULE}:{function}", *given))
    except ForeignRaised as error:
        if error.kind in ("ImportError", "ModuleNotFoundError"):
            raise UsageError(
                f"BFCL's classes cannot be imported: {error.said}. Get what they need: pip install 'callwright[bfcl]'"
            ) from error
        raise InfrastructureFailure(f"BFCL's classes failed: {error}") from error
