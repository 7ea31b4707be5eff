"""Not brittle: whoever gets to the same end by another way earns the reward, too."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from attrs import evolve

from callwright.language.program import Call, Program, Reference
from callwright.training.synthesis.units import Rejected
from callwright.walk.trace import CallRecord
from callwright_plugins.synthesis.dialogue.gold import segments_of
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.running import Run

#: Pairs of neighbours that change places, one pair at a time.
_SWAPS: Final = 6
_LOOKS: Final = 2


class NotBrittle:
    """The gate ``not brittle``."""

    name: Final = "not brittle"

    def __call__(self, case: Case) -> Rejected | None:
        """Calls in another order, or another route, that come to the same and do not earn the reward."""
        if not case.gold.records:
            return None
        for what, turns in _routes(case):
            found = case.run(turns)
            if _comes_to_the_same(case, found) and not case.earns(found):
                differences = [str(one) for one in found.reached.differences[:4]] if found.reached is not None else []
                return Rejected(
                    self.name, "another way to the same end earns less", {"way": what, "differences": differences}
                )
        return None


def _comes_to_the_same(case: Case, found: Run) -> bool:
    """Whether the world is the same in every respect that matters, and every call did what it did."""
    gold = case.gold
    done = sorted((one.tool, one.outcome.kind) for one in gold.records)
    left = sorted((one.tool, one.outcome.kind) for one in found.records)
    for one in done:
        if one not in left:
            return False
        left.remove(one)
    if not found.leaves_as(gold):
        return False
    # Without a goal the answer is what counts: another order may well be another question.
    return case.has_goal or _without_ids(gold) <= _without_ids(found)


def _without_ids(found: Run) -> Counter[str]:
    """What the calls returned, as texts in which no id stands that was made on the way."""
    made = found.state.get("made", ()) if isinstance(found.state, Mapping) else ()
    ids = re.compile("|".join(rf"\b{re.escape(str(one))}\b" for one in made) or r"(?!)")
    return Counter(ids.sub("#", json.dumps(value, sort_keys=True, default=str)) for value in found.values)


def _routes(case: Case) -> Iterator[tuple[str, list[Program]]]:
    yield from _swapped(case)
    looks = _looks(case)
    if looks and case.task.clock is None:
        yield "a look around first", _looked(case, looks)
    if any(call.located for turn in case.turns for call in turn.calls):
        yield (
            "with literal arguments",
            [_literal(turn, records) for turn, records in zip(case.turns, case.gold.turns, strict=True)],
        )


def _swapped(case: Case) -> Iterator[tuple[str, list[Program]]]:
    """Neighbours of a turn that do not refer to one another change places."""
    needed = _stated_edges(case)
    swaps = 0
    for at, turn in enumerate(case.turns):
        for place in range(len(turn.calls) - 1):
            one, two = turn.calls[place], turn.calls[place + 1]
            if any(reference.call == one.id for _, reference in two.located) or (at, place) in needed:
                continue
            if one.tool == two.tool and one.arguments == two.arguments:
                continue
            if swaps >= _SWAPS:
                return
            swaps += 1
            calls = list(turn.calls)
            calls[place : place + 2] = two, one
            yield f"{two.tool} before {one.tool}", [*case.turns[:at], _numbered(turn, calls), *case.turns[at + 1 :]]


def _stated_edges(case: Case) -> set[tuple[int, int]]:
    """Turns and places whose call has to come before the next one, as the plan says."""
    if case.blueprint is None:
        return set()
    made = ((stage, segment.places) for stage in case.blueprint.stages for segment in segments_of(stage))
    calling = (at for at, turn in enumerate(case.turns) if turn.calls)
    return {
        (at, place)
        for at, (stage, places) in zip(calling, made, strict=False)
        for place, neighbours in enumerate(pairwise(places))
        if neighbours in stage.edges
    }


def _numbered(turn: Program, calls: list[Call]) -> Program:
    """A program of these calls, numbered anew: a call may refer to earlier numbers alone."""
    places = {call.id: place for place, call in enumerate(calls)}
    made = (Call(place, call.tool, _moved(call.arguments, places)) for place, call in enumerate(calls))
    return evolve(turn, calls=tuple(made))


def _moved(value: Any, places: dict[int, int]) -> Any:
    if isinstance(value, Reference):
        return Reference(places.get(value.call, value.call), value.path)
    if isinstance(value, dict):
        return {key: _moved(inner, places) for key, inner in value.items()}
    return [_moved(inner, places) for inner in value] if isinstance(value, list | tuple) else value


def _looks(case: Case) -> list[str]:
    return [
        name
        for name, spec in case.task.tools.items()
        if spec.read_only and not spec.hidden and not spec.parameters.get("required") and name not in case.task.appear
    ][:_LOOKS]


def _looked(case: Case, looks: list[str]) -> list[Program]:
    turns = list(case.turns)
    at = next(place for place, turn in enumerate(turns) if turn.calls)
    first = max(call.id for call in turns[at].calls) + 1
    calls = [Call(first + place, name, {}) for place, name in enumerate(looks)]
    turns[at] = _numbered(turns[at], [*calls, *turns[at].calls])
    return turns


def _literal(turn: Program, records: tuple[CallRecord, ...]) -> Program:
    """The turn with the arguments as they were in the end."""
    return evolve(
        turn,
        calls=tuple(
            Call(call.id, call.tool, dict(one.arguments)) for call, one in zip(turn.calls, records, strict=False)
        ),
    )
