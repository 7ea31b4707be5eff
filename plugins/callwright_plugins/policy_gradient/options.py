"""Validation of constructor options: plain words, naming the algorithm and the option."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from callwright.errors import UsageError

Validator = Callable[[Any, Any, Any], None]


def real(value: float) -> float:
    """An integer of a recipe file (``kl_weight = 0``) as the float it stands for; anything else as it is."""
    return float(value) if type(value) is int else value


def number(
    *, above: float = -math.inf, at_least: float = -math.inf, below: float = math.inf, at_most: float = math.inf
) -> Validator:
    """A finite number in a range; the limits that are left out do not appear in the message."""
    limits = [
        f"{word} {limit:g}"
        for word, limit in (
            ("greater than", above),
            ("of at least", at_least),
            ("less than", below),
            ("of at most", at_most),
        )
        if math.isfinite(limit)
    ]
    wanted = f"a number {' and '.join(limits)}" if limits else "a number"

    def validate(algorithm: Any, attribute: Any, value: object) -> None:
        known = value if isinstance(value, float) and math.isfinite(value) else math.nan
        if not (above < known < below and at_least <= known <= at_most):
            raise UsageError(f"{algorithm.name}: {attribute.name} must be {wanted}, but is {value!r}")

    return validate


def count(algorithm: Any, attribute: Any, value: Any) -> None:
    """A whole number, zero included."""
    if type(value) is not int or value < 0:
        raise UsageError(f"{algorithm.name}: {attribute.name} must be a whole number, 0 or more, but is {value!r}")


def count_from_one(algorithm: Any, attribute: Any, value: Any) -> None:
    """A whole number, at least 1."""
    if type(value) is not int or value < 1:
        raise UsageError(f"{algorithm.name}: {attribute.name} must be a whole number, 1 or more, but is {value!r}")


def switch(algorithm: Any, attribute: Any, value: object) -> None:
    """True or false, and nothing that merely counts as one of them."""
    if not isinstance(value, bool):
        raise UsageError(f"{algorithm.name}: {attribute.name} must be true or false, but is {value!r}")


def one_of(*choices: str) -> Validator:
    """One of a few words."""

    def validate(algorithm: Any, attribute: Any, value: object) -> None:
        if value not in choices:
            listed = ", ".join(repr(choice) for choice in choices[:-1]) + f" or {choices[-1]!r}"
            raise UsageError(f"{algorithm.name}: {attribute.name} must be {listed}, but is {value!r}")

    return validate
