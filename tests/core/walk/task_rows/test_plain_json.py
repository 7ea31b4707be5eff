"""Whether values survive JSON, told by looking at them: the same as writing and reading them."""

from __future__ import annotations

import json
from collections import OrderedDict
from enum import IntEnum
from random import Random
from typing import Any

import pytest

from callwright.walk.task_rows.plain_json import survives_json


class Two(IntEnum):
    """A number of a derived type."""

    TWO = 2


LEAVES: list[Any] = [None, True, 0, 1.0, -0.0, "", "\ud800", 10**30, 2.5, "text", Two.TWO]
OTHERS: list[Any] = [(1, 2), float("nan"), float("inf"), {1: 2}, OrderedDict(a=1), {"a": (1,)}]


def by_writing(value: Any) -> bool:
    return bool(json.loads(json.dumps(value, allow_nan=False)) == value)


def drawn(rng: Random, depth: int, others: bool) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(OTHERS if others and rng.random() < 0.2 else LEAVES)
    if kind < 0.65:
        return [drawn(rng, depth - 1, others) for _ in range(rng.randrange(4))]
    return {f"k{number}": drawn(rng, depth - 1, others) for number in range(rng.randrange(4))}


@pytest.mark.parametrize("others", [False, True])
def test_it_says_what_writing_and_reading_would_say(others: bool) -> None:
    rng = Random(0)
    for _ in range(400):
        value = drawn(rng, 4, others)
        try:
            expected = by_writing(value)
        except ValueError:
            with pytest.raises(ValueError):
                survives_json(value)
        else:
            assert survives_json(value) == expected, value


def test_what_is_deep_or_holds_itself_is_written() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert survives_json(deep)
    circle: list[Any] = []
    circle += [circle, circle]
    with pytest.raises(ValueError, match="Circular"):
        survives_json(circle)
