"""An environment with state in 40 lines: rows, tools, scenarios.

Run: python sdk_examples/own_stateful_environment.py
"""

from collections.abc import Iterator
from random import Random

from typing_extensions import TypedDict

import callwright as cw
from callwright.environments import Cursor, Limit, Page


@cw.row("books", prefix="B", index=("topic",))
class Book:
    id: str
    title: str
    topic: str
    copies: int


class BookView(TypedDict):
    id: str
    title: str
    copies: int


def view(book: Book) -> BookView:
    return {"id": book.id, "title": book.title, "copies": book.copies}


@cw.tool(read_only=True, discovery=True)
def find_books(world: cw.World, /, topic: str, limit: Limit = 20, cursor: Cursor = "") -> Page[BookView]:
    """Find the books about a topic."""
    return cw.page(world.find(Book, topic=topic), view, limit, cursor)


@cw.tool
def lend(world: cw.World, /, book_id: str) -> BookView:
    """Lend a copy of a book. Fails with NONE_LEFT if there is none on the shelf."""
    book = world.need(Book, book_id)
    if not book.copies:
        raise cw.ToolError("NONE_LEFT", f"every copy of {book.title!r} is lent")
    return view(world.update(book, copies=book.copies - 1))


def village(rng: Random, scale: float) -> Iterator[Book]:
    for number in range(round(200 * scale)):
        topic = rng.choice(["tea", "trains", "whales"])
        yield Book(f"B{number + 1:05d}", f"On {topic}, volume {number}", topic, rng.randrange(3))


library = cw.StatefulEnvironment(
    "library", rows=[Book], tools=[find_books, lend], scenarios={"village": cw.Scenario(village, "a village library")}
)

if __name__ == "__main__":
    session = library.open(seed=1)
    first = session.digest()
    found = session.call("find_books", {"topic": "tea", "limit": 2}).value
    print(found["total"], [book["id"] for book in found["items"]])
    empty, full = (session.world.find(Book, topic="tea", copies=count)[0] for count in (0, 2))
    print(session.call("lend", {"book_id": empty.id}).code, session.digest() == first)
    fork = session.fork()
    print(fork.call("lend", {"book_id": full.id}).kind, fork.diff()["books"]["changed"][full.id])
    fork.reset()
    print(fork.digest() == session.digest() == first)
