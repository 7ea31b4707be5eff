"""SQLite as the state of a session: a database in memory, a savepoint around each call.

A copy of the database before each writing call costs time in proportion to its size; a savepoint costs what the call
changes. ``benchmarks/backends.py`` compares the two.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from callwright.environments.backends.backend import Tables
from callwright.errors import ComponentError, DataError, UsageError

#: What ends a transaction or opens another file. Tools have no business with either: the session keeps both.
_DENIED: Final = frozenset(
    {sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
)


class SQLiteTemplate:
    """A database that sessions begin with: made once, copied for each of them.

    ``script`` is SQL, or the path of a database file, which is read and never written. ``fill(connection, scenario,
    seed)`` puts in what is of a scenario; what it makes is kept for each scenario and seed.

    Raises :class:`callwright.errors.DataError` for SQL that does not run or a file that is no database.
    """

    def __init__(
        self,
        script: str | Path,
        fill: Callable[[sqlite3.Connection, str, int], object] | None = None,
        *,
        kept: int = 64,
    ) -> None:
        self._fill, self._kept = fill, kept
        self._first = _image(script)
        self._images: dict[tuple[str, int], bytes] = {}

    def __call__(self, scenario: str = "", seed: int = 0) -> SQLite:
        """A database of a scenario and seed, for one session."""
        if self._fill is None:
            return SQLite(self._first)
        image = self._images.get((scenario, seed))
        if image is None:
            connection = _opened(self._first)
            try:
                self._fill(connection, scenario, seed)
                connection.commit()
                image = connection.serialize()
            finally:
                connection.close()
            if len(self._images) >= self._kept:
                self._images.pop(next(iter(self._images)))
            self._images[scenario, seed] = image
        return SQLite(image)


class SQLite:
    """A database in memory that belongs to one session. ``connection`` is for the tools; transactions are not.

    A statement that would begin or end one, or attach another file, fails with ``sqlite3.DatabaseError: not
    authorized``. While a tool runs that is ``read_only``, writing fails, too.
    """

    def __init__(self, image: bytes) -> None:
        self.connection = _opened(image)
        self.connection.row_factory = sqlite3.Row
        self.connection.set_authorizer(self._authorize)
        self._ours = False
        self._known: tuple[tuple[int, int], Tables] | None = None

    def execute(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> sqlite3.Cursor:
        """Run one statement; values belong into ``parameters``, never into the text."""
        return self.connection.execute(sql, parameters)

    def begin(self, read_only: bool) -> None:
        with self._own():
            self.connection.execute(f"PRAGMA query_only = {int(read_only)}")
            self.connection.execute("SAVEPOINT call")

    def commit(self) -> None:
        self._end("RELEASE call")

    def rollback(self) -> None:
        self._known = None
        self._end("ROLLBACK TO call", "RELEASE call")

    def fork(self) -> SQLite:
        return SQLite(self.connection.serialize())

    def close(self) -> None:
        self.connection.close()

    def tables(self) -> Tables:
        """Every row of every table, sorted by their values; blobs are ``{"blob": hex}``.

        SQLite's own counters (``sqlite_sequence``) are part of it: they decide which id comes next.
        """
        # A table that is made, changed or dropped is no change of a row.
        schema: int = self.connection.execute("PRAGMA schema_version").fetchone()[0]
        changes = self.connection.total_changes, schema
        if self._known is not None and self._known[0] == changes:
            return self._known[1]
        found = {name: self._rows(name) for name in self._names()}
        self._known = (changes, found)
        return found

    def load(self, tables: Tables) -> None:
        if sorted(tables) != (known := self._names()):
            raise DataError(
                f"the tables are {', '.join(sorted(tables))}; those of this database are {', '.join(known)}"
            )
        with self._own():
            self.connection.execute("PRAGMA defer_foreign_keys = 1")
            for name, rows in tables.items():
                self.connection.execute(f"DELETE FROM {_quoted(name)}")
                for row in rows:
                    places = ", ".join("?" * len(row))
                    columns = ", ".join(map(_quoted, row))
                    values = [bytes.fromhex(one["blob"]) if isinstance(one, dict) else one for one in row.values()]
                    try:
                        self.connection.execute(f"INSERT INTO {_quoted(name)} ({columns}) VALUES ({places})", values)
                    except sqlite3.Error as error:
                        raise DataError(f"the table {name!r}: {error}") from error
        self._known = None

    def _names(self) -> list[str]:
        listed = "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        return [row[0] for row in self.connection.execute(f"{listed} OR name = 'sqlite_sequence') ORDER BY name")]

    def _rows(self, name: str) -> list[dict[str, Any]]:
        rows = [dict(row) for row in self.connection.execute(f"SELECT * FROM {_quoted(name)}")]
        for row in rows:
            for key, value in row.items():
                if isinstance(value, bytes):
                    row[key] = {"blob": value.hex()}
        return sorted(rows, key=lambda row: [(str(type(value)), str(value)) for value in row.values()])

    def _end(self, *statements: str) -> None:
        with self._own():
            try:
                for statement in statements:
                    self.connection.execute(statement)
                self.connection.execute("PRAGMA query_only = 0")
            except sqlite3.Error as error:
                raise ComponentError(f"the savepoint around a call is gone ({error}): a tool ended it") from error

    @contextmanager
    def _own(self) -> Iterator[None]:
        self._ours = True
        try:
            yield
        finally:
            self._ours = False

    def _authorize(self, action: int, *_: object) -> int:
        return sqlite3.SQLITE_OK if self._ours or action not in _DENIED else sqlite3.SQLITE_DENY

    def __reduce__(self) -> tuple[type[SQLite], tuple[bytes]]:
        return SQLite, (self.connection.serialize(),)


def _opened(image: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.deserialize(image)
        connection.execute("PRAGMA foreign_keys = 1")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _image(script: str | Path) -> bytes:
    if not hasattr(sqlite3.Connection, "serialize"):  # pragma: no cover - a build without it
        raise UsageError("this Python's sqlite3 was built without SQLITE_ENABLE_DESERIALIZE, which sessions need")
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if isinstance(script, Path):
            if not script.is_file():
                raise DataError(f"{script}: there is no such file")
            file = sqlite3.connect(f"{script.absolute().as_uri()}?mode=ro", uri=True)
            try:
                file.backup(connection)
            finally:
                file.close()
        else:
            connection.executescript(script)
        return connection.serialize()
    except sqlite3.Error as error:
        raise DataError(f"the database cannot be made: {error}") from error
    finally:
        connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
