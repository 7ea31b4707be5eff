"""Planning: all blueprints of an environment, with the shares, chains and failures that they are to have together.

    plan_blueprints(materials, knowledge, knobs) -> list[Blueprint]

Everything that is drawn over several conversations is drawn here, so that shares are exact and tools, edges and
failures are covered by plan and not by luck. Every call of a blueprint was executed in its world: outcomes are as the
stage says. The same materials, knowledge and knobs give the same blueprints.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from attrs import evolve

from callwright.language.program import Call
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.blueprints.kinds import Kinds
from callwright_plugins.synthesis.blueprints.knobs import Knobs, marked, shared_out
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
from callwright_plugins.synthesis.blueprints.turns import informed
from callwright_plugins.synthesis.duplicates.elements import elements
from callwright_plugins.synthesis.duplicates.jaccard import near_duplicates

#: How often near-duplicates are planned anew.
_ROUNDS: Final = 48
#: After how many rounds in which no more was found an environment has no more to give.
_PATIENCE: Final = 8
#: From which round on those that are planned anew ask for more at once: where a world holds little, short ones are
#: all alike.
_FULLER: Final = 3
#: From which round on a conversation about a failure may be about something else.
_GIVEN_UP: Final = 3
_THRESHOLD: Final = 0.70
#: More failures are planned than cells are to be filled: some cells are filled twice by what is dropped or falls short.
_MARGIN: Final = 1.15


def plan_blueprints(
    materials: Materials, knowledge: Knowledge, knobs: Knobs, cache: Path | None = None
) -> list[Blueprint]:
    """As many blueprints as the materials want tasks; fewer only where the environment does not yield as many.
    ``cache`` is the folder where knowledge is kept, that of other environments too.

    Raises what opening a session of the environment raises, and :class:`callwright.errors.UnknownName` for one of
    ``knobs.others`` that is not there.
    """
    return _Planner(materials, knowledge, knobs, cache).plan()


class _Planner:
    def __init__(self, materials: Materials, knowledge: Knowledge, knobs: Knobs, cache: Path | None) -> None:
        self.materials, self.knobs = materials, knobs
        self.rng = Random(f"blueprints/{materials.environment.name}/{materials.seed}/{materials.count}")
        self.kinds = Kinds(materials, knowledge, knobs, self.rng, cache)
        self._elements: dict[int, tuple[Blueprint, frozenset[str]]] = {}

    def plan(self) -> list[Blueprint]:
        """All blueprints."""
        try:
            return self._all()
        finally:
            self.kinds.close()

    def _all(self) -> list[Blueprint]:
        wanted, reporter = self._kinds(), self.materials.reporter
        found: list[Blueprint | None] = []
        reporter.start(f"planning {self.materials.environment.name}", len(wanted))
        for kind in wanted:
            found.append(self.kinds.made(kind))
            reporter.advance()
        self._cover(found, wanted)
        fewest, since = len(wanted) + 1, 0
        for number in range(_ROUNDS):
            again = self._dropped(found)
            again += [place for place, one in enumerate(found) if one is None]
            if len(again) < fewest:
                fewest, since = len(again), number
            if not again or (number > _FULLER and number - since >= _PATIENCE):
                break
            for place in again:
                gone = found[place]
                if gone is not None:
                    self.kinds.count(gone, -1)
            self.kinds.fuller = number >= _FULLER
            for place in again:
                about = wanted[place] in ("failing", "recovered") and number >= _GIVEN_UP
                found[place] = self.kinds.made("task" if about else wanted[place])
                reporter.advance(0, missing=len(again))
        reporter.finish()
        for place in self._dropped(found):
            found[place] = None
        return self._turned([one for one in found if one is not None])

    def _cover(self, found: list[Blueprint | None], wanted: Sequence[str]) -> None:
        """Let edges that no world has given so far take the places of tasks whose edges others have, too: as their
        witnesses have them, in their own worlds.
        """
        pairs = self.kinds.coverage.pairs
        spare = [place for place, kind in enumerate(wanted) if kind == "task" and found[place] is not None]
        for pair in sorted(pair for pair in self.kinds.repertoire.edges if not pairs[pair]):
            made = self.kinds.literally(pair) if spare and not pairs[pair] else None
            while made is not None and spare:
                place = spare.pop()
                gone = found[place]
                if gone is not None and all(pairs[one] > 1 for one in self.kinds.pairs(gone.stages)):
                    self.kinds.count(gone, -1)
                    found[place] = made
                    made = None
            if made is not None:
                self.kinds.count(made, -1)

    def _kinds(self) -> list[str]:
        """What each blueprint is to be."""
        knobs, count, rng = self.knobs, self.materials.count, self.rng
        rest = 1 - knobs.clarifications - knobs.abstentions
        kinds = shared_out(
            count, {"conversation": rest, "clarification": knobs.clarifications, "abstention": knobs.abstentions}, rng
        )
        talks = [place for place, kind in enumerate(kinds) if kind == "conversation"]
        others = {"irrelevant": knobs.irrelevance, "several": knobs.several_servers}
        failing, recovered = knobs.failing, knobs.recoveries
        cells = _MARGIN * len(self.kinds.cells) / max(1, len(talks))
        if failing + recovered > 0:  # a cell is filled once, whatever that comes to
            grown = min(max(cells, failing + recovered), 1 - sum(others.values()))
            failing, recovered = (share * grown / (failing + recovered) for share in (failing, recovered))
        shares = {"failing": failing, "recovered": recovered, **others}
        shares["task"] = max(0.0, 1 - sum(shares.values()))
        for place, kind in zip(talks, shared_out(len(talks), shares, rng), strict=True):
            kinds[place] = kind
        return kinds

    def _dropped(self, found: Sequence[Blueprint | None]) -> list[int]:
        """The places of those that are near-duplicates of earlier ones, by what they ask for and what it takes."""
        known = [place for place, one in enumerate(found) if one is not None]
        sets = [self._elements_of(one) for one in found if one is not None]
        return [known[number] for number in near_duplicates(sets, threshold=_THRESHOLD)]

    def _elements_of(self, blueprint: Blueprint) -> frozenset[str]:
        """What it is compared by: most blueprints are compared in every round."""
        known = self._elements.get(id(blueprint))
        if known is None or known[0] is not blueprint:
            known = self._elements[id(blueprint)] = blueprint, elements(_compared(blueprint))
        return known[1]

    def _turned(self, blueprints: list[Blueprint]) -> list[Blueprint]:
        """The blueprints with levels of information, distractors and stripped schemas in exact shares."""
        knobs, rng, count = self.knobs, self.rng, len(blueprints)
        blueprints = informed(blueprints, knobs, rng, self.kinds.offering.environments)
        for place in marked(count, knobs.distractors, range(count), rng):
            one = blueprints[place]
            blueprints[place] = evolve(one, distractors=self.kinds.offering.distractors(one))
        able = [place for place, one in enumerate(blueprints) if self.kinds.offering.closed(one)]
        for place in marked(count, knobs.stripped, able, rng):
            blueprints[place] = evolve(blueprints[place], stripped=self.kinds.offering.stripped(blueprints[place]))
        return blueprints


def _compared(blueprint: Blueprint) -> list[Call]:
    """What near-duplicates are told by: the calls that it takes, or that are asked for where none is made."""
    calls = [call for stage in blueprint.stages for call in stage.calls]
    return calls or [call for stage in blueprint.stages for call in stage.asked.calls]
