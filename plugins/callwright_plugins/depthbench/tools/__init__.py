"""The 163 tools, a module a domain, in the folder of the split that the domain belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from callwright_plugins.depthbench.toolkit import Described, Domain
from callwright_plugins.depthbench.tools.train import (
    agenda,
    cars,
    dictionary,
    flights,
    kitchens,
    money,
    restaurants,
    shopping,
    weather,
    whereabouts,
)
from callwright_plugins.depthbench.tools.validation import (
    books,
    cinema,
    hotels,
    mailbox,
    maps,
    profile,
    songs,
    stocks,
    translation,
    units,
)

TRAIN: Final[tuple[Domain, ...]] = tuple(
    module.DOMAIN
    for module in (whereabouts, weather, restaurants, cars, flights, shopping, kitchens, money, dictionary, agenda)
)
VALIDATION: Final[tuple[Domain, ...]] = tuple(
    module.DOMAIN for module in (profile, hotels, stocks, books, cinema, songs, units, mailbox, maps, translation)
)
#: Every tool by name, in a fixed order.
TOOLS: Final[Mapping[str, Described]] = {
    name: described for domain in (*TRAIN, *VALIDATION) for name, described in domain.tools.items()
}
#: Tool -> the only split in which it occurs, in any role.
SPLIT: Final[Mapping[str, str]] = {
    **{name: "train" for domain in TRAIN for name in domain.tools},
    **{name: "validation" for domain in VALIDATION for name in domain.tools},
}
