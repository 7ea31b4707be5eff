"""What a writing call costs in a session over SQLite: with a savepoint around it, and with a copy of the database.

    python benchmarks/backends.py [--rows 100,10000,100000] [--calls 200]

Both sessions have the same tools and the same rows, in one process, one after the other; CPU time of this process.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from typing import Any

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.environments.backends import SQLite, SQLiteTemplate

SCHEMA = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER)"


class Copied:
    """The same database as a state that is copied before each call that writes, as any object of Python is."""

    def __init__(self, image: bytes) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(image)

    def __deepcopy__(self, memo: Any) -> Copied:
        return Copied(self.connection.serialize())

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        return self.connection.execute(sql, parameters)

    def __del__(self) -> None:
        self.connection.close()


@cw.tool
def take(shop: SQLite, /, item: int) -> int:
    """Take one of an item."""
    shop.execute("UPDATE items SET stock = stock - 1 WHERE id = ?", (item,))
    return int(shop.execute("SELECT stock FROM items WHERE id = ?", (item,)).fetchone()[0])


def filled(rows: int) -> SQLiteTemplate:
    def fill(connection: sqlite3.Connection, scenario: str, seed: int) -> None:
        connection.executemany("INSERT INTO items VALUES (?, ?, 100)", ((n, f"item {n}") for n in range(rows)))

    return SQLiteTemplate(SCHEMA, fill)


def cost(environment: FunctionEnvironment, calls: int, rows: int) -> float:
    """Microseconds of CPU time a call."""
    session = environment.open()
    session.call("take", {"item": 0})
    begun = time.process_time()
    for number in range(calls):
        assert session.call("take", {"item": number % rows}).executed
    spent = time.process_time() - begun
    session.close()
    return spent / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="100,10000,100000")
    parser.add_argument("--calls", type=int, default=200)
    given = parser.parse_args()
    print("| rows | savepoint, µs a call | copy, µs a call | ratio |\n|--:|--:|--:|--:|")
    for rows in map(int, given.rows.split(",")):
        template = filled(rows)
        image = template().connection.serialize()
        saved = cost(FunctionEnvironment("saved", [take], state=template), given.calls, rows)
        copied = cost(
            FunctionEnvironment("copied", [take], state=lambda *_, image=image: Copied(image)), given.calls, rows
        )
        print(f"| {rows:,} | {saved:.0f} | {copied:.0f} | {copied / saved:.1f} |")


if __name__ == "__main__":
    main()
