"""Information edges: an argument that executes with what a call told, and fails with a foreign value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from attrs import frozen

from callwright.language.program import Call, Path
from callwright.tools.reading import compatible
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.exploration.drawing import Drawer, Slot
from callwright_plugins.synthesis.exploration.explorer import Told, World
from callwright_plugins.synthesis.exploration.values import Key, Place, value_of
from callwright_plugins.synthesis.exploration.witness import text_of
from callwright_plugins.synthesis.graph.edges import Edge, Proof
from callwright_plugins.synthesis.graph.foreign import foreign_values
from callwright_plugins.synthesis.graph.references import located, place_name, replaced, said_to
from callwright_plugins.synthesis.graph.state_edges import came_to_nothing, came_to_something, witness_of
from callwright_plugins.synthesis.graph.trials import Trials

#: How alike a field's and a parameter's names are where the value may be tried without having been seen to work.
_LIKELY: Final = 0.25
_BASES: Final = 8
PAGING: Final = frozenset({"limit", "cursor", "offset", "page", "page_size"})


#: A result, the path to a value in it, and the value.
Source = tuple[Told, Path, Key]
#: A call that executed: its path, the call, where its argument stands, and the argument.
Base = tuple[tuple[Call, ...], Call, Path, Key]
#: A path, the position of the source in it, the target, where its argument stands, and the source.
Way = tuple[tuple[Call, ...], int, Call, Path, Source]


@frozen
class Candidate:
    """A field of a source's result that may fill a parameter of a target."""

    source: str
    result: str
    target: str
    argument: str


