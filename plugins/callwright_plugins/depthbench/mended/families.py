"""The families that ``depthbench-v1.1`` draws from: each condition can matter, and nothing else is as right."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from callwright_plugins.depthbench.families.family import FILTERS, Family
from callwright_plugins.depthbench.mended.boundaries import CHOICES, RULES, is_idle

#: Families of a missing value for which there is a sensible program all the same (:mod:`..families.arguable` says
#: which).
ARGUABLE: Final = frozenset(
    {"vague/convert_currency", "vague/find_product_code", "vague/convert_length", "vague/travel_time"}
    | {"vague/reply_to_message"}
)
#: Tool -> another that gives the same value in another result: neither is offered beside the other.
SAME_VALUE: Final[Mapping[str, str]] = {
    "get_exchange_rate": "convert_currency",
    "convert_currency": "get_exchange_rate",
}


@cache
def _has_idle_bound(tools: tuple[str, ...]) -> bool:
    rules = [RULES[name] for name in tools if name in FILTERS]
    return any(is_idle(rule, name) for name in tools if name in CHOICES for rule in rules)


def is_mended(family: Family) -> bool:
    """Whether tasks of a family can be sound without margins.

    "The cheapest of those that cost at most 240" is not: whatever the bound, the cheapest is the same.
    """
    if family.name in ARGUABLE:
        return False
    chained = family.returns == "one" and not family.kind
    return not (chained and _has_idle_bound(tuple(step.tool for step in family.steps)))
