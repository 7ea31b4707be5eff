"""Films on at cinemas."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright.tools.spec import ToolError
from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    CityName,
    Clock,
    Day,
    Domain,
    Email,
    PersonName,
    Row,
    Rows,
    asked_for,
    at_most,
    clock,
    edited,
    fail,
    first_by,
    from_time,
    keep,
    says,
    table,
    the_city,
    the_day,
)
from callwright_plugins.depthbench.world import (
    CITY_NAMES,
    FIRST_NAMES,
    LAST_NAMES,
    at_hand,
    named_roll,
    per_world,
    pick,
    roll,
    shuffled,
    stream,
)

DOMAIN: Final = Domain("cinema")
GENRES: Final = ("animation", "comedy", "documentary", "drama", "thriller")
Genre = Literal["animation", "comedy", "documentary", "drama", "thriller"]
_HOUSES: Final = ("Arthouse", "Rex", "Odeon", "Lumen", "Palace", "Roxy")
_FIRST: Final = ("Midnight", "Paper", "Glass", "Distant", "Broken", "Golden", "Silent", "Northern", "Hollow", "Crimson")
_SECOND: Final = ("Harvest", "Tide", "Letters", "Kingdom", "Summer", "Signals")


class Showing(TypedDict):
    """A showing; the last three stand there after the filter of that kind."""

    showing_id: str
    film: str
    cinema: str
    genre: Genre
    day: Day
    starts: Clock
    price: float
    age_limit: int
    minutes_later: NotRequired[int]
    under_budget_by: NotRequired[float]
    years_to_spare: NotRequired[float]


class Cinemas(TypedDict):
    """The cinemas of a city."""

    place: CityName
    cinemas: list[str]


class Showings(TypedDict):
    """What is on."""

    day: Day
    showings: list[Showing]


class Credits(TypedDict):
    """Who made a film."""

    film: str
    director: str
    lead: str
    runtime_minutes: int


class Viewer(TypedDict):
    """Who goes."""

    name: PersonName
    email: Email


class Seats(TypedDict):
    """Reserved seats."""

    ticket_code: str
    showing_id: str
    film: str
    seats: int
    total: float
    name: str


ShowingTable = Annotated[list[Showing], REFERENCE_ONLY]


@per_world()
def films() -> dict[str, Row]:
    """Sixty films with genre and age limit."""
    rng = stream("films")
    return {
        f"{first} {second}": {"genre": pick(rng, GENRES), "age_limit": pick(rng, (0, 6, 12, 16, 18))}
        for first in _FIRST
        for second in _SECOND
    }


@per_world()
def cinemas() -> dict[str, list[str]]:
    """Three cinemas in every city."""
    drawn = {city: shuffled(stream(f"cinemas/{city}"), _HOUSES)[:3] for city in CITY_NAMES}
    return {city: [f"{word} {city}" for word in words] for city, words in drawn.items()}


@per_world()
def known_cinemas() -> dict[str, int]:
    """The cinemas that show something, each with its number: those of a city's list, or all that a list might name."""
    listed = cinemas()
    if at_hand.get().version.pins_names:
        listed = {city: [f"{word} {city}" for word in _HOUSES] for city in CITY_NAMES}
    return {name: number for number, name in enumerate(name for names in listed.values() for name in names)}


@per_world()
def _programme(cinema: str) -> Rows:
    """The twelve showings of a cinema; each day leaves some out and moves the others a little."""
    rng, rows = stream(f"cinema/{cinema}"), Rows()
    for number, film in enumerate(shuffled(rng, tuple(films()))[:12]):
        rows.append(
            {
                "number": number,
                "film": film,
                "starts": 660 + 15 * int(rng.random() * 44),
                "price": 7 + int(rng.random() * 18) / 2,
            }
        )
    return rows


