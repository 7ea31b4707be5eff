"""The files of worlds: the server's code, and the database that a session begins with.

Source: ``awm/core/db.py``, ``sample.py`` and ``server.py`` of Snowflake-Labs/agent-world-model.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from attrs import frozen

from callwright.errors import DataError
from callwright_plugins.awm.rows import normalised, rows


@frozen
class WorldFiles:
    """A world: its normalised name, the Python code of its server, its first database as bytes of SQLite."""

    name: str
    code: str
    database: bytes


def read_world(folder: Path, world: str) -> WorldFiles:
    """A world of a folder.

    Raises :class:`callwright.errors.DataError` for files that cannot be read, and
    :class:`callwright.errors.UnknownName` for a world that is not in them.
    """
    wanted = normalised(world)
    code = _entry(folder / "gen_envs.jsonl", wanted, "full_code")
    schema = _entry(folder / "gen_db.jsonl", wanted, "db_schema")
    sample = _entry(folder / "gen_sample.jsonl", wanted, "sample_data")
    if not isinstance(code, str):
        raise DataError(f"{folder / 'gen_envs.jsonl'}: full_code of {wanted!r} is no text")
    try:
        return WorldFiles(wanted, code, _database(schema, sample))
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"{folder}: the database of {wanted!r} is not in AWM's format: {error!r}") from error


def _entry(path: Path, wanted: str, key: str) -> Any:
    row = rows(path, wanted)[0]
    if key not in row:
        raise DataError(f"{path}: the scenario {wanted!r} has no {key!r}")
    return row[key]


def _database(schema: Any, sample: Any) -> bytes:
    """As AWM's reset makes it: what SQLite refuses is skipped, the rest of a table with its first bad statement."""
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        for table in schema.get("tables", []):
            with contextlib.suppress(sqlite3.Error):
                base.execute(table["ddl"])
                for statement in (*table.get("indexes", []), *table.get("examples", [])):
                    base.execute(statement)
        base.commit()
        base.execute("PRAGMA foreign_keys = ON")
        for table in sample.get("tables", []):
            for statement in table.get("insert_statements", []):
                with contextlib.suppress(sqlite3.Error):
                    base.execute(statement)
        base.commit()
        return bytes(base.serialize())
