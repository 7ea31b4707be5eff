"""Prove's equations 1 to 5, transcribed as slowly and literally as they stand, and a generator of episodes.

Nothing here imports the implementation. Calls are ``{"name", "arguments"}``; a ground truth is a list of steps
``{"calls", "after"}``; an episode is a list of turns, each a list of calls. Exact fractions throughout.

The world: six tools, of which ``open_door`` fails for a door that is open and ``close_door`` for one that is closed (so
that success depends on everything that came before, in earlier turns too), and every tool fails for the word "broken".
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

Call = dict[str, Any]

#: Tool: parameter: (JSON type, whether it is required).
TOOLS: dict[str, dict[str, tuple[str, bool]]] = {
    "open_door": {"door": ("string", True)},
    "close_door": {"door": ("string", True)},
    "find": {"city": ("string", True), "limit": ("integer", False)},
    "book": {"city": ("string", True), "nights": ("integer", True), "quiet": ("boolean", False)},
    "price": {"amount": ("number", True), "unit": ("string", False)},
    "ping": {},
}
VALUES: dict[str, list[Any]] = {
    "door": ["a", "b", "broken"],
    "city": ["Rome", "Oslo", "broken"],
    "limit": [1, 2],
    "nights": [1, 3],
    "quiet": [True, False],
    "amount": [1, 1.0, 2.5],
    "unit": ["EUR", "broken"],
}
WEIGHTS = {
    "validity": Fraction(1, 2),
    "coverage": Fraction(1, 2),
    "efficiency": Fraction(15, 100),
    "name": Fraction(2, 10),
    "argument": Fraction(1, 10),
}


def equal(mine: Any, theirs: Any) -> bool:
    """Equality of JSON values here: a bool is no number, an integer is."""
    if isinstance(mine, bool) or isinstance(theirs, bool):
        return isinstance(mine, bool) and isinstance(theirs, bool) and mine == theirs
    return bool(mine == theirs)


def has_type(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if wanted == "string":
        return isinstance(value, str)
    if wanted == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value == int(value))
    return wanted == "number" and isinstance(value, int | float)


def fits_schema(call: Call) -> bool:
    for parameter, (wanted, required) in TOOLS[call["name"]].items():
        if parameter not in call["arguments"]:
            if required:
                return False
        elif not has_type(call["arguments"][parameter], wanted):
            return False
    return True


def run(call: Call, doors: set[str]) -> bool:
    """Execute a call in a world whose open doors are ``doors``; whether it succeeds."""
    if call["name"] not in TOOLS or "broken" in [v for v in call["arguments"].values() if isinstance(v, str)]:
        return False
    door = call["arguments"].get("door")
    if call["name"] == "open_door":
        if not isinstance(door, str) or door in doors:
            return False
        doors.add(door)
    if call["name"] == "close_door":
        if not isinstance(door, str) or door not in doors:
            return False
        doors.remove(door)
    return True


def validity(calls: list[Call]) -> Fraction:
    doors: set[str] = set()
    total = Fraction(0)
    for call in calls:
        executed = run(call, doors)
        if call["name"] in TOOLS:
            total += Fraction(1, 3)
            if fits_schema(call):
                total += Fraction(1, 3)
                if executed:
                    total += Fraction(1, 3)
    return total / len(calls)


def align(truth: list[dict[str, Any]], calls: list[Call]) -> list[list[int | None]]:
    """mu for every call of every step: each takes the first call not taken yet that has its name and all its keys."""
    taken: set[int] = set()
    positions: list[list[int | None]] = []
    for step in truth:
        here: list[int | None] = []
        for wanted in step["calls"]:
            found = None
            for position, call in enumerate(calls):
                if position in taken or call["name"] != wanted["name"]:
                    continue
                if all(key in call["arguments"] for key in wanted["arguments"]):
                    found = position
                    break
            if found is not None:
                taken.add(found)
            here.append(found)
        positions.append(here)
    return positions


def coverage(truth: list[dict[str, Any]], positions: list[list[int | None]]) -> Fraction:
    total = 0
    for g, step in enumerate(truth):
        m = 1
        for position in positions[g]:
            if position is None:
                m = 0
        o = 1
        for j in step["after"]:
            for earlier in positions[j]:
                for later in positions[g]:
                    if earlier is None or later is None or not earlier < later:
                        o *= 0
        total += m * o
    return Fraction(total, len(truth))


def efficiency(n_calls: int, n_gt: int, *, flat: bool = False) -> Fraction:
    half_rounded_up = 0 if flat else (n_gt + 1) // 2
    budget = n_gt + half_rounded_up
    return -Fraction(1, 2) * Fraction(max(0, n_calls - budget), budget)


def name(truth: list[dict[str, Any]], calls: list[Call]) -> Fraction:
    names = {wanted["name"] for step in truth for wanted in step["calls"]}
    return Fraction(len([call for call in calls if call["name"] in names]), len(calls))


def argument(truth: list[dict[str, Any]], calls: list[Call], positions: list[list[int | None]]) -> Fraction:
    shares = []
    for step, here in zip(truth, positions, strict=True):
        for wanted, position in zip(step["calls"], here, strict=True):
            if position is None:
                continue
            given = calls[position]["arguments"]
            if not wanted["arguments"]:
                shares.append(Fraction(1))
                continue
            agree = [key for key, value in wanted["arguments"].items() if equal(value, given[key])]
            shares.append(Fraction(len(agree), len(wanted["arguments"])))
    return sum(shares, Fraction(0)) / len(shares) if shares else Fraction(0)


def parts(truth: list[dict[str, Any]], turns: list[list[Call]], *, flat: bool = False) -> dict[str, Fraction]:
    """The five terms of equation 5 where something is due, and ``abstention`` where nothing is."""
    calls = [call for turn in turns for call in turn]
    if not truth:
        return {"abstention": Fraction(0 if calls else 1)}
    if not calls:
        return dict.fromkeys(WEIGHTS, Fraction(0))
    positions = align(truth, calls)
    return {
        "validity": validity(calls),
        "coverage": coverage(truth, positions),
        "efficiency": efficiency(len(calls), sum(len(step["calls"]) for step in truth), flat=flat),
        "name": name(truth, calls),
        "argument": argument(truth, calls, positions),
    }


def total(values: dict[str, Fraction], without: str = "") -> Fraction:
    """Equation 5, or the abstention reward."""
    if "abstention" in values:
        return values["abstention"]
    return sum((WEIGHTS[key] * value for key, value in values.items() if key != without), Fraction(0))


# Episodes -----------------------------------------------------------------------------------------------------------


def a_call(rng: random.Random) -> Call:
    tool = rng.choice(list(TOOLS))
    arguments = {
        key: rng.choice(VALUES[key]) for key, (_, required) in TOOLS[tool].items() if required or rng.random() < 0.5
    }
    return {"name": tool, "arguments": arguments}


def spoiled(call: Call, rng: random.Random) -> Call:
    """The same call with one thing about it changed."""
    arguments = dict(call["arguments"])
    kind = rng.randrange(5)
    if kind == 0:
        return {"name": rng.choice(["unknown", *TOOLS]), "arguments": arguments}
    if kind == 1 and arguments:
        del arguments[rng.choice(sorted(arguments))]
    elif kind == 2:
        arguments["surplus"] = 1
    elif kind == 3 and arguments:
        arguments[rng.choice(sorted(arguments))] = rng.choice(["text", 7, 2.5, True, None, [1]])
    elif arguments:
        key = rng.choice(sorted(arguments))
        arguments[key] = rng.choice(VALUES.get(key, ["x"]))
    return {"name": call["name"], "arguments": arguments}


def an_episode(rng: random.Random) -> tuple[list[dict[str, Any]], list[list[Call]]]:
    """A ground truth (one in twelve is empty) and turns: right, missing, repeated, extra, reordered, spoiled calls."""
    truth = []
    for number in range(0 if rng.random() < 1 / 12 else rng.randint(1, 5)):
        size = rng.choice((1, 1, 1, 2, 3))
        after = [other for other in range(number) if rng.random() < 0.4]
        truth.append({"calls": [a_call(rng) for _ in range(size)], "after": after})
    calls = [call for step in truth for call in step["calls"]]
    if rng.random() < 0.8:
        calls = [call for call in calls if rng.random() > 0.15]
        calls = [again for call in calls for again in [call] * (2 if rng.random() < 0.15 else 1)]
        calls = [spoiled(call, rng) if rng.random() < 0.25 else call for call in calls]
        for _ in range(rng.choice((0, 0, 0, 1, 2, 8))):
            calls.insert(rng.randint(0, len(calls)), a_call(rng))
        if rng.random() < 0.3:
            rng.shuffle(calls)
    turns: list[list[Call]] = [[] for _ in range(rng.choice((1, 1, 2, 3, 4)))]
    at = sorted(rng.randrange(len(turns)) for _ in calls)
    for turn, call in zip(at, calls, strict=True):
        turns[turn].append(call)
    return truth, turns
