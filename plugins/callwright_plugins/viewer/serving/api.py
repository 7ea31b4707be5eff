"""The questions that pages ask, by name: ``/api/rows?source=tier-mini&q=step>30`` and so on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from callwright.errors import UnknownName, UsageError
from callwright_plugins.viewer.answers import comparing, curves, lab, notes, rollouts, synthesis, tables
from callwright_plugins.viewer.answers.again import Again
from callwright_plugins.viewer.index.building import Index
from callwright_plugins.viewer.sources.finding import Source

if TYPE_CHECKING:
    from callwright.plugins import Registry

Asked = Mapping[str, str]
#: Rows that one turn of the reader indexes before it looks at the next source.
_TURN: Final = 2000
#: Seconds between two looks at files that grow.
_PAUSE: Final = 1.0


class Board:
    """The sources with their indexes, and the thread that reads what is new. ``again`` executes rows again."""

    def __init__(self, sources: Sequence[Source], registry: Registry, again: Again | None = None) -> None:
        self.sources = list(sources)
        self.again = again or Again(registry)
        self.indexes = {source.key: Index(source, registry) for source in sources}
        self._reading = {source.key: True for source in sources}
        self._stop = threading.Event()
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Begin to read, in a thread of its own."""
        self._reader = threading.Thread(target=self._read, name="callwright view: reader", daemon=True)
        self._reader.start()

    def read_all(self) -> None:
        """Read everything that is there, here and now."""
        for index in self.indexes.values():
            index.refresh()
        self._reading = dict.fromkeys(self._reading, False)

    def close(self) -> None:
        """Stop reading, and let go of the files."""
        self._stop.set()
        if self._reader is not None:
            self._reader.join(30)
        for index in self.indexes.values():
            index.close()

    def _read(self) -> None:
        while not self._stop.is_set():
            busy = False
            for key, index in self.indexes.items():
                if self._stop.is_set():
                    return
                more = index.refresh(_TURN)
                self._reading[key] = more
                busy = busy or more
            if not busy:
                self._stop.wait(_PAUSE)

    def index(self, asked: Asked, name: str = "source") -> Index:
        """The index that is asked for. Raises :class:`callwright.errors.UnknownName`."""
        key = asked.get(name, "")
        if key not in self.indexes:
            raise UnknownName("source", key, list(self.indexes))
        return self.indexes[key]

    def state(self) -> dict[str, Any]:
        """What there is, and how far it is read: pages ask for it again and again."""
        return {
            "sources": [
                {
                    "key": source.key,
                    "name": source.name,
                    "kind": source.kind,
                    "path": str(source.folder or source.rows),
                    "rows": self.indexes[source.key].count,
                    "reading": self._reading[source.key],
                    "error": self.indexes[source.key].error,
                    "components": list(self.indexes[source.key].components),
                    "stamp": _stamp(source),
                    "live": _is_live(source),
                }
                for source in self.sources
            ]
        }

    def answer(self, question: str, asked: Asked) -> Any:
        """The answer to a question. Raises :class:`callwright.UsageError` for what cannot be answered."""
        if question not in _ANSWERS:
            raise UnknownName("question", question, list(_ANSWERS))
        return _ANSWERS[question](self, asked)

    def scored(self, base: Index) -> list[Index]:
        """The scored files beside a source of rollouts."""
        return [one for one in self.indexes.values() if one.source.kind == "scored" and one is not base]


def _stamp(source: Source) -> str:
    """Changes whenever the figures of a run do."""
    try:
        stat = ((source.folder or source.rows.parent) / "metrics.jsonl").stat()
    except OSError:
        return ""
    return f"{stat.st_size}-{stat.st_mtime_ns}"


def _is_live(source: Source) -> bool:
    """Whether the rows grew within the last half minute."""
    try:
        return time.time() - source.rows.stat().st_mtime < 30
    except OSError:
        return False


def _number(asked: Asked, name: str, otherwise: int) -> int:
    try:
        return int(asked.get(name, otherwise))
    except ValueError:
        raise UsageError(f"{name} is a whole number, not {asked[name]!r:.40}") from None


def _marked(index: Index) -> dict[str, list[int]]:
    return notes.marked(notes.read_notes(index))


def _rows(board: Board, asked: Asked) -> Any:
    index = board.index(asked)
    return tables.page(
        index,
        asked.get("q", ""),
        asked.get("sort") or "n",
        _number(asked, "offset", 0),
        _number(asked, "limit", 100),
        _marked(index),
    )


def _groups(board: Board, asked: Asked) -> Any:
    index = board.index(asked)
    return tables.grouped(
        index,
        asked.get("by") or "task",
        asked.get("q", ""),
        asked.get("sort") or "-count",
        _number(asked, "offset", 0),
        _number(asked, "limit", 100),
        _marked(index),
    )


def _facets(board: Board, asked: Asked) -> Any:
    index = board.index(asked)
    return tables.facets(index, asked.get("q", ""), _marked(index))


def _compare(board: Board, asked: Asked) -> Any:
    return comparing.compared(board.index(asked, "first"), board.index(asked, "second"), asked.get("q", ""))


def _agreement(board: Board, asked: Asked) -> Any:
    index = board.index(asked)
    return lab.agreement(index, board.scored(index))


def _disagreeing(board: Board, asked: Asked) -> Any:
    index = board.index(asked)
    return lab.disagreeing(index, board.scored(index), asked.get("first", ""), asked.get("second", ""))


def _executed_again(board: Board, asked: Asked) -> Any:
    index, n = board.index(asked), _number(asked, "n", 0)
    row = index.row(n)
    if row is None:
        raise UsageError(f"there is no row {n}")
    return board.again.row(index.source, row)


def _notes(board: Board, asked: Asked) -> Any:
    return [note.to_json() for note in notes.read_notes(board.index(asked)).values()]


_ANSWERS: Final[Mapping[str, Callable[[Board, Asked], Any]]] = {
    "state": lambda board, asked: board.state(),
    "rows": _rows,
    "groups": _groups,
    "facets": _facets,
    "rollout": lambda board, asked: rollouts.rollout(board.index(asked), _number(asked, "n", 0)),
    "again": _executed_again,
    "tokens": lambda board, asked: rollouts.tokens(board.index(asked), _number(asked, "n", 0)),
    "group": lambda board, asked: rollouts.group(board.index(asked), asked.get("name", "")),
    "task": lambda board, asked: rollouts.over_time(board.index(asked), asked.get("name", "")),
    "curves": lambda board, asked: curves.curves(board.index(asked).source),
    "compare": _compare,
    "agreement": _agreement,
    "disagreeing": _disagreeing,
    "funnel": lambda board, asked: synthesis.funnel(board.index(asked).source),
    "notes": _notes,
}
