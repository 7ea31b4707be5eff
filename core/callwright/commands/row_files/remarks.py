"""What is odd about rows that can be used all the same: ids that come again, and keys that nobody reads."""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

Row = dict[str, Any] | str

#: Ids that are remembered at most. Their table has a fixed size, so that memory does not grow with the file.
_SLOTS: Final = 1 << 20
MOST_IDS: Final = _SLOTS * 3 // 4
#: Shapes of rows, and unknown keys, that are remembered.
_MOST: Final = 1024
#: Unknown keys that are named.
_NAMED: Final = 5
#: Keys that are looked for twice in a row: those that say what is scored.
_TELLING: Final = tuple((key, f'"{key}"'.encode()) for key in ("id", "task", "completion", "ground_truth"))


def key_twice(line: bytes, row: Mapping[str, Any]) -> str | None:
    """A key that says what is scored and stands twice in the row: it is not known which of the two is meant.

    In JSON a quote within a text is escaped, so that a key is found in the line wherever it is not text. Only where it
    is found twice, such as in a nested object, the line is read again.
    """
    for key, quoted in _TELLING:
        if key in row:
            first = line.find(quoted)
            if line.find(quoted, first + 1) >= 0 and key in _doubled(line):
                return key
    return None


def _doubled(line: bytes) -> set[str]:
    """The keys of the object of a line that stand twice in it."""
    import json

    found: list[list[str]] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        found.append([key for key, _ in pairs])

    json.loads(line, object_pairs_hook=note, parse_int=str)  # however long a number is
    outermost = found[-1]  # which is complete when all in it is
    return {key for key in outermost if outermost.count(key) > 1}


class RowRemarks:
    """Counts of ids that come again and of keys outside of ``known``, in memory that does not grow with the file."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = frozenset(known)
        self._shapes: set[tuple[str, ...]] = set()
        #: Unknown keys, with the line where each stands first.
        self.unknown: dict[str, int] = {}
        #: How many ids stood in an earlier row, and the first of them with its line.
        self.again = 0
        self.first: tuple[int, str | int] | None = None
        self.ids = 0
        self._table = array("Q", bytes(8 * _SLOTS))

    def see(self, number: int, row: Mapping[str, Any]) -> None:
        """Look at the row of a line."""
        shape = tuple(row)
        if shape not in self._shapes:
            self._new_shape(number, shape)
        row_id = row.get("id")
        if (type(row_id) is str or type(row_id) is int) and self._remember(row_id):
            self.again += 1
            if self.first is None:
                self.first = number, row_id

    def seen(self, chunks: Iterable[list[tuple[int, Row]]]) -> Iterator[list[tuple[int, Row]]]:
        """The same parts of a file, whose rows were looked at; a text stands for a row that cannot be used."""
        for chunk in chunks:
            for number, row in chunk:
                if not isinstance(row, str):
                    self.see(number, row)
            yield chunk

    def _new_shape(self, number: int, shape: tuple[str, ...]) -> None:
        if len(self._shapes) < _MOST:
            self._shapes.add(shape)
        for key in shape:
            if key not in self._known and len(self.unknown) < _MOST:
                self.unknown.setdefault(key, number)

    def _remember(self, row_id: str | int) -> bool:
        """Whether the id was there before. Of two ids one is taken for the other once in 2 to the power of 60 times."""
        # A number and the same digits as a text are two ids, and so are -1 and -2, whose hashes are one.
        mark = hash((row_id, type(row_id) is str, row_id == -1)) & 0xFFFFFFFFFFFFFFFF or 1
        table, slot = self._table, mark & (_SLOTS - 1)
        while table[slot]:
            if table[slot] == mark:
                return True
            slot = (slot + 1) & (_SLOTS - 1)
        if self.ids < MOST_IDS:
            table[slot] = mark
            self.ids += 1
        return False

    def sentences(self) -> list[str]:
        """What there is to say, a line each."""
        said = []
        if self.first is not None:
            number, row_id = self.first
            rows = "1 row has the id of an earlier one" if self.again == 1 else f"{self.again:,} rows have earlier ids"
            said.append(f"warning: {rows} (first: line {number}, id {row_id!r:.60}); all are scored")
        if self.ids >= MOST_IDS:
            said.append(f"note: only the first {MOST_IDS:,} ids were compared with later ones")
        if self.unknown:
            named = [self._named(key, number) for key, number in list(self.unknown.items())[:_NAMED]]
            more = f" and {len(self.unknown) - _NAMED:,} more" if len(self.unknown) > _NAMED else ""
            said.append(f"warning: keys that nothing reads: {', '.join(named)}{more}")
        return said

    def _named(self, key: str, number: int) -> str:
        near = difflib.get_close_matches(key, self._known, n=1, cutoff=0.75)
        return f"{key!r:.60} (line {number}{f'; did you mean {near[0]!r}?' if near else ''})"
