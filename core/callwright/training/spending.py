"""What attempts and their rewards took of the servers that were asked: on each row, and in all."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from callwright.capability import has
from callwright.errors import PluginError
from callwright.walk.attempt import Attempt
from callwright.walk.components.capabilities import CountsUsage

if TYPE_CHECKING:
    from callwright.walk.reward import RewardRecipe

#: What is counted for a row, in the order in which it is written. ``cost`` is in the currency of the prices.
FIGURES: Final = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost")
#: Decimals of a cost: prices are per million tokens.
_DECIMALS: Final = 9


def used_by(attempt: Attempt) -> dict[str, float] | None:
    """What the answers behind an attempt took, over its turns and those of its user; ``None`` where nobody said
    anything of it.
    """
    said = [*(one.usage for one in attempt.completions), attempt.usage_outside]
    said += [one.usage for one in attempt.said if one is not None]
    found = [usage for usage in said if usage is not None]
    return total(found) if found else None


def total(usages: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The sum of some, which is the same in whatever order they come. What is 0 is left out, but for ``requests``."""
    several = list(usages)
    summed = {name: _sum([one.get(name) for one in several]) for name in FIGURES}
    return {name: value for name, value in summed.items() if value or name == "requests"}


def total_of_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, float] | None:
    """What all rows took; ``None`` if none of them says."""
    found = [usage for row in rows if isinstance(usage := row.get("usage"), Mapping)]
    return total(found) if found else None


def _sum(values: Sequence[Any]) -> float:
    known = [value for value in values if type(value) in (int, float) and math.isfinite(value)]
    whole = math.fsum(known)
    return round(whole, _DECIMALS) if any(type(value) is float for value in known) else int(whole)


def in_words(usage: Mapping[str, float]) -> str:
    """The figures for people: ``12 requests, 3,400 prompt tokens, cost 0.02``."""
    counted = [f"{value:,.0f} {name.replace('_', ' ')}" for name, value in usage.items() if value and name != "cost"]
    return ", ".join(counted + ([f"cost {cost:,}"] if (cost := usage.get("cost")) else []))


class Meter:
    """What the components of recipes have asked of servers since it was read last, in this process.

    A component that asks says so in ``usage``: the :data:`FIGURES` of everything that it has asked for so far. Threads
    may share a meter: what all of them read adds up to what was asked.
    """

    def __init__(self, *recipes: RewardRecipe) -> None:
        components = {id(term.component): term.component for recipe in recipes for term in recipe.terms}
        self._asking = [component for component in components.values() if has(component, CountsUsage)]
        self._lock = threading.Lock()
        self._read: Mapping[str, float] = self._now()

    def take(self) -> dict[str, float]:
        """The figures since the last time; empty if nothing was asked."""
        if not self._asking:
            return {}
        with self._lock:
            before, self._read = self._read, self._now()
            since = {name: value - before.get(name, 0) for name, value in self._read.items()}
        return total([since]) if any(since.values()) else {}

    def _now(self) -> dict[str, float]:
        for component in self._asking:
            if not isinstance(component.usage, Mapping):
                raise PluginError(
                    f"the reward component {component.name!r} tells its usage as {type(component.usage).__name__}; it "
                    f"is a mapping of the figures {', '.join(FIGURES)} so far (of a model server: usage.to_json())"
                )
        return total(component.usage for component in self._asking)
