"""A stateful environment for the environment commands."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

import callwright as cw
from callwright.environments import Cursor, Limit, Page


@cw.row("books", prefix="B")
class Book:
    id: str
    title: str
    copies: int


class BookView(TypedDict):
    id: str
    copies: int


def view(book: Book) -> BookView:
    return {"id": book.id, "copies": book.copies}


@cw.tool(read_only=True, discovery=True)
def list_books(world: cw.World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[BookView]:
    """List books."""
    return cw.page(list(world.rows(Book)), view, limit, cursor)


@cw.tool
def lend(
    world: cw.World,
    /,
    book_id: Annotated[str, Field(description="Which book.")],
    how: Literal["short", "long"] = "short",
) -> BookView:
    """Lend a copy of a book."""
    book = world.need(Book, book_id)
    if not book.copies:
        raise cw.ToolError("NONE_LEFT", f"no copy of {book.id} is left")
    return view(world.update(book, copies=book.copies - 1))


@cw.tool
def donate(world: cw.World, /, title: str) -> BookView:
    """Give a book."""
    return view(world.put(Book(world.new_id(Book), title, 1)))


@cw.tool(destructive=True)
def burn(world: cw.World, /, book_id: str) -> BookView:
    """Take a book away."""
    book = world.need(Book, book_id)
    world.drop(book)
    return view(book)


@cw.tool
def audit(world: cw.World, /) -> dict[str, int]:
    """A tool of a toolset."""
    return {"books": world.count(Book)}


def books(rng: random.Random, scale: float) -> Iterator[Book]:
    for number in range(round(5 * scale)):
        yield Book(f"B{number + 1:05d}", f"Title {number}", number)


def library(toolsets: Sequence[Any] = (), scale: float = 1.0) -> Any:
    return cw.StatefulEnvironment(
        "library",
        rows=[Book],
        tools=[list_books, lend, donate, burn],
        scenarios={
            "typical": cw.Scenario(books, "a few books"),
            "none": cw.Scenario(lambda rng, scale: (), "no books"),
        },
        toolsets=toolsets,
        scale=scale,
    )


@cw.hookimpl
def callwright_environments() -> Iterator[cw.Lazy]:
    yield cw.Lazy("library", library, summary="a library")


@cw.hookimpl
def callwright_toolsets() -> Iterator[cw.Lazy]:
    yield cw.Lazy("audits", lambda: [audit], summary="audits")
