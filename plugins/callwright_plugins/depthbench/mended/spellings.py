"""Names in any case: what tools that fold names take for the name that their data have.

A person who writes "amsterdam" means Amsterdam, and there is no other. So a name that is not known as it is written is
looked up without regard to case and to white space around it; what tools echo is the name as their data have it.
Enumerations, patterns and formats are the schema's, and stay as strict as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from callwright_plugins.depthbench.tools.train import cars, kitchens, restaurants
from callwright_plugins.depthbench.tools.validation import cinema, hotels, songs
from callwright_plugins.depthbench.world import CITIES, Version, within, world

#: Parameter -> the names that it takes. They are the same in all worlds of a version that folds names.
_NAMES: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    **dict.fromkeys(("city", "place", "origin", "destination", "source", "target"), lambda: CITIES),
    "restaurant": restaurants.by_name,
    "dealerships": cars.by_dealership,
    "kitchen": kitchens.menus,
    "hotel": hotels.by_hotel,
    "cinemas": cinema.known_cinemas,
    "film": cinema.films,
    "artist": songs.by_artist,
    "song": songs.by_title,
}


@cache
def _folded(parameter: str, version: Version) -> Mapping[str, str]:
    with within(world(0, version)):
        return {name.casefold(): name for name in _NAMES[parameter]()}


def folded(arguments: dict[str, Any], version: Version) -> dict[str, Any]:
    """The arguments with names as the data of a version have them; the same object if there is nothing to change."""
    changed: dict[str, Any] = {}
    for parameter, value in arguments.items():
        if parameter in _NAMES:
            known = _folded(parameter, version)
            if isinstance(value, str):
                name = known.get(value.strip().casefold(), value)
                if name != value:
                    changed[parameter] = name
            elif type(value) is list and all(isinstance(one, str) for one in value):
                names = [known.get(one.strip().casefold(), one) for one in value]
                if names != value:
                    changed[parameter] = names
    return {**arguments, **changed} if changed else arguments
