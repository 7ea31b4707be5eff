"""Planning: all blueprints of an environment, with the shares, chains and failures that they are to have together.

    plan_blueprints(materials, knowledge, knobs) -> list[Blueprint]

Everything that is drawn over several conversations is drawn here, so that shares are exact and tools, edges and
failures are covered by plan and not by luck. Every call of a blueprint was executed in its world: outcomes are as the
stage says. The same materials, knowledge and knobs give the same blueprints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import evolve

from callwright.language.program import Call, Program
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage
from callwright_plugins.synthesis.blueprints.knobs import Knobs, marked, shared_out
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
from callwright_plugins.synthesis.blueprints.offering import Offering
from callwright_plugins.synthesis.blueprints.repertoire import Pair, Repertoire
from callwright_plugins.synthesis.blueprints.sayable import Sayable
from callwright_plugins.synthesis.blueprints.turns import Wish, stage_of
from callwright_plugins.synthesis.blueprints.wishes import Coverage, Wisher, World
from callwright_plugins.synthesis.duplicates.elements import elements
from callwright_plugins.synthesis.duplicates.jaccard import near_duplicates
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.wordlists.personas import PERSONAS

#: How often a conversation is begun anew, in another world, before it is about something else.
_ATTEMPTS: Final = 8
#: How often near-duplicates are planned anew.
_ROUNDS: Final = 6
_THRESHOLD: Final = 0.70
#: In how many worlds a failure is sought before it is taken as its witness has it.
_ELSEWHERE: Final = 2


def plan_blueprints(materials: Materials, knowledge: Knowledge, knobs: Knobs) -> list[Blueprint]:
    """As many blueprints as the materials want tasks; fewer only where the environment does not yield as many.

    Raises what opening a session of the environment raises, and :class:`callwright.errors.UnknownName` for one of
    ``knobs.others`` that is not there.
    """
    return _Planner(materials, knowledge, knobs).plan()


class _Planner:
    def __init__(self, materials: Materials, knowledge: Knowledge, knobs: Knobs) -> None:
        self.materials, self.knowledge, self.knobs = materials, knowledge, knobs
        self.environment = materials.environment
        self.scenario = knowledge.explored.scenario
        self.repertoire = Repertoire(self.environment, knowledge)
        self.coverage = Coverage()
        self.rng = Random(f"blueprints/{self.environment.name}/{materials.seed}/{materials.count}")
        self.offering = Offering(self.environment, materials.registry, knobs, self.rng)
        self.sayable = Sayable(self.environment.tools)
        self.worlds: dict[int, World] = {}
        self.drawn_from = 0
        self.world: World | None = None
        self.proven = set(self.repertoire.edges)

    # The whole --------------------------------------------------------------------------------------------------------

    def plan(self) -> list[Blueprint]:
        """All blueprints."""
        wanted = self._kinds()
        found: list[Blueprint | None] = [self._made(kind) for kind in wanted]
        for _ in range(_ROUNDS):
            again = self._dropped(found)
            if not again:
                break
            for place in again:
                found[place] = self._made(wanted[place])
        for place in self._dropped(found):
            found[place] = None
        blueprints = [one for one in found if one is not None]
        for world in self.worlds.values():
            world.session.close()
        return self._turned(blueprints)

    def _kinds(self) -> list[tuple[str, Pair | None]]:
        """What each blueprint is to be: its kind, and the failure that it is about."""
        knobs, count, rng = self.knobs, self.materials.count, self.rng
        rest = 1 - knobs.clarifications - knobs.abstentions
        kinds = shared_out(
            count, {"conversation": rest, "clarification": knobs.clarifications, "abstention": knobs.abstentions}, rng
        )
        talks = [place for place, kind in enumerate(kinds) if kind == "conversation"]
        plain = max(0.0, 1 - knobs.irrelevance - knobs.failing - knobs.recoveries)
        cells = self._cells()
        if cells and len(talks) * (knobs.failing + knobs.recoveries) < len(cells):
            grown = min(len(cells) / max(1, len(talks)), 1 - knobs.irrelevance)
            whole = knobs.failing + knobs.recoveries
            failing = grown * (knobs.failing / whole if whole else 0.5)
            shares = {"irrelevant": knobs.irrelevance, "failing": failing, "recovered": grown - failing}
            plain = max(0.0, 1 - knobs.irrelevance - grown)
        else:
            shares = {"irrelevant": knobs.irrelevance, "failing": knobs.failing, "recovered": knobs.recoveries}
        if not knobs.failing and not knobs.recoveries:
            shares, plain = {"irrelevant": knobs.irrelevance}, 1 - knobs.irrelevance
        found: list[tuple[str, Pair | None]] = [(kind, None) for kind in kinds]
        for place, kind in zip(talks, shared_out(len(talks), {"task": plain, **shares}, rng), strict=True):
            found[place] = (kind, None)
        return found

    def _cells(self) -> list[Pair]:
        return sorted(self.repertoire.failures)

    # One --------------------------------------------------------------------------------------------------------------

    def _made(self, wanted: tuple[str, Pair | None]) -> Blueprint | None:
        kind, _ = wanted
        for attempt in range(_ATTEMPTS):
            found = self._tried(kind if attempt < _ATTEMPTS - 2 or kind in ("abstention", "clarification") else "task")
            if found is not None:
                return found
        return None

    def _tried(self, kind: str) -> Blueprint | None:
        world = self._next_world()
        wisher = Wisher(self.repertoire, world, self.coverage, self.rng)
        if kind == "clarification":
            return self._clarification(wisher)
        if kind == "abstention":
            hidden = self.rng.random() < self.knobs.never
            return self._hidden(wisher) if hidden else self._elsewhere(wisher)
        if kind in ("failing", "recovered"):
            return self._about_a_failure(wisher, kind)
        return self._task(wisher, kind == "irrelevant")

    def _next_world(self) -> World:
        """The world of the next conversation: another one after some conversations, never one that was explored."""
        if self.world is None or self.drawn_from >= self.knobs.refreshed:
            seeds = self.knowledge.explored.seeds
            seed = self.rng.randrange(1_000_000)
            while seed in seeds:
                seed += 1
            self.world, self.drawn_from = self._open(seed), 0
        self.drawn_from += 1
        return self.world

    def _open(self, seed: int) -> World:
        if seed not in self.worlds:
            session = self.environment.open(self.scenario, seed)
            self.worlds[seed] = World(self.scenario, seed, session, self.repertoire.context(session, self.rng))
        return self.worlds[seed]

    # Kinds ------------------------------------------------------------------------------------------------------------

    def _turns(self) -> int:
        turns = self.knobs.least_turns
        while turns < self.knobs.most_turns and self.rng.random() < self.knobs.decay:
            turns += 1
        return turns

    def _wishes(self, wisher: Wisher, session: Any) -> tuple[list[Wish], Any, int] | None:
        """What a turn asks for, the session after it, and how many goals it has."""
        knobs, rng = self.knobs, self.rng
        rest = 1 - knobs.chains - knobs.parallel - knobs.two_goals
        shares = {"single": rest, "chain": knobs.chains, "parallel": knobs.parallel, "goals": knobs.two_goals}
        form = rng.choices(list(shares), list(shares.values()))[0]
        if form == "chain" or form == "goals":
            length = rng.randint(2, knobs.longest if form == "chain" else 3)
            found = wisher.chain(session, length) or wisher.single(session)
        else:
            found = wisher.single(session)
        if found is None:
            return None
        wishes, session = [found[0]], found[1]
        more = {"goals": 1, "parallel": rng.randint(1, 2)}.get(form, 0)
        for _ in range(more):
            tool = wishes[0].made[-1].tool
            same = [tool] if form == "parallel" and rng.random() < 0.5 else None
            other = wisher.single(session, same)
            if other is not None and not _repeats(wishes, other[0]):
                wishes.append(other[0])
                session = other[1]
        return wishes, session, len(wishes) if form == "goals" else 1

    def _stage(self, wisher: Wisher, wishes: Sequence[Wish], before: Any) -> Stage | None:
        stage = stage_of(wishes, self.environment.tools, before, self.repertoire.needs)
        return stage if stage.asked.calls and self.sayable(stage.asked) else None

    def _talk(self, wisher: Wisher, session: Any, count: int) -> tuple[list[Stage], Any, int] | None:
        stages: list[Stage] = []
        goals = 0
        for _ in range(count):
            found = self._wishes(wisher, session)
            if found is None:
                return None
            stage = self._stage(wisher, found[0], session)
            if stage is None:
                return None
            stages.append(stage)
            session, goals = found[1], goals + found[2]
        return stages, session, goals

    def _task(self, wisher: Wisher, irrelevant: bool) -> Blueprint | None:
        turns = self._turns()
        found = self._talk(wisher, wisher.world.session, turns - 1 if irrelevant and turns > 1 else turns)
        if found is None:
            return None
        stages, _, goals = found
        if irrelevant:
            asked = self.offering.foreign_request()
            if asked is None:
                return None
            stages.append(asked)
        return self._blueprint(wisher, "task", stages, goals=goals)

    def _about_a_failure(self, wisher: Wisher, kind: str) -> Blueprint | None:
        """A conversation about the failure that was planned least: in this world, or as its witness has it."""
        for cell in self.coverage.least(self._cells(), self.coverage.cells, self.rng, 3):
            literally = self.coverage.tried[cell] >= _ELSEWHERE
            if literally:
                shape = self.repertoire.failures[cell]
                wisher = Wisher(self.repertoire, self._open(shape.world[1]), self.coverage, self.rng)
            made = self._recovered(wisher, cell, literally) if kind == "recovered" else None
            made = made or self._failing(wisher, cell, literally)
            if made is not None:
                return made
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
            talk = self._talk(wisher, session, turns - 1)
            if talk is None:
                return None
            before, session, _ = talk
            found = wisher.failing(session, cell)
            if found is None:
                return None
            wishes = found[0]
        stages = [*before]
        for wish in wishes:
            stage = self._stage(wisher, [wish], session)
            if stage is None:
                return None
            stages.append(stage)
            session = _after(session, wish)
        return self._blueprint(wisher, "failing", stages, recovers=cell, goals=len(stages))

    def _recovered(self, wisher: Wisher, cell: Pair, literally: bool) -> Blueprint | None:
        session = wisher.world.session
        found = wisher.recovered(session, cell, literally=literally)
        if found is None:
            return None
        stage = self._stage(wisher, [found[0]], session)
        if stage is None:
            return None
        turns = self._turns()
        talk = self._talk(wisher, found[1], turns - 1) if turns > 1 else ([], found[1], 0)
        if talk is None:
            return None
        return self._blueprint(wisher, "task", [stage, *talk[0]], recovers=cell, goals=1 + talk[2])

    def _missing(self, wisher: Wisher) -> tuple[Stage, str] | None:
        """A turn that can be met, and the tool that is hidden: one that it asks for, rather one that writes."""
        found = self._talk(wisher, wisher.world.session, 1)
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
        asked = self.offering.foreign_request()
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
    ) -> Blueprint:
        calls = [call for stage in stages for call in stage.calls]
        self.coverage.tools.update({call.tool for call in calls})
        pairs = {
            pair
            for stage in stages
            for earlier, later in stage.edges
            if (pair := (stage.calls[earlier].tool, stage.calls[later].tool)) in self.proven
        }
        self.coverage.pairs.update(pairs)
        if recovers[0]:
            self.coverage.cells[recovers] += 1
        longest = max(stages, key=lambda stage: len(stage.calls))
        return Blueprint(
            self.environment.name,
            wisher.world.scenario,
            wisher.world.seed,
            kind,
            tuple(stages),
            self.offering.offered(),
            self.rng.choice(PERSONAS).name,
            tuple(dict.fromkeys(tool for pair in sorted(pairs) for tool in pair)),
            Program(longest.calls).structure,
            max(1, goals),
            hidden=dict(hidden or {}),
            recovers=recovers,
        )

    # Over all of them -------------------------------------------------------------------------------------------------

    def _dropped(self, found: Sequence[Blueprint | None]) -> list[int]:
        """The places of those that are near-duplicates of earlier ones, by what they ask for and what it takes."""
        known = [place for place, one in enumerate(found) if one is not None]
        sets = [elements(_compared(one)) for one in found if one is not None]
        return [known[number] for number in near_duplicates(sets, threshold=_THRESHOLD)]

    def _turned(self, blueprints: list[Blueprint]) -> list[Blueprint]:
        """The blueprints with levels of information, distractors and stripped schemas in exact shares."""
        knobs, rng, count = self.knobs, self.rng, len(blueprints)
        blueprints = self._informed(blueprints)
        for place in marked(count, knobs.distractors, range(count), rng):
            one = blueprints[place]
            blueprints[place] = evolve(one, distractors=self.offering.distractors(one))
        able = [place for place, one in enumerate(blueprints) if self.offering.closed(one)]
        for place in marked(count, knobs.stripped, able, rng):
            blueprints[place] = evolve(blueprints[place], stripped=self.offering.stripped(blueprints[place]))
        return blueprints

    def _informed(self, blueprints: Sequence[Blueprint]) -> list[Blueprint]:
        """Levels of information, dealt to the turns that have something to leave out."""
        turns = [
            (place, number)
            for place, one in enumerate(blueprints)
            if one.kind in ("task", "failing")
            for number, stage in enumerate(one.stages)
            if stage.calls
        ]
        told = {at: self._tellable(blueprints[at[0]].stages[at[1]].asked) for at in turns}
        order = self.rng.sample(turns, len(turns))
        level: dict[tuple[int, int], Any] = {}
        for name, least in (("minimal", 2), ("missing", 1)):
            able = [at for at in order if at not in level and told[at] >= least]
            level.update(dict.fromkeys(able[: round(getattr(self.knobs, name) * len(turns))], name))
        return [
            evolve(
                one,
                stages=tuple(
                    evolve(stage, information=level.get((place, number), "complete"))
                    for number, stage in enumerate(one.stages)
                ),
            )
            for place, one in enumerate(blueprints)
        ]

    def _tellable(self, asked: Plan) -> int:
        """How many required arguments are said as they are: none, one, or more."""
        found = 0
        for call in asked.calls:
            referring = {path[0] for path, _ in call.located}
            spec = self.environment.tools.get(call.tool)
            required = spec.parameters.get("required", ()) if spec is not None else ()
            found += sum(name in required and name not in referring for name in call.arguments)
        return found


def _compared(blueprint: Blueprint) -> list[Call]:
    """What near-duplicates are told by: the calls that it takes, or that are asked for where none is made."""
    calls = [call for stage in blueprint.stages for call in stage.calls]
    return calls or [call for stage in blueprint.stages for call in stage.asked.calls]


def _repeats(wishes: Sequence[Wish], other: Wish) -> bool:
    """Whether the calls of a wish are among those of others."""
    known = [(one.tool, one.arguments) for wish in wishes for one in wish.made]
    return all((one.tool, one.arguments) in known for one in other.made)


def _after(session: Any, wish: Wish) -> Any:
    """The session after the calls of a wish, in a fork."""
    fork = session.fork()
    for one in wish.made:
        fork.call(one.tool, dict(one.arguments))
    return fork


def coverage_of(blueprints: Sequence[Blueprint]) -> Counter[str]:
    """In how many blueprints each tool is called."""
    return Counter(
        tool for one in blueprints for tool in sorted({call.tool for stage in one.stages for call in stage.calls})
    )
