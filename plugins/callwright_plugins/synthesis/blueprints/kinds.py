"""Kinds: a blueprint of each kind, planned and executed in a world: a task, a failure, an abstention, and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from callwright.environments.composed.environment import ComposedEnvironment
from callwright.language.program import Program
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage, pairs_of
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
from callwright_plugins.synthesis.blueprints.offering import Offering
from callwright_plugins.synthesis.blueprints.order import ordered
from callwright_plugins.synthesis.blueprints.repertoire import Pair, Repertoire, together
from callwright_plugins.synthesis.blueprints.turns import (
    Wish,
    assistant_turns,
    in_vain,
    repeats,
    session_after,
    stage_of,
    told_already,
)
from callwright_plugins.synthesis.blueprints.wishes import Coverage, Venue, Wisher
from callwright_plugins.synthesis.language.wordlists.personas import PERSONAS

#: How often a conversation is begun anew, in another world, before it is about something else.
_ATTEMPTS: Final = 8
#: How many other environments this one is made one with, for conversations over two.
_PARTNERS: Final = 2
#: How many of the failures that were planned least are tried in one world.
_RANKED: Final = 3
#: The turns of the assistant that a turn of the user takes at least: a call, and an answer.
_SHORTEST: Final = 2
#: How often one call is sought where what was drawn takes more turns than there is room for.
_SHORTER: Final = 3
#: In how many worlds a failure is sought before it is taken as its witness has it.
_ELSEWHERE: Final = 2


class Kinds:
    """Plans one blueprint after another, and counts in ``coverage`` what they hold together.

    While it is ``fuller``, conversations ask for more at once.
    """

    def __init__(
        self, materials: Materials, knowledge: Knowledge, knobs: Knobs, rng: Random, cache: Path | None
    ) -> None:
        self.materials, self.knowledge, self.knobs, self.rng = materials, knowledge, knobs, rng
        self.environment = materials.environment
        self.coverage = Coverage(knobs.most_of_one)
        self.offering = Offering(self.environment, materials.registry, knobs, rng, cache)
        self.repertoire = Repertoire(self.environment, knowledge)
        explored = knowledge.explored
        self.venue = partial(Venue, rng=rng, refreshed=knobs.refreshed, registry=materials.registry)
        self.own = self.venue(self.repertoire, explored.scenario, without=explored.seeds)
        self.fuller = False
        self._several: list[Venue] | None = None

    @property
    def cells(self) -> list[Pair]:
        """The failures that are known: tool and code."""
        return sorted(self.repertoire.failures)

    def close(self) -> None:
        """Give back the sessions of all worlds."""
        for venue in (self.own, *(self._several or ())):
            venue.close()

    def made(self, kind: str) -> Blueprint | None:
        """A blueprint of a kind, which is counted; something else to do where none comes of it in several worlds, and
        ``None`` where nothing does.
        """
        for attempt in range(_ATTEMPTS):
            found = self._tried(kind if attempt < _ATTEMPTS - 2 or kind in ("abstention", "clarification") else "task")
            if found is not None:
                return found
        return None

    def literally(self, pair: Pair) -> Blueprint | None:
        """A task that begins with an edge as a witness of it has it."""
        worlds = dict.fromkeys(shape.world for _, shape in self.repertoire.edges[pair])
        for scenario, seed in worlds:
            if scenario != self.own.scenario or seed not in self.knowledge.explored.seeds:
                continue
            wisher = Wisher(self.own, self.own.world(seed), self.coverage, self.rng, self.fuller)
            found = wisher.edge(wisher.world.session, pair)
            made = self._begun(wisher, found) if found is not None else None
            if made is not None:
                return made
        return None

    def count(self, blueprint: Blueprint, by: int) -> None:
        """Count what a blueprint covers; ``by`` -1: it is gone."""
        coverage = self.coverage
        called = [call.tool for stage in blueprint.stages for call in stage.calls]
        for tool in set(called):
            coverage.tools[tool] += by
        for tool in called:
            coverage.calls[tool] += by
        for pair in self.pairs(blueprint.stages):
            coverage.pairs[pair] += by
        if blueprint.recovers[0]:
            coverage.cells[blueprint.recovers] += by

    def pairs(self, stages: Sequence[Stage]) -> set[Pair]:
        """The edges of the graph that stages use."""
        return pairs_of(stages) & self.repertoire.edges.keys()

    # Of each kind -----------------------------------------------------------------------------------------------------

    def _tried(self, kind: str) -> Blueprint | None:
        if kind == "several":
            return self._of_several()
        wisher = self._wisher(self.own)
        if kind == "clarification":
            return self._clarification(wisher)
        if kind == "abstention":
            hidden = self.rng.random() < self.knobs.never
            return self._hidden(wisher) if hidden else self._elsewhere(wisher)
        if kind in ("failing", "recovered"):
            return self._about_a_failure(wisher, kind)
        return self._task(wisher, kind == "irrelevant")

    def _wisher(self, venue: Venue) -> Wisher:
        return Wisher(venue, venue.next_world(), self.coverage, self.rng, self.fuller)

    def _venues(self) -> list[Venue]:
        """This environment and another one as one, for a few others."""
        if self._several is None:
            self._several = []
            for other in self.offering.partners(_PARTNERS):
                names = f"{self.environment.name}+{other.name}"
                whole = self.materials.registry.create("environment", names)
                parts = {self.environment.name: self.repertoire, other.name: self.offering.repertoire(other)}
                scenario = self.own.scenario and f"{self.environment.name}={self.own.scenario}"
                both = together(whole, parts)
                self._several.append(self.venue(both, scenario, without=self.own.without))
        return self._several

    def _task(self, wisher: Wisher, irrelevant: bool) -> Blueprint | None:
        turns = self._turns()
        talked = turns - 1 if irrelevant and turns > 1 else turns
        found = self._talk(wisher, wisher.world.session, talked, spent=int(irrelevant))
        if found is None:
            return None
        stages, after, goals = found
        if in_vain(stages, wisher.repertoire.tools, wisher.world.session, after):
            return None
        if irrelevant:
            asked = self.offering.foreign_request(self.environment)
            if asked is None:
                return None
            stages.append(asked)
        return self._blueprint(wisher, "task", stages, goals=goals)

    def _of_several(self) -> Blueprint | None:
        """A conversation that begins with a goal in each of two environments."""
        venues = self._venues()
        if not venues:
            return self._task(self._wisher(self.own), irrelevant=False)
        wisher = self._wisher(self.rng.choice(venues))
        environment = wisher.repertoire.environment
        route = environment.names_in(self.environment.name) if isinstance(environment, ComposedEnvironment) else None
        if route is None:
            return None
        session = wisher.world.session
        theirs = [tool for tool in wisher.repertoire.single if route(tool) is None]
        ours = [tool for tool in wisher.repertoire.single if route(tool) is not None]
        one = wisher.chain(session, self.rng.randint(2, 3)) if self.rng.random() < self.knobs.chains else None
        one = one or wisher.single(session, ours)
        other = wisher.single(one[1], theirs) if one is not None else None
        if one is None or other is None:
            return None
        first = self._stage(wisher, [one[0], other[0]])
        if first is None:
            return None
        turns = self._turns()
        talk = self._talk(wisher, other[1], turns - 1, assistant_turns(first)) if turns > 1 else ([], other[1], 0)
        if talk is None or in_vain([first, *talk[0]], wisher.repertoire.tools, session, talk[1]):
            return None
        return self._blueprint(wisher, "task", [first, *talk[0]], goals=2 + talk[2])

    def _about_a_failure(self, wisher: Wisher, kind: str) -> Blueprint | None:
        """A conversation about the failure that was planned least: in this world, or as its witness has it."""
        coverage, repaired = self.coverage, self.repertoire.repaired

        def rank(cell: Pair) -> tuple[Any, ...]:  # fewer failures are made up for by another tool
            unfit = (cell in repaired) != (kind == "recovered")
            return coverage.cells[cell], unfit, coverage.tried[cell], self.rng.random()

        ranked = sorted(self.cells, key=rank)[:_RANKED]
        # What this world does not let be made up for, another cell may: one is given up on only where none is.
        ways = [self._recovered] if kind == "recovered" else []
        if self.knobs.failing:
            ways.append(self._failing)
        for way in ways:
            for cell in ranked:
                literally = self.coverage.tried[cell] >= _ELSEWHERE
                there = wisher
                if literally:
                    world = self.own.world(self.repertoire.failures[cell].world[1])
                    there = Wisher(self.own, world, self.coverage, self.rng, self.fuller)
                made = way(there, cell, literally)
                if made is not None:
                    return made
                if way is ways[-1]:  # not to be had here at all
                    self.coverage.tried[cell] += 1
        return None

    def _failing(self, wisher: Wisher, cell: Pair, literally: bool) -> Blueprint | None:
        session = wisher.world.session
        before: list[Stage] = []
        turns = self._turns()
        found = wisher.failing(session, cell, literally=literally)
        if found is None:
            return None
        wishes = found[0]
        if len(wishes) == 1 and turns > 1 and not literally:
            talk = self._talk(wisher, session, turns - 1, _SHORTEST * len(wishes))
            if talk is None:
                return None
            before, session, _ = talk
            found = wisher.failing(session, cell)
            if found is None:
                return None
            wishes = found[0]
        stages = [*before]
        for wish in wishes:
            stage = self._stage(wisher, [wish])
            if stage is None:
                return None
            stages.append(stage)
            session = session_after(session, wish)
        return self._blueprint(wisher, "failing", stages, recovers=cell, goals=len(stages))

    def _recovered(self, wisher: Wisher, cell: Pair, literally: bool) -> Blueprint | None:
        found = wisher.recovered(wisher.world.session, cell, literally=literally)
        return self._begun(wisher, found, cell) if found is not None else None

    def _begun(self, wisher: Wisher, found: tuple[Wish, Any], recovers: Pair = ("", "")) -> Blueprint | None:
        """A task that begins with a wish, which leaves such a session, and goes on with others."""
        stage = self._stage(wisher, [found[0]])
        if stage is None:
            return None
        turns = self._turns()
        talk = self._talk(wisher, found[1], turns - 1, assistant_turns(stage)) if turns > 1 else ([], found[1], 0)
        if talk is None:
            return None
        stages = [stage, *talk[0]]
        if in_vain(stages, wisher.repertoire.tools, wisher.world.session, talk[1]):
            return None
        return self._blueprint(wisher, "task", stages, recovers=recovers, goals=1 + talk[2])

    def _missing(self, wisher: Wisher) -> tuple[Stage, str] | None:
        """A turn that can be met, and the tool that is hidden: one that it asks for, rather one that writes."""
        found = self._talk(wisher, wisher.world.session, 1, spent=1)
        if found is None:
            return None
        stage = found[0][0]
        tools = [call.tool for call in stage.asked.calls]
        writes = [tool for tool in tools if not self.environment.tools[tool].read_only]
        return stage, self.rng.choice(writes or tools)

    def _clarification(self, wisher: Wisher) -> Blueprint | None:
        found = self._missing(wisher)
        if found is None:
            return None
        stage, tool = found
        first = Stage(stage.asked, ending="refusal")
        return self._blueprint(wisher, "clarification", [first, stage], hidden={tool: 1})

    def _hidden(self, wisher: Wisher) -> Blueprint | None:
        found = self._missing(wisher)
        if found is None:
            return None
        stage, tool = found
        return self._blueprint(wisher, "abstention", [Stage(stage.asked, ending="refusal")], hidden={tool: -1})

    def _elsewhere(self, wisher: Wisher) -> Blueprint | None:
        asked = self.offering.foreign_request(self.environment)
        return self._blueprint(wisher, "abstention", [asked]) if asked is not None else None

    def _blueprint(
        self,
        wisher: Wisher,
        kind: Any,
        stages: Sequence[Stage],
        *,
        recovers: Pair = ("", ""),
        goals: int = 1,
        hidden: Mapping[str, int] | None = None,
    ) -> Blueprint | None:
        """The blueprint of some stages; ``None`` where its reference takes too many turns."""
        if sum(map(assistant_turns, stages)) > self.knobs.assistant_turns:
            return None
        stages = ordered(stages, wisher.repertoire.tools, wisher.world.session)
        longest = max(stages, key=lambda stage: len(stage.calls))
        pairs = self.pairs(stages)
        made = Blueprint(
            wisher.repertoire.environment.name,
            wisher.world.scenario,
            wisher.world.seed,
            kind,
            tuple(stages),
            self.offering.offered(wisher.repertoire.environment),
            self.rng.choice(PERSONAS).name,
            tuple(dict.fromkeys(tool for pair in sorted(pairs) for tool in pair)),
            Program(longest.calls).structure,
            max(1, goals),
            hidden=dict(hidden or {}),
            recovers=recovers,
        )
        self.count(made, 1)
        return made

    # Turns ------------------------------------------------------------------------------------------------------------

    def _turns(self) -> int:
        turns = self.knobs.most_turns if self.fuller and self.knobs.decay else self.knobs.least_turns
        while turns < self.knobs.most_turns and self.rng.random() < self.knobs.decay:
            turns += 1
        return turns

    def _wishes(self, wisher: Wisher, session: Any) -> tuple[list[Wish], Any, int] | None:
        """What a turn asks for, the session after it, and how many goals it has."""
        knobs, rng = self.knobs, self.rng
        rest = 1 - knobs.chains - knobs.parallel - knobs.two_goals
        shares = {"single": rest, "chain": knobs.chains, "parallel": knobs.parallel, "goals": knobs.two_goals}
        if self.fuller and rest < 1:
            del shares["single"]
        form = rng.choices(list(shares), list(shares.values()))[0]
        if form == "chain" or form == "goals":
            length = rng.randint(2, knobs.longest if form == "chain" else 3)
            found = wisher.chain(session, length) or wisher.single(session)
        else:
            found = wisher.single(session)
        if found is None:
            return None
        wishes, session = [found[0]], found[1]
        more = {"goals": 1, "parallel": rng.randint(1, 2)}.get(form, 0) + (self.fuller and form != "chain")
        for _ in range(more):
            tool = wishes[0].made[-1].tool
            same = [tool] if form == "parallel" and rng.random() < 0.5 else None
            other = wisher.single(session, same)
            if other is not None and not repeats(wishes, other[0]):
                wishes.append(other[0])
                session = other[1]
        return wishes, session, len(wishes) if form == "goals" else 1

    def _stage(self, wisher: Wisher, wishes: Sequence[Wish]) -> Stage | None:
        stage = stage_of(wishes, wisher.repertoire.tools)
        return stage if stage.asked.calls and wisher.venue.sayable(stage.asked) else None

    def _talk(self, wisher: Wisher, session: Any, count: int, spent: int = 0) -> tuple[list[Stage], Any, int] | None:
        """So many turns of the user, the session after them, and their goals; ``spent`` are turns of the assistant that
        the rest of the conversation takes.
        """
        stages: list[Stage] = []
        goals = 0
        room = self.knobs.assistant_turns - spent
        for later in reversed(range(count)):
            found = self._turn(wisher, session, room - _SHORTEST * later)
            if found is None:
                return None
            stage, session, more = found
            stages.append(stage)
            goals += more
            room -= assistant_turns(stage)
        return stages, session, goals

    def _turn(self, wisher: Wisher, session: Any, room: int) -> tuple[Stage, Any, int] | None:
        """A turn of the user for which the assistant has so many; one call where what was drawn first takes more, and
        something else where it was told already.
        """
        too_long: set[str] = set()
        for again in reversed(range(_SHORTER + 1)):
            before = wisher.binder.so_far()
            found = _one_wish(wisher, session, too_long) if too_long else self._wishes(wisher, session)
            stage = self._stage(wisher, found[0]) if found is not None else None
            if found is None or stage is None:
                return None
            short = assistant_turns(stage) <= room
            known = told_already(found[0], wisher.binder.heard[: before[1]], wisher.repertoire.tools)
            if short and not (known and again):  # where there is nothing else, one asks again
                return stage, found[1], found[2]
            wisher.binder.back_to(before)
            if not short:
                too_long.add(stage.calls[-1].tool)
        return None


def _one_wish(wisher: Wisher, session: Any, without: set[str]) -> tuple[list[Wish], Any, int] | None:
    """As :meth:`Kinds._wishes`: one call, of a tool that is not one of these."""
    found = wisher.single(session, [tool for tool in wisher.repertoire.single if tool not in without])
    return ([found[0]], found[1], 1) if found is not None else None