def _showing(cinema: str, number: int, day: str) -> Row | None:
    slot = _programme(cinema)[number]
    key = f"showing/{cinema}/{number}/{day}"
    if named_roll(key, 60) % 5 == 0:
        return None
    seed = roll(key, 60)
    film = slot["film"]
    return {
        "showing_id": f"S{day[2:4]}{day[5:7]}{day[8:]}-{known_cinemas()[cinema]}-{number}",
        "film": film,
        "cinema": cinema,
        "genre": films()[film]["genre"],
        "day": day,
        "starts": clock(slot["starts"] + 5 * (seed // 5)),
        "price": slot["price"],
        "age_limit": films()[film]["age_limit"],
    }


@per_world(4096)
def _on(cinema: str, day: str) -> Rows:
    return Rows([row for number in range(12) if (row := _showing(cinema, number, day))])


def _as_edited(rows: Rows) -> Rows:
    """Showings with what is edited of them, and of their films."""
    return edited("films", edited("showings", rows, lambda row: row["showing_id"]), lambda row: row["film"])


def showing_by_id(showing_id: str) -> Row:
    """A showing; fails with ``unknown_showing``."""
    parts = showing_id.split("-")
    if (
        len(parts) == 3
        and len(parts[0]) == 7
        and all(p.isascii() and p.isdigit() and len(p) < 7 for p in (parts[0][1:], *parts[1:]))
    ):
        day = f"20{parts[0][1:3]}-{parts[0][3:5]}-{parts[0][5:]}"
        names = list(known_cinemas())
        if int(parts[1]) < len(names) and int(parts[2]) < 12:
            the_day(day)
            row = _showing(names[int(parts[1])], int(parts[2]), day)
            if row is not None and row["showing_id"] == showing_id:
                return _as_edited(Rows([row]))[0]
    raise ToolError("unknown_showing", f"there is no showing {showing_id[:20]!r}")


@DOMAIN.tool("retrieval", "cinemas")
def cinemas_in(place: CityName) -> Cinemas:
    """The names of the cinemas of a city."""
    the_city(place)
    return {"place": place, "cinemas": cinemas()[place]}


@DOMAIN.tool("retrieval", "showings")
def showings_at(cinemas: Annotated[list[str], says(minItems=1, maxItems=10)], day: Day) -> Showings:
    """Every showing at the named cinemas on a day."""
    the_day(day)
    rows = Rows()
    for cinema in asked_for(cinemas):
        if cinema not in known_cinemas():
            fail("unknown_cinema", f"no cinema named {cinema[:40]!r} is known")
        rows.extend(_on(cinema, day))
    return {"day": day, "showings": _as_edited(rows)}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def keep_showings_of_genre(showings: ShowingTable, genre: Genre) -> list[Showing]:
    """The given showings of films of a genre."""
    return keep(table(showings, "showing_id", "genre"), "genre", genre)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_showings_from(showings: ShowingTable, clock: Clock) -> list[Showing]:
    """The given showings that start at a time of day or later."""
    return from_time(table(showings, "showing_id", "starts"), "starts", clock, "minutes_later")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_showings_for_age(showings: ShowingTable, age: Annotated[int, says(minimum=0, maximum=120)]) -> list[Showing]:
    """The given showings that someone of an age may watch."""
    return at_most(table(showings, "showing_id", "age_limit"), "age_limit", age, "years_to_spare")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_showings_within_price(
    showings: ShowingTable, maximum_price: Annotated[float, says(minimum=1, maximum=1000)]
) -> list[Showing]:
    """The given showings whose tickets cost at most this."""
    return at_most(table(showings, "showing_id", "price"), "price", maximum_price, "under_budget_by")  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "showing_id")
def choose_earliest_showing(showings: ShowingTable) -> Showing:
    """The one of the given showings that starts first."""
    return first_by(table(showings, "showing_id", "starts"), lambda row: (row["starts"], row["showing_id"]))  # type: ignore[return-value]


@DOMAIN.tool("information")
def film_credits(film: str) -> Credits:
    """Director, lead and runtime of a film, by its title."""
    if film not in films():
        fail("unknown_film", f"no film called {film[:40]!r} is known")
    rng = stream(f"credits/{film}")
    director, lead = (f"{pick(rng, FIRST_NAMES)} {pick(rng, LAST_NAMES)}" for _ in range(2))
    return {"film": film, "director": director, "lead": lead, "runtime_minutes": 78 + int(rng.random() * 90)}


@DOMAIN.tool("workflow", "ticket_code", read_only=False)
def reserve_cinema_seats(showing_id: str, seats: Annotated[int, says(minimum=1, maximum=10)], viewer: Viewer) -> Seats:
    """Reserve seats for a showing. Fails if there are not so many left."""
    row = showing_by_id(showing_id)
    if seats > roll(f"seats/{showing_id}", 12):
        fail("sold_out", f"fewer than {seats} seats are left for {showing_id}")
    number = roll(f"ticket/{showing_id}/{seats}/{viewer['name']}/{viewer['email']}", 90_000) + 10_000
    return {
        "ticket_code": f"K{number}",
        "showing_id": showing_id,
        "film": row["film"],
        "seats": seats,
        "total": round(row["price"] * seats, 2),
        "name": viewer["name"],
    }
