"""What a query leaves unsaid for the user to tell when asked, and what it says wrong to put it right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from attrs import frozen

from callwright.language.program import Call
from callwright_plugins.synthesis.language.lexicon import Lexicon
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.styles import Information

T = TypeVar("T")


@frozen
class Withheld:
    """An argument of a call that a query does not state. ``title`` is what it is asked for by."""

    call: int
    argument: str
    value: Any
    title: str


def withheld(plan: Plan, information: Information, lexicon: Lexicon, random: Random) -> tuple[Withheld, ...]:
    """What a level of information leaves out, in order.

    ``missing``: one required literal argument. ``minimal``: every required literal argument but the first one of the
    plan, which is what it is about; of two with one title the first, since an answer would not say which is which.
    References are never left out, since they are the user's wish itself, nor is what is optional: nobody could know to
    ask for it. A plan without such arguments is complete.
    """
    literal = [
        (call, name)
        for call in plan.calls
        for name in call.arguments
        if not any(path[:1] == (name,) for path, _ in call.located)
    ]
    required = [(call, name) for call, name in literal if name in lexicon.tools[call.tool].required]
    if information == "complete" or not required:
        return ()
    if information == "missing":
        return tuple(_withheld(call, name, lexicon) for call, name in _one_of(required, random))
    by_title: dict[str, Withheld] = {}
    for call, name in required[1:]:
        one = _withheld(call, name, lexicon)
        by_title.setdefault(one.title, one)
    return tuple(by_title.values())


def _one_of(found: Sequence[T], random: Random) -> Sequence[T]:
    return [random.choice(found)] if found else []


def _withheld(call: Call, name: str, lexicon: Lexicon) -> Withheld:
    return Withheld(call.id, name, call.arguments[name], lexicon.tools[call.tool].titles[name])


def corrupted(plan: Plan, lexicon: Lexicon, random: Random) -> tuple[int, str, Any] | None:
    """A call, an argument of it and a wrong value of the same kind: a number or a member of a closed set."""
    places = [(call, name) for call in plan.calls for name in call.arguments]
    random.shuffle(places)
    for call, name in places:
        value = call.arguments[name]
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return call.id, name, value + random.randrange(1, max(2, value))
        others = [one for one in lexicon.tools[call.tool].hints[name].options if one != value]
        if isinstance(value, str) and value not in others and others and len(others) < 40:
            return call.id, name, random.choice(others)
    return None
