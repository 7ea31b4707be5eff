"""The reference of a stage: its calls in turns of the assistant, and what of them is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from callwright.language.program import Call, Program, Reference, plain
from callwright.walk.trace import CallRecord
from callwright_plugins.synthesis.blueprints.blueprint import Failing, Stage
from callwright_plugins.synthesis.graph.references import value_at


@frozen
class Segment:
    """Calls that are made in one turn: places in the stage. The last one may be one that fails on purpose."""

    places: tuple[int, ...]
    failing: Failing | None = None


def segments_of(stage: Stage) -> list[Segment]:
    """The turns in which the calls of a stage are made: after a call that fails whoever calls has to look first."""
    failing = {one.call: one for one in stage.failing}
    found: list[Segment] = []
    places: list[int] = []
    for place in range(len(stage.calls)):
        places.append(place)
        if place in failing:
            found.append(Segment(tuple(places), failing[place]))
            places = []
    return [*found, Segment(tuple(places))] if places else found


def expected_failures(stage: Stage) -> dict[int, str]:
    """The calls of a stage that are to fail, and the codes that they fail with."""
    found = {one.call: one.code for one in stage.failing}
    if stage.ending == "failure" and stage.calls:
        found.setdefault(len(stage.calls) - 1, stage.code)
    return found


@define
class Done:
    """What was called so far: the calls that count, with their results, over all stages."""

    #: All calls that executed, as one program over all turns.
    calls: list[Call] = field(factory=list)
    #: By number over all stages: where among the steps a call is due; and how many calls the stages before have.
    due: dict[int, int] = field(factory=dict)
    before: int = 0
    #: What is due (Prove): calls with literal arguments, the steps that they follow, and the user's turn.
    steps: list[dict[str, Any]] = field(factory=list)
    value: Any = None
    #: What all calls of the last turn with calls came to; ``value`` is the last one.
    values: list[Any] = field(factory=list)


@define
class StageRun:
    """The calls of one stage as they were executed."""

    stage: Stage
    #: By place in the stage: what came of a call.
    records: dict[int, CallRecord] = field(factory=dict)
    #: By place in the stage: the number of a call in the program over all turns.
    numbers: dict[int, int] = field(factory=dict)

    def program(self, segment: Segment) -> Program:
        """The calls of a turn, numbered from 0: results of earlier turns as values, those of this one as references."""
        places = {place: number for number, place in enumerate(segment.places)}
        values = {place: record.outcome.value for place, record in self.records.items()}
        calls = [
            Call(places[place], one.tool, placed(dict(one.arguments), places, values))
            for place in segment.places
            for one in (self.stage.calls[place],)
        ]
        return Program(tuple(calls), thought="These calls are next.")

    def take(self, segment: Segment, records: Sequence[CallRecord], done: Done, turn: int) -> None:
        """Take what the calls of a turn came to. ``turn`` is the user's, counted from 0."""
        expected, last = expected_failures(self.stage), len(self.stage.calls) - 1
        if any(place not in expected for place in segment.places):
            done.values = []
        for place, record in zip(segment.places, records, strict=True):
            self.records[place] = record
            one = self.stage.calls[place]
            fails = place in expected
            if not fails:
                self.numbers[place] = len(done.calls)
                arguments = placed(dict(one.arguments), self.numbers, {})
                done.calls.append(Call(self.numbers[place], one.tool, arguments))
                done.value = record.outcome.value
                done.values.append(done.value)
            if not fails or (place == last and self.stage.ending == "failure"):
                done.due[done.before + place] = len(done.steps)
                earlier = self.stage.needed(place, done.before)
                done.steps.append(
                    {
                        "calls": [{"name": one.tool, "arguments": plain(dict(record.arguments))}],
                        "after": sorted({done.due[first] for first in earlier if first in done.due}),
                        "turn": turn,
                    }
                )


def stated(program: Program) -> dict[str, Any]:
    """A turn with calls as the fact ``gold`` has it."""
    return {"calls": [{"tool": one.tool, "arguments": plain(one.arguments)} for one in program.calls]}


def longest_chain(steps: Sequence[Mapping[str, Any]]) -> int:
    """How many steps hang on one another at most."""
    lengths: list[int] = []
    for one in steps:
        lengths.append(1 + max((lengths[earlier] for earlier in one["after"]), default=0))
    return max(lengths, default=0)


def placed(value: Any, places: Mapping[int, int], values: Mapping[int, Any]) -> Any:
    """A value whose references name calls by other numbers, or are what these calls returned."""
    if isinstance(value, Reference):
        if value.call in places:
            return Reference(places[value.call], value.path)
        return value_at(values.get(value.call), value.path)
    if isinstance(value, Mapping):
        return {key: placed(inner, places, values) for key, inner in value.items()}
    return [placed(inner, places, values) for inner in value] if isinstance(value, list | tuple) else value
