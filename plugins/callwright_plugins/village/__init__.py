"""The village: a bakery and a purse, one person, and errands in which a tiny policy learns to ask and to wait."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME = "village-v1"
BAKERY = "village-bakery"
PURSE = "village-purse"


@hookimpl
def callwright_environments() -> Iterable[Lazy]:
    """Register the two environments."""
    yield Lazy(
        BAKERY,
        "callwright_plugins.village.bakery:environment",
        summary="4 tools: cakes are ordered, baked while time passes, and brought",
        takes="callwright_plugins.village.options:StatefulOptions",
    )
    yield Lazy(
        PURSE,
        "callwright_plugins.village.purse:environment",
        summary="3 tools: one person's money behind a password that only its owner knows",
        takes="callwright_plugins.village.options:StatefulOptions",
    )


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """Register the corpus."""
    yield Lazy(
        NAME,
        "callwright_plugins.village.corpus:VillageCorpus",
        summary="Errands over bakery and purse, several turns each, with a user, a clock and a goal",
        takes="callwright_plugins.village.options:VillageOptions",
    )
