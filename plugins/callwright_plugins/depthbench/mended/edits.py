"""Edits of a world: rows of its data that differ from what was drawn, and how a scenario says them.

A scenario is a user and a world, ``user-0042@7``, and may go on with edits as JSON without spaces:
``user-0042@7{"cars":{"C1003":{"price":9000}}}``. The rows are those of :data:`COLUMNS`. Whatever a tool says of an
edited row agrees: the listing, the look-up by its number, the booking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.errors import UsageError
from callwright_plugins.depthbench.world import CITIES, CONTEXTS, WORLDS, Edits

#: Table -> the columns that can be edited, with the JSON types that they may have. The key of a row is its number or
#: name; of a dish ``kitchen/dish``, of a flight ``flight/date``, of a rate ``hotel/arrival``, of an event
#: ``date/event``.
COLUMNS: Final[Mapping[str, Mapping[str, tuple[type, ...]]]] = {
    "restaurants": {
        "cuisine": (str,), "rating": (int, float), "average_bill": (int,), "opens": (str,), "closes": (str,),
    },
    "cars": {"year": (int,), "mileage_km": (int,), "price": (int,)},
    "flights": {"departs": (str,), "duration_minutes": (int,), "stops": (int,), "price": (int,)},
    "dishes": {"price": (int, float), "calories": (int,)},
    "events": {"starts": (str,), "attendees": (list,)},
    "hotels": {"district": (str,), "stars": (int,), "guest_score": (int, float), "amenities": (list,)},
    "rates": {"nightly_rate": (int,)},
    "books": {"language": (str,), "pages": (int,), "published": (int,)},
    "films": {"genre": (str,), "age_limit": (int,)},
    "showings": {"starts": (str,), "price": (int, float)},
    "songs": {"mood": (str,), "seconds": (int,), "released": (int,), "plays": (int,)},
    "messages": {"sender": (str,), "received": (str,), "labels": (list,)},
    "cities": {
        "elevation": (int,), "population": (int,), "latitude": (int, float), "longitude": (int, float),
        "offset": (int,),
    },
}  # fmt: skip
#: A world has no more edited rows than this, and a scenario no more characters.
MOST_ROWS: Final = 64
MOST_CHARACTERS: Final = 16_384
_TIMES: Final = frozenset({"opens", "closes", "departs", "starts"})
_TIME: Final = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
_DAY: Final = re.compile("20[0-9]{2}-[01][0-9]-[0-3][0-9]", re.ASCII)
_SCENARIO: Final = re.compile("user-([0-9]{4})(?:@([1-9][0-9]{0,4}))?", re.ASCII)


def written(scenario: str, edits: Edits) -> str:
    """A scenario with edits. The same edits in another order give the same text."""
    return scenario + (json.dumps(edits, separators=(",", ":"), sort_keys=True) if edits else "")


def read(scenario: str, name: str) -> tuple[int, int, Edits]:
    """The number of the user, the number of the world, and the edits of a scenario of the environment ``name``.

    Raises :class:`callwright.UsageError` for a text that is none.
    """
    head, brace, tail = scenario.partition("{")
    found = _SCENARIO.fullmatch(head)
    if found is None or int(found[1]) >= CONTEXTS:
        last = f"user-{CONTEXTS - 1:04d}"
        raise UsageError(
            f"{scenario[:80]!r} is no scenario of {name}; they are user-0000 to {last}, and in other worlds "
            f"user-0000@1 to {last}@{WORLDS - 1}, each perhaps with edits as JSON behind it"
        )
    return int(found[1]), int(found[2] or 0), _edits(brace + tail) if brace else {}


def _edits(text: str) -> Edits:
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"the edits of a scenario take {len(text)} characters; at most {MOST_CHARACTERS} are read")
    try:
        found: Any = json.loads(text, parse_constant=lambda constant: None)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the edits {text[:80]!r} of a scenario are no JSON: {error}") from error
    rows = 0
    for table, changed in found.items():
        if table not in COLUMNS:
            raise UsageError(f"a scenario edits the table {table[:40]!r}; there are: {', '.join(COLUMNS)}")
        for key, values in changed.items() if isinstance(changed, dict) else ((table, None),):
            rows += 1
            if not isinstance(values, dict) or not values:
                raise UsageError(f"edits of {table} are an object of rows, each an object of columns")
            if table == "cities" and key not in CITIES:
                raise UsageError(f"a scenario edits the city {key[:40]!r}, which does not exist")
            for column, value in values.items():
                _check(table, column, value)
    if rows > MOST_ROWS:
        raise UsageError(f"a scenario edits {rows} rows; at most {MOST_ROWS} are allowed")
    edits: Edits = found
    return edits


def _check(table: str, column: str, value: Any) -> None:
    kinds = COLUMNS[table].get(column)
    if kinds is None:
        raise UsageError(f"a scenario edits {table}.{column[:40]}; there are: {', '.join(COLUMNS[table])}")
    right = type(value) in kinds
    if right and str in kinds:
        right = len(value) <= 80
        if column in _TIMES:
            right = _TIME.fullmatch(value) is not None
        elif column == "received":
            right = _DAY.fullmatch(value) is not None
    elif right and list in kinds:
        right = all(type(one) is str for one in value)
    elif right:
        right = abs(value) <= 1e9
    if not right:
        raise UsageError(f"a scenario sets {table}.{column} to {str(value)[:40]!r}, which does not fit")
