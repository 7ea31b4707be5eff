"""An environment over a database: tools that write SQL, a savepoint around each call, sessions that fork and reset.

python sdk_examples/own_database.py
"""

import random
import sqlite3

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.environments.backends import SQLite, SQLiteTemplate

SCHEMA = """
CREATE TABLE goods (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price_cents INTEGER NOT NULL, stock INTEGER NOT NULL
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    good INTEGER NOT NULL REFERENCES goods (id),
    pieces INTEGER NOT NULL CHECK (pieces > 0)
);
"""


def fill(connection: sqlite3.Connection, scenario: str, seed: int) -> None:
    """What a shop has: little in the scenario ``sold-out``."""
    rng = random.Random(seed)
    for number, name in enumerate(("kettle", "lamp", "map", "rope", "tent"), 1):
        stock = 0 if scenario == "sold-out" else rng.randrange(1, 9)
        connection.execute("INSERT INTO goods VALUES (?, ?, ?, ?)", (number, name, rng.randrange(500, 9000), stock))


@cw.tool(read_only=True, discovery=True)
def list_goods(shop: SQLite, /) -> list[dict[str, int | str]]:
    """What there is, with price and stock."""
    return [dict(row) for row in shop.execute("SELECT name, price_cents, stock FROM goods ORDER BY name")]


@cw.tool
def order(shop: SQLite, /, name: str, pieces: int) -> dict[str, int]:
    """Order something. Fails with NOT_SOLD, or with TOO_FEW where there is less in stock."""
    row = shop.execute("SELECT id, stock FROM goods WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise cw.ToolError("NOT_SOLD", f"{name!r:.40} is not sold here")
    made = shop.execute("INSERT INTO orders (good, pieces) VALUES (?, ?)", (row["id"], pieces))
    shop.execute("UPDATE goods SET stock = stock - ? WHERE id = ?", (pieces, row["id"]))
    if row["stock"] < pieces:  # the order and the stock go back with the savepoint
        raise cw.ToolError("TOO_FEW", f"there are {row['stock']}")
    return {"order": int(made.lastrowid or 0), "left": row["stock"] - pieces}


shop = FunctionEnvironment("shop", [list_goods, order], state=SQLiteTemplate(SCHEMA, fill))

if __name__ == "__main__":
    session = shop.open("", seed=1)
    before = session.digest()
    print(session.call("order", {"name": "tent", "pieces": 99}).code, session.digest() == before)
    print(session.call("order", {"name": "tent", "pieces": 1}).value)
    print(session.diff())  # type: ignore[attr-defined]
    session.close()
