"""Rows of the map. Coordinates are degrees (WGS 84), lengths metres, speeds km/h."""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row

#: Cells are squares of this many degrees.
CELL: Final = 0.05


@row("categories", key="key")
class Category:
    """A kind of place."""

    key: str
    name: str


@row("nodes", prefix="N")
class Node:
    """A junction of the road graph."""

    id: str
    lat: float
    lon: float


@row("edges", prefix="E", index=("source",))
class Edge:
    """A road, path or line from one junction to another, in this direction only. ``modes`` may use it."""

    id: str
    source: str
    target: str
    name: str
    kind: str
    length_m: int
    speed_kmh: int
    modes: tuple[str, ...]
    toll: bool = False


@row("places", prefix="P", index=("category", "city"))
class Place:
    """A place or, with the category ``address``, only a house. Open from ``opens`` to ``closes`` (minutes of the local
    day; equal ones: always)."""

    id: str
    name: str
    category: str
    street: str
    number: int
    city: str
    lat: float
    lon: float
    node: str
    rating: float
    opens: int
    closes: int

    @property
    def address(self) -> str:
        """``12 Birch Street, Arnsberg``."""
        return f"{self.number} {self.street}, {self.city}"


@row("saved_places", prefix="SV")
class SavedPlace:
    """A location that the user keeps under a label."""

    id: str
    label: str
    lat: float
    lon: float
    place: str


@row("profile")
class Profile:
    """The user: ``home`` is a location as text, or empty."""

    id: str
    name: str
    home: str


@row("cells", key=("row", "column"))
class Cell:
    """A square of the map, with its mean elevation and its time zone; ``row`` and ``column`` are degrees over CELL."""

    row: int
    column: int
    elevation_m: int
    utc_offset_minutes: int


ROWS: Final = (Category, Node, Edge, Place, SavedPlace, Profile, Cell)
