"""Building the index: rows are read once, from where the last reading ended.

The file is an ordinary SQLite database beside the rows (``.view.sqlite``). Nothing else is kept in it than what the
rows say, so that it can be deleted at any time; where the folder cannot be written it is put into a temporary one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from callwright.errors import CallwrightError
from callwright_plugins.viewer.sources.entries import Entry, entry_of
from callwright_plugins.viewer.sources.finding import Source
from callwright_plugins.viewer.sources.rows import Placed, read_row, rows_of

if TYPE_CHECKING:
    from callwright.plugins import Registry

#: Of the layout below: a file of another version is built anew.
VERSION: Final = 2
#: Rows that are written at a time: few at first, so that there is soon something to see.
_FIRST: Final = 200
_BATCH: Final = 1000
_HEAD: Final = 4096
#: Filters whose counts are remembered.
_COUNTED: Final = 256
#: How many components of rewards have a column.
_MOST_SCORES: Final = 64

#: What rows are filtered, sorted and grouped by. Narrow, since a filter may have to read all of it.
COLUMNS: Final = {
    "n": "INTEGER PRIMARY KEY",
    "step": "INTEGER",
    "sample": "INTEGER",
    "depth": "INTEGER",
    "total": "REAL",
    "advantage": "REAL",
    "answered": "INTEGER",
    "masked": "INTEGER",
    "truncated": "INTEGER",
    "calls": "INTEGER",
    "failed": "INTEGER",
    "task": "TEXT",
    "grp": "TEXT",
    "structure": "TEXT",
    "failure": "TEXT",
    "stage": "TEXT",
    "tools": "TEXT",
    "branch": "TEXT",
}
#: What only the rows of a page need: their texts, and where in the file they stand.
TEXTS: Final = {
    "n": "INTEGER PRIMARY KEY",
    "id": "TEXT",
    "query": "TEXT",
    "start": "INTEGER",
    "size": "INTEGER",
    "raw": "BLOB",
}
_SETUP: Final = f"""
CREATE TABLE rollouts ({", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())});
CREATE TABLE texts ({", ".join(f"{name} {kind}" for name, kind in TEXTS.items())});
CREATE INDEX by_task ON rollouts (task);
CREATE INDEX by_group ON rollouts (grp);
CREATE INDEX by_step ON rollouts (step);
CREATE INDEX by_total ON rollouts (total);
CREATE INDEX by_failure ON rollouts (failure);
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='unicode61 remove_diacritics 2');
CREATE TABLE components (name TEXT PRIMARY KEY, col TEXT);
CREATE TABLE known (key TEXT PRIMARY KEY, value TEXT);
"""


class Index:
    """The index of one source. One thread may refresh it while others read."""

    def __init__(self, source: Source, registry: Registry) -> None:
        self.source = source
        self._registry = registry
        self._writing = threading.Lock()
        self._local = threading.local()
        self._counts: dict[tuple[Any, ...], int] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        #: What went wrong when the source was read; empty while nothing did.
        self.error = ""
        self.path = self._made()

    # Reading ---------------------------------------------------------------------------------------------------------

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """What a query finds."""
        return self._reading().execute(sql, tuple(parameters)).fetchall()

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Row:
        """The only row that a query finds."""
        found: sqlite3.Row = self._reading().execute(sql, tuple(parameters)).fetchone()
        return found

    def matching(self, where: str, values: Sequence[Any]) -> int:
        """How many rows meet a condition; counted once for the rows that there are."""
        counts = self._counts
        key = (self.count, where, *values)
        found = counts.get(key)
        if found is None:
            if len(counts) >= _COUNTED:
                counts.clear()
            found = counts[key] = int(self.one(f"SELECT count(*) FROM rollouts WHERE {where}", values)[0])
        return found

    @property
    def components(self) -> dict[str, str]:
        """The column of each component of the reward, in the order in which they were seen."""
        return {row["name"]: row["col"] for row in self.rows("SELECT name, col FROM components ORDER BY rowid")}

    @property
    def count(self) -> int:
        """How many rows are indexed."""
        return int(self.one("SELECT coalesce(max(n), 0) FROM rollouts")[0])

    def row(self, n: int) -> dict[str, Any] | None:
        """The row itself, as it stands in the file; ``None`` where there is none, or the file is another one now."""
        found = self.rows("SELECT start, size, raw FROM texts WHERE n = ?", (n,))
        if not found:
            return None
        start, size, raw = found[0]
        if raw is None:
            try:
                with self.source.rows.open("rb") as file:
                    file.seek(start)
                    raw = file.read(size)
            except OSError:
                return None
        return read_row(raw)

    def _reading(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30, check_same_thread=False)
            connection.row_factory = sqlite3.Row
            self._local.connection = connection
        return connection

    # Writing ---------------------------------------------------------------------------------------------------------

    def refresh(self, most: int | None = None) -> bool:
        """Read what is new, at most so many rows. Returns whether there may be more.

        A file that does not begin as it did is another one: the index is built anew.
        """
        with self._writing, self._connected() as connection:
            start, n = self._place(connection)
            entries = self._entries(start, n)
            taken = islice(entries, most) if most is not None and self.source.is_lines else entries
            try:
                return self._write(connection, taken, start) >= (most or float("inf"))
            except CallwrightError as error:
                self.error = str(error)
                return False

    def close(self) -> None:
        """Let go of what it holds."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None
        if self._temporary is not None:
            self._temporary.cleanup()

    def _entries(self, start: int, n: int) -> Iterator[tuple[int, Placed, Entry]]:
        if not self.source.is_lines and n:
            return  # read whole, once
        for placed in rows_of(self.source, start, self._registry):
            n += 1
            row = placed.row if placed.row is not None else {}
            yield n, placed, entry_of(self.source.kind, row, n)

    def _write(self, connection: sqlite3.Connection, entries: Iterable[Any], start: int) -> int:
        columns = {row[0]: row[1] for row in connection.execute("SELECT name, col FROM components ORDER BY rowid")}
        written, entries = 0, iter(entries)
        while batch := list(islice(entries, _BATCH if start or written else _FIRST)):
            for _, _, entry in batch:
                for name in map(_clean, entry.scores):
                    if name not in columns and len(columns) < _MOST_SCORES:
                        columns[name] = f"s{len(columns)}"
                        connection.execute(f"ALTER TABLE rollouts ADD COLUMN {columns[name]} REAL")
                        connection.execute("INSERT INTO components VALUES (?, ?)", (name, columns[name]))
            names = [*COLUMNS, *columns.values()]
            marks = ", ".join("?" * len(names))
            values = [_values(n, entry, columns) for n, _, entry in batch]
            connection.executemany(f"INSERT INTO rollouts ({', '.join(names)}) VALUES ({marks})", values)
            marks = ", ".join("?" * len(TEXTS))
            connection.executemany(
                f"INSERT INTO texts VALUES ({marks})", [_texts(n, one, entry) for n, one, entry in batch]
            )
            connection.executemany(
                "INSERT INTO words (rowid, text) VALUES (?, ?)", [(n, _clean(entry.words)) for n, _, entry in batch]
            )
            last = batch[-1][1]
            self._note(connection, end=last.start + last.size, head=self._head(last.start + last.size))
            connection.commit()
            written += len(batch)
        return written

    def _place(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """The byte to go on from, and how many rows are there; the index is emptied if the file is another one."""
        known = dict(connection.execute("SELECT key, value FROM known").fetchall())
        end = int(known.get("end", 0))
        if "head" in known and (known["head"] != self._head(end) or (self.source.is_lines and self._length() < end)):
            self._empty(connection)
            return 0, 0
        return end, int(connection.execute("SELECT coalesce(max(n), 0) FROM rollouts").fetchone()[0])

    def _empty(self, connection: sqlite3.Connection) -> None:
        connection.executescript(
            "DELETE FROM rollouts; DELETE FROM texts; DELETE FROM known; "
            "INSERT INTO words (words) VALUES ('delete-all');"
        )
        connection.commit()
        self._counts = {}  # a new one: what is counted at this moment is of the rows before

    def _note(self, connection: sqlite3.Connection, **values: object) -> None:
        connection.executemany(
            "INSERT OR REPLACE INTO known VALUES (?, ?)", [(key, str(value)) for key, value in values.items()]
        )

    def _length(self) -> int:
        try:
            return self.source.rows.stat().st_size
        except OSError:
            return 0

    def _head(self, end: int) -> str:
        """By what a file is known: how it begins, as far as it was read; of one that is read whole, all of it."""
        try:
            if not self.source.is_lines:
                stat = self.source.rows.stat()
                return f"{stat.st_size} {stat.st_mtime_ns}"
            with self.source.rows.open("rb") as file:
                return hashlib.sha256(file.read(min(end, _HEAD))).hexdigest()
        except OSError:
            return ""

    # The file --------------------------------------------------------------------------------------------------------

    def _made(self) -> Path:
        wanted = self.source.rows.with_name(f".{self.source.rows.name}.view.sqlite")
        for path in (wanted, None):
            if path is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="callwright-view-")
                path = Path(self._temporary.name) / "view.sqlite"
            try:
                self._prepare(path)
            except (sqlite3.Error, OSError):
                continue
            return path
        raise CallwrightError(f"no index of {self.source.rows} can be written, beside it or in {tempfile.gettempdir()}")

    def _prepare(self, path: Path) -> None:
        if path.exists() and not _is_current(path):
            for one in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
                one.unlink(missing_ok=True)
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            if not connection.execute("SELECT name FROM sqlite_master").fetchone():
                connection.executescript(_SETUP)
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.commit()
            connection.execute("BEGIN IMMEDIATE")  # fails here, and not later, where nothing can be written
            connection.rollback()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # what is lost is built again
            yield connection


def _is_current(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            return bool(version == VERSION and connection.execute("SELECT count(*) FROM known").fetchone())
    except sqlite3.Error:
        return False


def _values(n: int, entry: Entry, columns: dict[str, str]) -> list[Any]:
    own = [
        n,
        entry.step,
        entry.sample,
        entry.depth,
        entry.total,
        entry.advantage,
        None if entry.answered is None else int(entry.answered),
        int(entry.masked),
        int(entry.truncated),
        entry.calls,
        entry.failed,
        _clean(entry.task),
        _clean(entry.group),
        _clean(entry.structure),
        _clean(entry.failure),
        _clean(entry.stage),
        listed(_clean(tool) for tool in entry.tools),
        _clean(entry.branch),
    ]
    scores = {_clean(name): value for name, value in entry.scores.items()}
    return own + [scores.get(name) for name in columns]


def _texts(n: int, placed: Placed, entry: Entry) -> list[Any]:
    return [n, _clean(entry.id), _clean(entry.query), placed.start, placed.size, placed.raw]


def listed(tools: Iterable[str]) -> str:
    """Names of tools in one column, each between line breaks: a name may hold spaces. Empty without a name."""
    lines = "\n".join(" ".join(tool.splitlines()) for tool in tools)
    return f"\n{lines}\n" if lines else ""


def _clean(text: Any) -> Any:
    """A text that SQLite takes: halves of surrogate pairs are replaced."""
    if not isinstance(text, str):
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def as_json(value: Any) -> str:
    """JSON as pages get it: texts that no encoding takes are replaced."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