class Informing:
    """Finds and proves the information edges of one world."""

    def __init__(self, trials: Trials, world: World, drawer: Drawer, tools: Mapping[str, ToolSpec]) -> None:
        self.trials, self.world, self.drawer, self.tools = trials, world, drawer, tools
        self.rng = Random(f"information/{world.scenario}/{world.seed}")
        #: By tool, place and value: where just that was told.
        self.exact: dict[tuple[str, str], dict[Key, list[Source]]] = {}
        #: By tool and place in its result: what was told there.
        self.fields: dict[str, dict[str, list[Source]]] = {}
        #: By value: the tools and places that told it.
        self.of_key: dict[Key, dict[tuple[str, str], None]] = {}
        for told in world.told.values():
            for one in told:
                self.take_up(one)

    def take_up(self, told: Told) -> None:
        """Take what a call told into account."""
        tool = told.call.tool
        fields = self.fields.setdefault(tool, {})
        asked = {key for _, key in said_to(told.call)}
        seen: dict[str, int] = {}
        for path, key in self.trials.told_by(told.value):
            name = place_name(path)
            seen[name] = seen.get(name, 0) + 1
            if key not in asked and len(str(key[1])) <= 400:
                if seen[name] <= 12:
                    fields.setdefault(name, []).append((told, path, key))
                self.exact.setdefault((tool, name), {}).setdefault(key, []).append((told, path, key))
                if key[0] == "string":
                    self.of_key.setdefault(key, {})[tool, name] = None

    def begin(self) -> None:
        """Draw from this world."""
        assert self.world.memory is not None
        self.drawer.bank.take_up(self.world.memory)
        self.drawer.begin(self.rng, self.world.now)

    def candidates(self) -> Iterator[Candidate]:
        """What may be an edge: fields whose names fit, that have worked, or whose values an executed call was given."""
        for target in self.world.successes:
            for slot in [slot for (tool, _), slot in self.drawer.slots.items() if tool == target]:
                if slot.path.split(".")[0] in PAGING or slot.closed or not slot.types - {"boolean"}:
                    continue
                found: dict[tuple[str, str], float] = {}
                for success in self.world.successes[target].values():
                    for path, key in said_to(success.call):
                        if place_name(path) == slot.path:
                            for owner, name in self.of_key.get(key, {}):
                                found[owner, name] = 1.0
                slot.look(self.drawer.bank)
                for number, prior in slot.priors.items():
                    place = self.drawer.bank.places[number]
                    if place.origin == "result":
                        prior = max(prior, 0.9 if slot.worked.get(number, 0.0) >= 1 else 0.0)
                        if prior >= _LIKELY:
                            found.setdefault((place.owner, place.path), prior)
                for (owner, name), _ in sorted(found.items(), key=lambda one: (-one[1], one[0])):
                    if owner != target and name in self.fields.get(owner, {}) and self._fits(slot, owner, name):
                        yield Candidate(owner, name, target, slot.path)

    def _fits(self, slot: Slot, owner: str, name: str) -> bool:
        given = self.fields[owner][name][0][2][0]
        return given != "boolean" and any(compatible(wanted, given) for wanted in slot.types)

    def prove(self, candidate: Candidate, tries: int) -> Edge | None:
        """The proven edge, in this world alone; ``None`` where so many tries proved nothing."""
        places = self.fields.get(candidate.source, {}).get(candidate.result, [])
        successes = [success for success in self.world.paths(candidate.target) if success.kind != "empty"]
        bases = [
            (success.path, success.call, path, key)
            for success in successes
            for path, key in said_to(success.call)
            if place_name(path) == candidate.argument
        ]
        if not bases and not re.search(r"[.\[]", candidate.argument):  # the parameter was left out in all of them
            bases = [(one.path, one.call, (candidate.argument,), ("", None)) for one in successes]
        if not bases or not places:
            return None
        keys = [key for _, _, key in places]
        ways = self._ways(candidate, bases, places, max(tries, 2))
        asked = self._asking(candidate, bases)
        for way in (*ways[:2], *asked, *ways[2 : max(tries, 2)]):
            edge = self._prove(candidate, way, keys)
            if edge is not None:
                return edge
        if not self.tools[candidate.source].read_only:
            for way in self._drawn_ways(candidate, places, tries):
                edge = self._prove(candidate, way, keys)
                if edge is not None:
                    return edge
        return None

    def proven_by(self, candidate: Candidate, way: Way, *, near: bool) -> Edge | None:
        """The edge, if this way proves it. ``near``: with the numbers next to it alone, since others say less."""
        keys = [] if near else [key for _, _, key in self.fields.get(candidate.source, {}).get(candidate.result, [])]
        return self._prove(candidate, way, keys, near=near)

    def _prove(self, candidate: Candidate, way: Way, keys: list[Key], *, near: bool = False) -> Edge | None:
        path, step, call, where, told = way
        key, valid = told[2], self.tools[call.tool].compiled.literal.validator.is_valid
        there: dict[str, Any] = dict(call.arguments)
        if len(where) == 1:
            there[str(where[0])] = None
        with_it = Call(len(path), call.tool, replaced(there, where, value_of(key)))
        if not valid(with_it.arguments) or self._was_given(path[:step], key):
            return None
        given = self.trials.run(path, with_it)
        if given is None or not came_to_something(given):
            return None
        others = [key[1] + 1, key[1] - 1] if near else foreign_values(key, keys, self.rng)
        for value in others:
            other = Call(len(path), call.tool, replaced(with_it.arguments, where, value))
            bare = self.trials.run(path, other) if valid(other.arguments) else None
            if bare is not None and came_to_nothing(bare):
                proof = Proof(
                    witness_of(self.trials, (*path, with_it), given),
                    witness_of(self.trials, (*path, other), bare),
                    step,
                    told[1],
                    where,
                )
                names = candidate.result, candidate.argument
                return Edge(candidate.source, candidate.target, "information", *names, (proof,))
        return None

    def _ways(self, candidate: Candidate, bases: list[Base], places: list[Source], most: int) -> list[Way]:
        """Paths on which the source tells a value before the target is called: those that have been walked first."""
        exact: list[Way] = []
        told_exactly = self.exact.get((candidate.source, candidate.result), {})
        for base in bases:
            exact += [way for one in told_exactly.get(base[3], ())[:6] if (way := self._way(base, one)) is not None]
        exact.sort(key=lambda way: len(way[0]))
        few = places if len(places) <= 40 else self.rng.sample(places, 40)
        tried = [(base, one) for base in bases[:_BASES] for one in few]
        likely: list[Way] = []
        for base, one in self.rng.sample(tried, len(tried)):
            way = self._way(base, one)
            if way is not None:
                likely.append(way)
            if len(likely) >= most:
                break
        likely.sort(key=lambda way: len(way[0]) > 3)
        return [*exact[:6], *likely]

    def _way(self, base: Base, told: Source) -> Way | None:
        """The path of a call that executed and the path of a result as one, where one is the beginning of the other."""
        path, call, where, _ = base
        before, source = told[0].path, told[0].call
        if self.tools[source.tool].read_only:
            whole = _joined(path, before)
            if whole is None:
                return None
            return (*whole[: len(before)], source, *whole[len(before) :]), len(before), call, where, told
        whole = _joined(path, (*before, source))
        return None if whole is None else (whole, len(before), call, where, told)

    def _asking(self, candidate: Candidate, bases: list[Base]) -> list[Way]:
        """Ask a source that reads about the very things of a call that executed: whether it tells the argument, too."""
        spec = self.tools[candidate.source]
        if not spec.read_only:
            return []
        found: list[Way] = []
        takes = spec.parameters.get("properties", {})
        known = self.world.paths(candidate.source)
        for path, call, where, _ in bases[:4]:
            same = {name: value for name, value in call.arguments.items() if name in takes and name != where[0]}
            if not same:
                continue
            for more in ({}, known[0].call.arguments if known else {}):  # what else it was asked may contradict
                asked = Call(len(path), candidate.source, {**more, **same})
                if not spec.compiled.literal.validator.is_valid(asked.arguments):
                    continue
                outcome = self.trials.run(path, asked)
                if came_to_something(outcome):
                    break
            else:
                continue
            assert outcome is not None
            told = Told(path, asked, outcome.value)
            for at, key in self.trials.told_by(outcome.value):
                if place_name(at) == candidate.result and len(found) < 8:
                    found.append(((*path, asked), len(path), call, where, (told, at, key)))
        return found

    def _drawn_ways(self, candidate: Candidate, places: list[Source], tries: int) -> list[Way]:
        """Other arguments for the target, drawn around a value that the source has made."""
        found: list[Way] = []
        number = self.drawer.bank.number(Place("result", candidate.source, candidate.result))
        for told in self.rng.sample(places, min(4, len(places))):
            path = (*told[0].path, told[0].call)
            made = {key: None for _, key in self.trials.told_by(told[0].value)}
            for _ in range(tries):
                drawn = self.drawer.arguments(candidate.target, {number: [told[2]]}, {told[2]: None, **made})
                if drawn is None:
                    continue
                for where, _ in located(drawn.arguments):
                    if place_name(where) == candidate.argument:
                        call = Call(len(path), candidate.target, drawn.arguments)
                        found.append((path, len(path) - 1, call, where, told))
                        break
        return found

    def _was_given(self, before: tuple[Call, ...], key: Key) -> bool:
        """Whether somebody knows the value, or a call before the source was given or told it."""
        if key in self.world.knowledge:
            return True
        if any(key == given for call in before for _, given in said_to(call)):
            return True
        return any(key == told for result in self.trials.results(before) for _, told in self.trials.told_by(result))


def _joined(one: tuple[Call, ...], other: tuple[Call, ...]) -> tuple[Call, ...] | None:
    """The longer of two paths, where the shorter is its beginning."""
    short, long = sorted((one, other), key=len)
    return (
        long
        if all(a is b or text_of(a) == text_of(b) for a, b in zip(short, long[: len(short)], strict=True))
        else None
    )
