"""Songs of made-up artists."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    Domain,
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
)
from callwright_plugins.depthbench.world import naming, per_world, pick, roll, shuffled, stream

DOMAIN: Final = Domain("songs")
ARTISTS: Final = (
    "Ada Vale",
    "Brass Meadow",
    "Cold Harbour",
    "Delia Frost",
    "Echo Lane",
    "Fern & Flint",
    "Glasshouse",
    "Hollis Grey",
    "Iron Lilies",
    "June Parade",
    "Kestrel Sons",
    "Low Tide Choir",
)
MOODS: Final = ("cheerful", "dreamy", "energetic", "sad")
Mood = Literal["cheerful", "dreamy", "energetic", "sad"]
_OPEN: Final = (
    "Carry",
    "Counting",
    "Dancing with",
    "Falling for",
    "Half of",
    "Leaving",
    "Letters to",
    "Lost in",
    "Running to",
    "Waiting for",
)
_CLOSE: Final = [
    "Alice",
    "Autumn",
    "Berlin",
    "Daylight",
    "Fire",
    "Gravity",
    "Home",
    "July",
    "Lightning",
    "Monday",
    "Morning",
    "Nowhere",
    "October",
    "Paper Moons",
    "Rain",
    "Silver",
    "Strangers",
    "Summer",
    "Sunday",
    "the City",
    "the Sea",
    "Tomorrow",
    "Winter",
    "You",
    "Yesterday",
]
_LINES: Final = (
    "the lamps go out on the river",
    "I kept your letter in my coat",
    "we drove until the radio died",
    "nobody sings on the late train",
    "the harbour knows my name",
    "hold the morning a little longer",
    "every window faced the rain",
    "you left the kettle on again",
    "snow came early to the town",
    "call me when the tide turns",
)


class Song(TypedDict):
    """A song; the last two stand there after the filter of that kind."""

    song: str
    artist: str
    mood: Mood
    seconds: int
    released: int
    plays: int
    seconds_to_spare: NotRequired[float]
    years_after: NotRequired[float]


class Songs(TypedDict):
    """The songs of an artist."""

    artist: str
    songs: list[Song]


class Lyrics(TypedDict):
    """How a song goes."""

    song: str
    artist: str
    first_line: str
    refrain: str


class PlaylistLength(TypedDict):
    """How long songs take together."""

    songs: int
    seconds: int


SongTable = Annotated[list[Song], REFERENCE_ONLY]


@per_world()
def by_artist() -> dict[str, Rows]:
    """Twenty songs of every artist."""
    names = shuffled(naming(stream("songs"), "songs"), [f"{first} {last}" for first in _OPEN for last in _CLOSE])
    made: dict[str, Rows] = {}
    for number, artist in enumerate(ARTISTS):
        rng = stream(f"songs/{artist}")
        made[artist] = Rows()
        for name in names[20 * number : 20 * number + 20]:
            made[artist].append(
                {
                    "song": name,
                    "artist": artist,
                    "mood": pick(rng, MOODS),
                    "seconds": 125 + int(rng.random() * 230),
                    "released": 1998 + int(rng.random() * 27),
                    "plays": 1000 + int(rng.random() * 9_000_000),
                }
            )
    return made


@per_world()
def by_title() -> dict[str, Row]:
    """Every song by its title, which is its own."""
    return {row["song"]: row for rows in by_artist().values() for row in rows}


@DOMAIN.tool("retrieval", "songs")
def songs_by(artist: str) -> Songs:
    """All songs of an artist."""
    rows = by_artist().get(artist)
    if rows is None:
        fail("unknown_artist", f"no artist named {artist[:40]!r} is known")
    rows = edited("songs", rows, lambda row: row["song"])
    return {"artist": artist, "songs": rows}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def keep_songs_of_mood(songs: SongTable, mood: Mood) -> list[Song]:
    """The given songs that have a mood."""
    return keep(table(songs, "song", "mood"), "mood", mood)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_songs_up_to_seconds(
    songs: SongTable, maximum_seconds: Annotated[int, says(minimum=1, maximum=36_000)]
) -> list[Song]:
    """The given songs that last at most so many seconds."""
    return at_most(table(songs, "song", "seconds"), "seconds", maximum_seconds, "seconds_to_spare")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_songs_released_since(songs: SongTable, year: Annotated[int, says(minimum=1900, maximum=2030)]) -> list[Song]:
    """The given songs that came out in a year or later."""
    return at_least(table(songs, "song", "released"), "released", year, "years_after")  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "song")
def choose_longest_song(songs: SongTable) -> Song:
    """The one of the given songs that lasts longest."""
    return first_by(table(songs, "song", "seconds"), lambda row: (-row["seconds"], row["song"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "song")
def choose_most_played_song(songs: SongTable) -> Song:
    """The one of the given songs that was played most."""
    rows = table(songs, "song", "plays")
    return first_by(rows, lambda row: (-row["plays"], row["song"]))  # type: ignore[return-value]


@DOMAIN.tool("information")
def song_lyrics(song: str) -> Lyrics:
    """First line and refrain of a song, by its title."""
    row = by_title().get(song)
    if row is None:
        fail("unknown_song", f"no song called {song[:40]!r} is known")
    seed = roll(f"lyrics/{song}", 90)
    first, refrain = seed % 10, (seed % 10 + 1 + seed // 10) % 10
    return {"song": song, "artist": row["artist"], "first_line": _LINES[first], "refrain": _LINES[refrain]}


@DOMAIN.tool("information", "seconds")
def playlist_length(songs: SongTable) -> PlaylistLength:
    """How many songs are given and how many seconds they last together."""
    rows = table(songs, "song", "seconds")
    if not rows:
        fail("empty_table", "the playlist is empty")
    return {"songs": len(rows), "seconds": sum(row["seconds"] for row in rows)}
