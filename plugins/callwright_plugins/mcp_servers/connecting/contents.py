"""What a folder holds, as JSON by which end states are compared: the content of files, not their bytes.

The same rows make other bytes of a database when they were written in another order, and so do the lines of a journal.
So a file is read as what it is:

    {"notes": "folder", "notes/a.txt": "hello\\n", "data.db": {"tables": {"guests": {"rows": [["Amara", 2]]}}},
     "memory.json": {"lines": [{"type": "entity", …}]}, "photo.jpg": {"bytes": 1180, "sha256": "…"}}

Times and permissions play no part.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

#: Longer texts are compared by their hashes.
_LONGEST: Final = 200_000
_SQLITE: Final = b"SQLite format 3\0"
#: What SQLite writes beside a database; it is read with the database.
_BESIDE: Final = ("-wal", "-shm", "-journal")


def contents(folder: Path, ignore: Sequence[str] = (), alias: str = "") -> dict[str, Any]:
    """By path within a folder what stands there. ``ignore`` are patterns of paths that do not count; where the folder
    itself is named in a text, ``alias`` stands for it.

    Files that cannot be read are named by the error.
    """
    found: dict[str, Any] = {}
    databases = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in ignore):
            continue
        try:
            found[name] = _content(path, str(folder), alias)
        except OSError as error:
            found[name] = {"error": type(error).__name__}
        if isinstance(found[name], Mapping) and "tables" in found[name]:
            databases.append(name)
    for name in databases:
        for end in _BESIDE:
            found.pop(name + end, None)
    return found


def difference(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """What is otherwise than at first; what is gone is ``None``. Of a database the tables that are otherwise."""
    found = {}
    for name in sorted({*first, *then}):
        was, now = first.get(name), then.get(name)
        if was == now:
            continue
        if isinstance(was, Mapping) and isinstance(now, Mapping) and "tables" in was and "tables" in now:
            now = {"tables": difference(was["tables"], now["tables"])}
        found[name] = now
    return found


def _content(path: Path, folder: str, alias: str) -> Any:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return {"link": _named(str(path.readlink()), folder, alias)}
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    if not stat.S_ISREG(status.st_mode):
        return {"kind": stat.filemode(status.st_mode)[0]}
    with path.open("rb") as file:
        head = file.read(len(_SQLITE))
        if head == _SQLITE:
            tables = _tables(path)
            if tables is not None:
                return {"tables": tables}
        if status.st_size <= _LONGEST:
            try:
                text = (head + file.read()).decode("utf-8")
            except UnicodeDecodeError:
                pass
            else:
                return _text(_named(text, folder, alias))
        file.seek(0)
        return {"bytes": status.st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _named(text: str, folder: str, alias: str) -> str:
    return text.replace(folder, alias) if alias else text


def _text(text: str) -> Any:
    """A text; lines that are objects of JSON each, as a journal of them: in which order they stand means nothing."""
    if text.startswith("{"):
        try:
            lines = [json.loads(line) for line in text.split("\n") if line.strip()]
        except (ValueError, RecursionError):
            return text
        if all(isinstance(line, dict) for line in lines):
            return {"lines": sorted(lines, key=lambda line: json.dumps(line, sort_keys=True))}
    return text


def _tables(path: Path) -> dict[str, Any] | None:
    """The tables of a database with their rows in an order of their own; ``None`` for a file that is none.

    The key that SQLite gives to a row says in which order rows were written, so it is left out.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
            base.text_factory = lambda text: text.decode("utf-8", "replace")
            return {name: {"sql": sql, "rows": list(_rows(base, name))} for name, sql in _declared(base)}
    except sqlite3.Error:
        return None


def _declared(base: sqlite3.Connection) -> list[tuple[str, str]]:
    return base.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "ORDER BY name"
    ).fetchall()


def _rows(base: sqlite3.Connection, table: str) -> Iterator[list[Any]]:
    quoted = '"' + table.replace('"', '""') + '"'
    columns = base.execute(f"PRAGMA table_info({quoted})").fetchall()
    keys = [column for column in columns if column[5]]
    given = {column[0] for column in keys if len(keys) == 1 and str(column[2]).upper() == "INTEGER"}
    rows = [
        [_cell(value) for place, value in enumerate(row) if place not in given]
        for row in base.execute(f"SELECT * FROM {quoted}")
    ]
    yield from sorted(rows, key=repr)


def _cell(value: Any) -> Any:
    return {"bytes": value.hex()} if isinstance(value, bytes) else value
