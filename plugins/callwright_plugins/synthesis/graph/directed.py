"""Directed trials: pairs that something suggests and nothing has proven yet, tried one by one.

Exploring goes where something is new, so a pair that needs three calls in a row about the same things may never meet.
Here one tool is called, then the other about what the first was given and told; where that fails or finds nothing, one
call more is made that may repair it. What executes is kept, so that pairs tried later begin where these have come to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from callwright.environments.knowledge.suggestions import Source, Suggestions
from callwright.environments.protocol import Outcome
from callwright.language.program import Call, Path
from callwright.tools.reading import json_types
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.exploration.drawing import Drawn, shared_values
from callwright_plugins.synthesis.exploration.enabling import enabler_weights, words_in
from callwright_plugins.synthesis.exploration.explorer import Explorer, Success, Told, World, told_in
from callwright_plugins.synthesis.exploration.values import Key, Place, key_of, value_of
from callwright_plugins.synthesis.graph.edges import Edge
from callwright_plugins.synthesis.graph.information_edges import PAGING, Candidate, Informing
from callwright_plugins.synthesis.graph.proposals import Pair, matched
from callwright_plugins.synthesis.graph.references import place_name, said_to
from callwright_plugins.synthesis.graph.state_edges import came_to_nothing, came_to_something, left_out_at
from callwright_plugins.synthesis.graph.trials import Trials

_REPAIRS: Final = 4
_LONGEST: Final = 7
#: Values of a result that arguments are drawn from.
_TOLD: Final = 60
#: Numbers of a result that a parameter is tried with, and successes that one pair adds.
_NUMBERS: Final = 8
_KEPT: Final = 6
#: Arguments that the source is drawn with until the failure of the target becomes another.
_DRAWS: Final = 6


def suggested(tools: Mapping[str, ToolSpec], texts: Suggestions | None = None) -> dict[Pair, bool]:
    """Pairs worth trying: by schema, by what descriptions name and by what fills the gaps of suggested ``texts``
    (true), and calls that change what both are called about (false), which say less."""
    found = dict.fromkeys(_filling(tools, texts), True) if texts is not None else {}
    found |= dict.fromkeys(matched(tools), True)
    named = {name: words_in(spec.description) for name, spec in tools.items()}
    taken = {
        name: {key for key in spec.parameters.get("properties", {}) if key not in PAGING}
        for name, spec in tools.items()
    }
    for source in sorted(tools):
        for target in sorted(tools):
            if source == target:
                continue
            alike = not tools[source].read_only and any(
                key.endswith(("id", "name", "path", "email")) for key in taken[source] & taken[target]
            )
            if source in named[target] or target in named[source]:
                found[source, target] = True
            elif alike:
                found.setdefault((source, target), False)
    return found


def _filling(tools: Mapping[str, ToolSpec], texts: Suggestions) -> Iterator[Pair]:
    """A tool that fills a gap in a text for another one, by what it tells or was given; those that write first."""
    pairs = dict.fromkeys(
        (Source.of(source).tool, template.tool)
        for template in texts.templates
        for gap in template.gaps
        for source in texts.gaps[gap].sources
    )
    known = [pair for pair in pairs if pair[0] != pair[1] and all(tool in tools for tool in pair)]
    yield from sorted(known, key=lambda pair: tools[pair[0]].read_only)


class Directing:
    """Tries pairs in one world."""

    def __init__(self, trials: Trials, world: World, explorer: Explorer, informing: Informing, calls: int) -> None:
        self.trials, self.world, self.explorer, self.informing = trials, world, explorer, informing
        self.drawer, self.tools = explorer.drawer, explorer.specs
        self.rng = Random(f"directed/{world.scenario}/{world.seed}")
        self.added: dict[Pair, int] = {}
        self.left = calls

    def edges(self, pair: Pair, tries: int) -> Iterator[Edge]:
        """Edges of the pair that so many tries prove in this world, and steps that were met on the way; none
        once the calls are used up. It stops at the first try that proves one."""
        source, target = pair
        before = self.trials.made
        if self.left > 0:
            yield from self._edges(source, target, tries)
        self.left -= self.trials.made - before

    def _edges(self, source: str, target: str, tries: int) -> Iterator[Edge]:
        for number in range(tries):
            way = self._after_source(source) if number % 2 else self._before_failure(source, target)
            if way is None:
                continue
            path, step, call = way
            reached = self._reach(path, source, target, call)
            if reached is None:
                continue
            whole, call, outcome = reached
            self._keep((source, target), whole, call, outcome)
            proven = list(self._proven(source, whole, step, call))
            yield from proven
            if any(edge.source == source for edge in proven):
                return

    # Ways -------------------------------------------------------------------------------------------------------------

    def _after_source(self, source: str) -> tuple[tuple[Call, ...], int, Call | None] | None:
        """A path that ends in the source."""
        known = [one for one in self.world.paths(source) if len(one.path) < _LONGEST - 1 and one.kind != "empty"]
        if not known:
            return None
        # The short ones, and any: what only a long path leads to is often what a pair needs.
        short = min(int(self.rng.expovariate(0.1)), len(known) - 1)
        found = known[short] if self.rng.random() < 0.5 else self.rng.choice(known)
        call = found.call
        if self.rng.random() < 0.4:
            drawn = self.drawer.arguments(source, {})
            if drawn is not None:
                call = Call(len(found.path), source, drawn.arguments)
        return (*found.path, call), len(found.path), None

    def _before_failure(self, source: str, target: str) -> tuple[tuple[Call, ...], int, Call | None] | None:
        """A path on which the target fails, and the source about the same things."""
        paths = [path for (tool, _), path in self.world.failures.items() if tool == target and len(path) < _LONGEST - 1]
        if not paths:
            return None
        *before, failed = self.rng.choice(paths)
        for _ in range(_DRAWS):
            drawn = self.drawer.arguments(source, {}, shared_values(dict(failed.arguments)))
            if drawn is None:
                return None
            path = (*before, Call(len(before), source, drawn.arguments))
            outcome = self.trials.run(path, failed)
            if outcome is None:
                continue
            if self.tools[source].read_only or not outcome.failed:
                return path, len(before), failed
            was = self.trials.run(path[:-1], failed)
            if was is not None and (outcome.code, outcome.message) != (was.code, was.message):
                return path, len(before), failed  # the failure is another one: it may be halfway there
        return None

    def _reach(
        self, path: tuple[Call, ...], source: str, target: str, call: Call | None
    ) -> tuple[tuple[Call, ...], Call, Outcome] | None:
        """The target executed after a path, with other calls between where they are needed."""
        results = self.trials.results(path)
        if len(results) < len(path):
            return None
        local, about = self._told_by(path[-1], results[-1])
        if call is None:
            drawn = self._drawn_about(target, local, about)
            if drawn is None:
                return None
            call = Call(len(path), target, drawn.arguments)
        mended = self._mended(path, target, call, about)
        if mended is not None:
            return mended
        outcome = self.trials.run(path, call)
        for other in self._variants(call, outcome.message if outcome else "", results[-1], local):
            came = self.trials.run(path, other)
            if came_to_something(came):
                assert came is not None
                return path, other, came
        return None

    def _mended(
        self, path: tuple[Call, ...], target: str, call: Call, about: Mapping[Key, None]
    ) -> tuple[tuple[Call, ...], Call, Outcome] | None:
        """This very call executed, with other calls before it that mend what fails."""
        for left in reversed(range(_REPAIRS + 1)):
            outcome = self.trials.run(path, call)
            if came_to_something(outcome):
                assert outcome is not None
                return path, Call(len(path), call.tool, call.arguments), outcome
            if outcome is None or not came_to_nothing(outcome) or not left or len(path) >= _LONGEST:
                return None
            longer = self._repaired(path, target, call, outcome, about)
            if longer is None:
                return None
            path = longer
        return None

    def _drawn_about(self, target: str, local: Mapping[int, list[Key]], about: Mapping[Key, None]) -> Drawn | None:
        """Arguments for the target; what may be left out and the source seems to tell is rather not left out."""
        before = dict(self.drawer.asked_for)
        for name in self.tools[target].parameters.get("properties", {}):
            slot = self.drawer.slots.get((target, name))
            if slot is not None and name not in PAGING:
                slot.look(self.drawer.bank)
                if any(place in slot.strong or slot.worked.get(place, 0.0) >= 1 for place in local):
                    self.drawer.asked_for[target, name] = 1.0
        try:
            return self.drawer.arguments(target, local, about)
        finally:
            self.drawer.asked_for.clear()
            self.drawer.asked_for.update(before)

    def _variants(self, call: Call, message: str, told: Any, local: Mapping[int, list[Key]]) -> Iterator[Call]:
        """A call that failed with other arguments: numbers that the source told, and what else it told."""
        spec = self.tools[call.tool]
        numbers = [value_of(key) for _, key in self.trials.told_by(told) if key[0] in ("integer", "number")][:_NUMBERS]
        for name, schema in spec.parameters.get("properties", {}).items():
            if name not in PAGING and (json_types(schema) or frozenset()) & {"integer", "number"}:
                for number in dict.fromkeys(numbers):
                    arguments = {**call.arguments, name: number}
                    if spec.compiled.literal.validator.is_valid(arguments):
                        yield Call(call.id, call.tool, arguments)
        for _ in range(2):
            drawn = self.drawer.vary(call.tool, call.arguments, message, local)
            if drawn is not None:
                yield Call(call.id, call.tool, drawn.arguments)

    def _repaired(
        self, path: tuple[Call, ...], target: str, call: Call, outcome: Outcome, about: Mapping[Key, None]
    ) -> tuple[Call, ...] | None:
        """The path with one call more that may repair a failure, if that executes."""
        writes = self.explorer.writes
        if not writes:
            return None
        code = outcome.code or outcome.kind
        weights = enabler_weights(self.tools[target], code, outcome.message, writes, self.explorer.enabled)
        for enabler in dict.fromkeys(self.rng.choices(writes, weights, k=3)):
            if enabler == target:
                continue
            fixed = {**about, **shared_values(dict(call.arguments))}
            fixed.update({key_of(told): None for told in told_in(outcome.message)})
            drawn = self.drawer.arguments(enabler, {}, fixed)
            if drawn is None:
                continue
            step = Call(len(path), enabler, drawn.arguments)
            came = self.trials.run(path, step)
            if came is not None and came.executed:
                return (*path, step)
        return None

    def _told_by(self, call: Call, result: Any) -> tuple[dict[int, list[Key]], dict[Key, None]]:
        """By place what a call told, and all that it told or was given."""
        local: dict[int, list[Key]] = {}
        about = dict(shared_values(dict(call.arguments)))
        for count, (path, key) in enumerate(self.trials.told_by(result)):
            if count >= _TOLD:
                break
            place = self.drawer.bank.numbers.get(Place("result", call.tool, place_name(path)))
            if place is not None:
                local.setdefault(place, []).append(key)
            if key[0] == "string" and len(key[1]) <= 80:
                about[key] = None
        if self.drawer.suggestions is not None:  # whose gaps may be filled with what a call was given
            for path, key in said_to(call):
                number = self.drawer.bank.number(Place("argument", call.tool, place_name(path)))
                local.setdefault(number, []).append(key)
        return local, about

    # Proofs -----------------------------------------------------------------------------------------------------------

    def _keep(self, pair: Pair, path: tuple[Call, ...], call: Call, outcome: Outcome) -> None:
        """Let pairs that are tried later begin here."""
        if self.added.get(pair, 0) >= _KEPT:
            return
        way = (outcome.kind, *(step.tool for step in path))
        found = self.world.successes.setdefault(call.tool, {})
        if way not in found:
            self.added[pair] = self.added.get(pair, 0) + 1
            found[way] = Success(path, call, outcome.kind)
            self.informing.take_up(Told(path, call, outcome.value))

    def _proven(self, source: str, path: tuple[Call, ...], step: int, call: Call) -> Iterator[Edge]:
        for number in (step, *(one for one in range(len(path)) if one != step)):
            edge = left_out_at(self.trials, path, call, number, self.world.knowledge)
            if edge is not None:
                yield edge
        results = self.trials.results(path)
        asked = {key for _, key in said_to(path[step])}
        told = [(at, key) for at, key in self.trials.told_by(results[step]) if key not in asked]
        for where, given in said_to(call):
            if place_name(where).split(".")[0] in PAGING:
                continue
            same = [(at, key) for at, key in told if key == given and key[0] == "string"][:2]
            number = given[0] in ("integer", "number")
            for at, key in [*same, *([one for one in told if one[1][0] == given[0]][:_NUMBERS] if number else [])]:
                one = self._informs(source, path, step, call, where, at, key)
                if one is not None:
                    yield one

    def _informs(
        self, source: str, path: tuple[Call, ...], step: int, call: Call, where: Path, at: Path, key: Key
    ) -> Edge | None:
        candidate = Candidate(source, place_name(at), call.tool, place_name(where))
        before = Told(path[:step], path[step], None)
        return self.informing.proven_by(
            candidate, (path, step, call, where, (before, at, key)), near=key[0] != "string"
        )
