"""Programs for round trips: everything that a program can hold, from plain to odd, the same ones every time."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.language.program import Call, Program, Reference

#: What every form can write: the least that makes it one.
PLAIN: Final = Program((Call(0, "get_weather", {"city": "Oslo", "days": 3}),), "one", "Look it up first.")
NO_CALL: Final = Program((), "one", "None of the tools can help.")
_TEXTS: Final = (
    *(
        "",
        " ",
        "Oslo",
        "New York",
        "O'Hare",
        'a "b" c',
        "a\\b",
        "a\nb\tc",
        "<b>&amp;</b>",
        "{}",
        "[1]",
        "null",
        "3",
        "é½漢𝄞",
    ),
    *(
        "API_RESPONSE_0",
        "API_RESPONSE_0 of it",
        "</tool_call>",
        "<think>",
        "\0",
        "\x7f\x85\u2028",
        "%s",
        "${x}",
        "a=b, c(d)",
    ),
)
_NUMBERS: Final = (0, 1, -7, 2**53 + 1, 10**25, 0.0, 0.5, -1.25e-7, 1e300, 0.1 + 0.2)
_NAMES: Final = ("get_weather", "find_all", "Pay", "a", "shop.cart", "T2")
_KEYS: Final = ("city", "days", "q", "with_flag", "x1", "Größe", "two words", "a.b", "")


def programs(count: int, seed: int) -> Iterator[Program]:
    """``count`` programs; the first ones are plain, the later ones hold more calls, deeper values and odder texts."""
    yield PLAIN
    yield NO_CALL
    rng = Random(seed)
    for number in range(count - 2):
        oddity = number / count  # 0: only the first few texts, names and keys; 1: all of them
        calls = tuple(
            Call(index, _pick(_NAMES, oddity, rng), _arguments(index, oddity, rng))
            for index in range(rng.randint(1, 4))
        )
        yield Program(
            calls, rng.choice(("one", "all")), _pick(("Because.", "a < b", "Line one.\nLine two."), oddity, rng)
        )


def _arguments(index: int, oddity: float, rng: Random) -> dict[str, Any]:
    keys = {_pick(_KEYS, oddity, rng) for _ in range(rng.randint(0, 3))}
    return {key: _value(index, oddity, rng, 0) for key in sorted(keys)}


def _value(index: int, oddity: float, rng: Random, level: int) -> Any:
    match rng.randint(0, 8 if level < 3 else 5):
        case 0 | 1:
            return _pick(_TEXTS[2:] + _TEXTS[:2], oddity, rng)
        case 2:
            return _pick(_NUMBERS, oddity, rng)
        case 3:
            return rng.choice((True, False, None))
        case 4 | 5:
            path: tuple[str | int, ...] = rng.choice(((), ("rows",), ("rows", 0, "name"), (2,)))
            return Reference(rng.randrange(index), path) if index else rng.randint(0, 9)
        case 6:
            return [_value(index, oddity, rng, level + 1) for _ in range(rng.randint(0, 3))]
        case _:
            keys = {_pick(_KEYS, oddity, rng) for _ in range(rng.randint(0, 3))}
            return {key: _value(index, oddity, rng, level + 1) for key in sorted(keys)}


def _pick(values: tuple[Any, ...], oddity: float, rng: Random) -> Any:
    return values[rng.randrange(max(2, round(len(values) * oddity)))]
