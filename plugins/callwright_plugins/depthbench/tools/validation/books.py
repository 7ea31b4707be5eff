"""Books and the libraries that lend them."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    CityName,
    Day,
    Domain,
    PersonName,
    Row,
    Rows,
    at_least,
    at_most,
    edited,
    fail,
    first_by,
    keep,
    says,
    table,
    the_city,
    the_day,
)
from callwright_plugins.depthbench.world import (
    FIRST_NAMES,
    LANGUAGES,
    LAST_NAMES,
    naming,
    per_world,
    pick,
    roll,
    shuffled,
    stream,
)

DOMAIN: Final = Domain("books")
SUBJECTS: Final = ("astronomy", "cooking", "crime", "gardening", "history", "philosophy", "poetry", "travel")
Subject = Literal["astronomy", "cooking", "crime", "gardening", "history", "philosophy", "poetry", "travel"]
Language = Literal["English", "French", "German", "Italian", "Spanish"]
_LEAD: Final = (
    "A Short Walk to",
    "Beyond",
    "Letters from",
    "Notes on",
    "The Book of",
    "The Last",
    "The Quiet",
    "Under",
    "Winter in",
    "Seven Days of",
)
_TAIL: Final = [
    "the",
    "Orchard",
    "Stars",
    "Salt",
    "Harbour",
    "Mirrors",
    "Ashes",
    "Amber",
    "Thunder",
    "Ink",
    "Rivers",
    "Honey",
    "Glass",
    "Stone",
    "Lanterns",
    "Smoke",
    "Snow",
    "Islands",
    "Saffron",
    "Clocks",
    "Ravens",
    "Marble",
    "Mercury",
    "Ivy",
    "Thistles",
]


class Book(TypedDict):
    """A book; the last two stand there after the filter of that kind."""

    isbn: str
    title: str
    author: str
    subject: Subject
    language: Language
    pages: int
    published: int
    pages_to_spare: NotRequired[float]
    years_after: NotRequired[float]


class Books(TypedDict):
    """The books on a subject."""

    subject: Subject
    books: list[Book]


class Summary(TypedDict):
    """A book in a sentence."""

    isbn: str
    title: str
    summary: str


class Copies(TypedDict):
    """What the libraries of a city have."""

    isbn: str
    place: CityName
    copies: int
    on_loan: int
    shelf: str


class LibraryReader(TypedDict):
    """Who borrows."""

    name: PersonName
    card_number: Annotated[str, says(pattern="^L[0-9]{5}$", description="L and five digits")]


class BookReservation(TypedDict):
    """A reserved copy."""

    reservation: str
    isbn: str
    place: CityName
    pick_up: Day
    reader: str


BookTable = Annotated[list[Book], REFERENCE_ONLY]


@per_world()
def by_subject() -> dict[str, Rows]:
    """Thirty-six books on every subject."""
    titles = shuffled(
        naming(stream("books"), "books"),
        [f"{lead} {tail}" for lead in _LEAD for tail in _TAIL]
        + [f"{tail} and {other}" for tail in _TAIL for other in _TAIL[::3] if tail != other],
    )
    made: dict[str, Rows] = {}
    for number, subject in enumerate(SUBJECTS):
        rng = stream(f"books/{subject}")
        numbers = naming(rng, f"books/{subject}")
        made[subject] = Rows()
        for index, title in enumerate(titles[36 * number : 36 * number + 36]):
            made[subject].append(
                {
                    "isbn": f"978-{10 + number}-{1000 + 37 * index + int(numbers.random() * 37)}",
                    "title": title,
                    "author": f"{pick(rng, FIRST_NAMES)} {pick(rng, LAST_NAMES)}",
                    "subject": subject,
                    "language": pick(rng, LANGUAGES),
                    "pages": 90 + int(rng.random() * 610),
                    "published": 1960 + int(rng.random() * 65),
                }
            )
    return made


@per_world()
def by_isbn() -> dict[str, Row]:
    """Every book by its number."""
    return {row["isbn"]: row for rows in by_subject().values() for row in rows}


def _the_book(isbn: str) -> Row:
    row = by_isbn().get(isbn)
    if row is None:
        fail("unknown_book", f"there is no book {isbn[:20]!r}")
    return row


@DOMAIN.tool("retrieval", "books")
def browse_books(subject: Subject) -> Books:
    """All books on a subject."""
    rows = edited("books", by_subject()[subject], lambda row: row["isbn"])
    return {"subject": subject, "books": rows}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def keep_books_in_language(books: BookTable, language: Language) -> list[Book]:
    """The given books that are written in a language."""
    return keep(table(books, "isbn", "language"), "language", language)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_books_up_to_pages(
    books: BookTable, maximum_pages: Annotated[int, says(minimum=1, maximum=5000)]
) -> list[Book]:
    """The given books that have at most so many pages."""
    return at_most(table(books, "isbn", "pages"), "pages", maximum_pages, "pages_to_spare")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_books_published_since(books: BookTable, year: Annotated[int, says(minimum=1800, maximum=2030)]) -> list[Book]:
    """The given books that came out in a year or later."""
    return at_least(table(books, "isbn", "published"), "published", year, "years_after")  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "isbn")
def choose_longest_book(books: BookTable) -> Book:
    """The one of the given books with most pages."""
    return first_by(table(books, "isbn", "pages"), lambda row: (-row["pages"], row["isbn"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "isbn")
def choose_newest_book(books: BookTable) -> Book:
    """The one of the given books that came out last."""
    return first_by(table(books, "isbn", "published"), lambda row: (-row["published"], row["isbn"]))  # type: ignore[return-value]


@DOMAIN.tool("information")
def book_summary(isbn: str) -> Summary:
    """A book in one sentence, by its ISBN."""
    row = _the_book(isbn)
    seed = roll(f"summary/{isbn}", 1 << 20)
    who = (
        "A retired teacher",
        "A young surveyor",
        "A lighthouse keeper",
        "An archivist",
        "Two sisters",
        "A ship's cook",
    )[seed % 6]
    what = (
        "returns to a village",
        "inherits a map",
        "keeps a diary for a year",
        "follows a river",
        "opens a shop",
        "finds old letters",
    )[seed // 6 % 6]
    return {"isbn": isbn, "title": row["title"], "summary": f"{who} {what} and learns about {row['subject']}."}


@DOMAIN.tool("information", "copies")
def library_copies(isbn: str, place: CityName) -> Copies:
    """How many copies of a book the libraries of a city have, how many are on loan, and the shelf."""
    _the_book(isbn)
    the_city(place)
    seed = roll(f"copies/{isbn}/{place}", 1 << 20)
    copies = 1 + seed % 9
    return {
        "isbn": isbn,
        "place": place,
        "copies": copies,
        "on_loan": seed // 9 % (copies + 1),
        "shelf": f"{'ABCDEF'[seed // 90 % 6]}{1 + seed // 540 % 60}",
    }


@DOMAIN.tool("workflow", "reservation", read_only=False)
def reserve_library_book(isbn: str, place: CityName, pick_up: Day, reader: LibraryReader) -> BookReservation:
    """Reserve a copy of a book at the library of a city. Fails if every copy is on loan."""
    row = library_copies(isbn, place)
    the_day(pick_up)
    if row["on_loan"] == row["copies"]:
        fail("sold_out", f"all {row['copies']} copies in {place} are on loan")
    number = roll(f"borrow/{isbn}/{place}/{pick_up}/{reader['name']}/{reader['card_number']}", 90_000) + 10_000
    return {"reservation": f"B{number}", "isbn": isbn, "place": place, "pick_up": pick_up, "reader": reader["name"]}
