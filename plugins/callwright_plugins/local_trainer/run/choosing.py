"""Which evaluation of a run is the best one, and how many came after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

#: Beside the checkpoints: the model as the best evaluation found it.
BEST: Final = "best"
#: What an evaluation says of each measure; of the loss less is better.
_KEYS: Final[Mapping[str, str]] = {"accuracy": "overall"}


def is_best(measure: str, result: Mapping[str, Any], earlier: Iterable[Mapping[str, Any] | None]) -> bool:
    """Whether an evaluation is better than all before it by ``accuracy``, ``reward`` or ``loss``; the first always is.

    One that could not measure it is better than nothing and than no other.
    """
    key, sign = _KEYS.get(measure, measure), -1 if measure == "loss" else 1
    before = [one for one in earlier if one]
    if result[key] is None:
        return not before
    known = [sign * one[key] for one in before if one[key] is not None]
    return not known or bool(sign * result[key] > max(known))


def since_best(measure: str, evaluations: Iterable[Mapping[str, Any] | None]) -> int:
    """How many evaluations have come after the best of them, in their order."""
    made = [one for one in evaluations if one]
    best = [number for number, one in enumerate(made) if is_best(measure, one, made[:number])]
    return len(made) - 1 - best[-1] if best else 0
