"""Results and listings that fit a model with little room: nothing is lost, and nothing else is different."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

import callwright as cw
from callwright.environments import Fit
from callwright.environments.paging import fit_to
from callwright.environments.telling import as_text
from callwright.errors import UnknownName
from callwright.walk.prompt import describe_tools


@cw.row("books", prefix="B")
class Book:
    id: str
    title: str
    shelf: str | None
    tags: tuple[str, ...] = ()


class BookView(TypedDict):
    """A book."""

    id: str
    title: str
    shelf: str | None
    tags: list[str]


def view(book: Book) -> BookView:
    return {"id": book.id, "title": book.title, "shelf": book.shelf, "tags": list(book.tags)}


@cw.tool(read_only=True, discovery=True)
def find_books(
    world: cw.World,
    /,
    word: str = "",
    limit: cw.environments.Limit = 20,
    cursor: cw.environments.Cursor = "",
) -> cw.environments.Page[BookView]:
    """Find books. Fails with NONE_LEFT if there is none."""
    return cw.page([book for book in world.rows(Book) if word in book.title], view, limit, cursor)


@cw.tool(read_only=True)
def get_book(world: cw.World, /, book_id: str) -> BookView | None:
    """A book, if it is there."""
    book = world.get(Book, book_id)
    return None if book is None else view(book)


@cw.tool
def shelve(world: cw.World, /, book_id: str, shelf: str | None = None) -> BookView:
    """Put a book on a shelf, or on none."""
    return view(world.update(world.need(Book, book_id), shelf=shelf))


class Others(TypedDict):
    """A page whose cursors are no places in a list."""

    items: list[str]
    next_cursor: str | None


@cw.tool(read_only=True)
def from_elsewhere(world: cw.World, /, cursor: str = "") -> Others:
    """A page of another kind."""
    return {"items": ["x" * 300] * 5, "next_cursor": "later"}


@cw.tool(read_only=True)
def blank(world: cw.World, /) -> dict[str, str]:
    """An object of which nothing is left."""
    return {"note": ""}


TITLES = [f"Volume {n} " + "x" * (n * 37 % 400) for n in range(40)]


def many(rng: Random, scale: float) -> Iterator[Book]:
    for number, title in enumerate(TITLES):
        yield Book(f"B{number:03d}", title, f"S{number}" if number % 3 else None, ("old",) if number % 2 else ())


def library(**options: Any) -> cw.StatefulEnvironment:
    tools = [find_books, get_book, shelve, from_elsewhere, blank]
    made = cw.StatefulEnvironment("shelves", rows=[Book], tools=tools, scenarios={"all": cw.Scenario(many)})
    return made.fitted(Fit(**options)) if options else made


def size(value: Any) -> int:
    return len(as_text(value).encode())


@settings(max_examples=60, deadline=None)
@given(st.integers(200, 4000), st.integers(1, 100), st.sampled_from(["", "1", "Volume 3", "nothing like it"]))
def test_pages_that_end_early_hold_all_items_in_their_order(most: int, limit: int, word: str) -> None:
    whole = library().open().call("find_books", {"word": word, "limit": 100}).value
    session = library(page_bytes=most).open()
    items: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = session.call("find_books", {"word": word, "limit": limit, "cursor": cursor}).value
        assert page["total"] == whole["total"]
        assert len(page["items"]) <= limit
        assert size(page) <= most or len(page["items"]) == 1
        items += page["items"]
        assert page["items"] or not whole["items"], "or paging would never end"
        cursor = page["next_cursor"]
    assert items == whole["items"]


def test_a_page_is_as_long_as_it_may_be() -> None:
    """Whatever the bound is, the item after the last one would have gone over it."""
    items = library().open().call("find_books", {"limit": 100}).value["items"]
    for most in range(200, 6000, 111):
        page = library(page_bytes=most).open().call("find_books", {"limit": 100}).value
        kept = len(page["items"])
        assert page["next_cursor"] == (str(kept) if kept < len(items) else None)
        if kept < len(items):
            assert size({**page, "items": items[: kept + 1]}) > most


def test_a_bound_leaves_whole_what_is_no_page_of_ours() -> None:
    session = library(page_bytes=200).open()
    assert len(session.call("from_elsewhere", {}).value["items"]) == 5
    assert session.call("find_books", {"cursor": "x"}).code == "BAD_CURSOR"
    assert session.call("find_books", {"word": "nothing like it"}).kind == "empty"


def test_compact_results_leave_out_what_is_nothing_and_fit_their_schemas() -> None:
    environment = library(compact=True)
    session = environment.open()
    books = session.call("find_books", {"limit": 3}).value
    assert books["items"][0] == {"id": "B000", "title": TITLES[0]}
    assert books["items"][1] == {"id": "B001", "title": TITLES[1], "shelf": "S1", "tags": ["old"]}
    assert session.call("find_books", {"word": "nothing like it"}).value == {
        "items": [],
        "total": 0,
        "next_cursor": None,
    }
    assert session.call("blank", {}).value == {"note": ""}, "nothing would be left: it would read as empty"
    assert session.call("get_book", {"book_id": "B999"}).kind == "empty"
    for tool, arguments in [("find_books", {"limit": 40}), ("get_book", {"book_id": "B000"})]:
        value = session.call(tool, arguments).value
        schema = environment.tools[tool].result
        assert schema is not None
        assert jsonschema_rs.Draft202012Validator(schema).is_valid(value)


def test_worlds_effects_and_digests_are_the_same() -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("find_books", {}),
        ("shelve", {"book_id": "B001", "shelf": "S9"}),
        ("shelve", {"book_id": "B002", "shelf": None}),
        ("shelve", {"book_id": "B999"}),
        ("find_books", {"limit": 500}),
    ]
    plain, small = library().open(), library(page_bytes=300, compact=True).open()
    for tool, arguments in calls:
        one, other = plain.call(tool, arguments), small.call(tool, arguments)
        assert (one.kind, one.code, one.message) == (other.kind, other.code, other.message)
        assert plain.digest() == small.digest()
    assert small.fork().digest() == small.digest()
    again = pickle.loads(pickle.dumps(library(page_bytes=300, compact=True))).open()
    assert len(again.call("find_books", {}).value["items"]) < 5


def test_brief_tools_are_listed_in_few_words_and_checked_as_before() -> None:
    plain, small = library(), library(compact=True)
    assert not plain.tools["shelve"].brief
    lines = describe_tools(small.tools.values())
    assert lines[0] == (
        '{"name":"find_books","description":"Find books.","parameters":{"properties":{"word":{"type":"string"},'
        '"limit":{"default":20,"description":"Most items to return.","maximum":100,"type":"integer"},'
        '"cursor":{"description":"next_cursor of the page before; empty for the first.","type":"string"}}},'
        '"returns":"page of {id, title, shelf, tags}"}'
    )
    assert json.loads(lines[2])["returns"] == "as get_book"
    assert len("".join(lines)) < 0.5 * len("".join(describe_tools(plain.tools.values())))
    assert small.tools["shelve"].to_openai()["function"]["parameters"]["properties"]["shelf"] == {"type": "string"}
    assert small.open().call("shelve", {"book_id": "B001", "shelf": None}).kind == "ok", "null is allowed as before"


def test_a_briefing_says_what_results_leave_out() -> None:
    for name in ("email", "email+calendar"):
        whole, small = cw.environment(name), cw.environment(name, compact=True)
        told, also = (one.briefing(one.open("typical", 2)) for one in (whole, small))
        assert also.replace("\nResults leave out what is null or empty.", "") == told
        assert also != told
        bounded = cw.environment(name, page_bytes=900)
        assert bounded.briefing(bounded.open("typical", 2)) == told


@pytest.mark.parametrize("most", [199, 0, -5, 1.5, True, "4000"])
def test_a_bound_that_no_page_can_keep_is_refused(most: Any) -> None:
    with pytest.raises(cw.UsageError, match="page_bytes is a whole number from 200 on"):
        Fit(page_bytes=most)
    with pytest.raises(cw.UsageError, match="compact is true or false"):
        Fit(compact="yes")  # type: ignore[arg-type]


def test_an_environment_that_cannot_says_so() -> None:
    with pytest.raises(cw.UsageError, match="takes neither page_bytes nor compact"):
        fit_to(cw.environment("plain", tools=[]), Fit(compact=True))


def registry() -> cw.Registry:
    made = cw.Registry()
    lazy = [
        cw.Lazy("shelves", lambda: library()),
        cw.Lazy("mine", lambda compact="no": SimpleNamespace(name="mine", compact=compact)),
        cw.Lazy("plain", lambda: cw.environment("plain", tools=[])),
    ]
    made.add(SimpleNamespace(callwright_environments=cw.hookimpl(lambda: lazy)), name="shelves")
    return made


def test_they_are_options_of_every_registered_environment() -> None:
    known = registry()
    page = known.create("environment", "shelves", page_bytes=300).open().call("find_books", {}).value
    assert size(page) <= 300 or len(page["items"]) == 1
    assert known.create("environment", "shelves", compact=True).tools["shelve"].brief
    assert known.create("environment", "mine", compact="mine").compact == "mine", "an option of its own"
    with pytest.raises(cw.UsageError, match="neither page_bytes"):
        known.create("environment", "plain", compact=True)
    with pytest.raises(UnknownName, match="page_bytes"):
        known.create("environment", "shelves", page_byte=300)
