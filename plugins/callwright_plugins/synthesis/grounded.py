"""The synthesizer ``grounded``: tasks that are planned in the live state of an environment and proven there.

    plan      knowledge (explored, proven), then blueprints: everything that is drawn over several tasks
    make      a blueprint becomes a conversation, and the conversation a task that has to pass the gates
    compare   near-duplicates by their calls, then by the words of their queries

Prove, section 3.2, on any environment. A task hangs on its unit and the environment alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from callwright.language.program import Call
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Accepted, Made, Rejected, Unit
from callwright.walk.limits import TurnLimits
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import cache_folder, known
from callwright_plugins.synthesis.blueprints.planning import plan_blueprints
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.duplicates.elements import elements, shingles
from callwright_plugins.synthesis.duplicates.jaccard import near_duplicates

#: Prove, section 4.1: rollouts are capped at 5 turns of the user and 10 of the assistant.
LIMITS: Final = TurnLimits(assistant_turns=10, user_turns=5)
#: Queries that are alike in so many of their runs of three words are one.
_ALIKE: Final = 0.9
_SEEDS: Final = 2**31


@frozen
class Grounded:
    """See the module. ``knobs`` are shares and counts (:class:`.blueprints.knobs.Knobs`).

    ``explore`` is the budget of exploring, in calls for each of its seeds; ``cache`` the folder in which what exploring
    came to is kept (the user's cache; ``"none"``: nowhere); ``threshold`` the Jaccard similarity from which two tasks
    are near-duplicates (the paper's 0.70); ``allow_destructive`` calls tools of a server that destroy something.
    """

    knobs: Knobs = field(factory=Knobs)
    explore: int | None = None
    cache: str = ""
    threshold: float = 0.70
    allow_destructive: bool = False
    name: str = field(default="grounded", init=False)

    @property
    def limits(self) -> TurnLimits:
        """How long episodes of its tasks may become."""
        return LIMITS

    def plan(self, materials: Materials) -> Sequence[Unit]:
        """Explore and prove (once for each version of the tools), then draw as many blueprints as tasks are wanted."""
        cache = None if self.cache == "none" else Path(self.cache) if self.cache else cache_folder()
        knowledge = known(
            materials.environment,
            registry=materials.registry,
            calls=self.explore,
            cache=cache,
            allow_destructive=self.allow_destructive,
        )
        blueprints = plan_blueprints(materials, knowledge, self.knobs)
        name, seed = f"{materials.environment.name}-{materials.seed}", materials.seed * 1_000_003
        return [
            Unit(f"{name}-{place}", place, (seed + place) % _SEEDS, one.to_json())
            for place, one in enumerate(blueprints)
        ]

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        """The conversation of a blueprint, if every call in it comes to what was planned and it passes the gates."""
        blueprint = Blueprint.from_json(unit.payload)
        made = converse(blueprint, materials, unit.seed, unit.id)
        if isinstance(made, Rejected):
            return made
        calls = [
            {"tool": call.tool, "arguments": step["calls"][0]["arguments"]}
            for call, step in zip(_calls(blueprint), made.facts["steps"], strict=False)
        ]
        return Accepted(materials.row(made), {"calls": calls or _asked(blueprint), "query": made.query})

    def compare(self, made: Sequence[Made]) -> Sequence[Rejected | None]:
        """Near-duplicates within an environment: by tools, keys and values of the calls, then by the queries."""
        verdicts: list[Rejected | None] = [None] * len(made)
        places: dict[int, list[int]] = {}
        sets: dict[int, list[frozenset[str]]] = {}
        words: dict[int, list[frozenset[str]]] = {}
        for place, one in enumerate(made):
            facts = one.accepted.facts
            places.setdefault(one.environment, []).append(place)
            found = [Call(at, call["tool"], call["arguments"]) for at, call in enumerate(facts["calls"])]
            sets.setdefault(one.environment, []).append(frozenset(elements(found)))
            words.setdefault(one.environment, []).append(frozenset(shingles(facts["query"])))
        for environment, own in places.items():
            for compared, threshold, reason in (
                (sets[environment], self.threshold, "calls nearly the same as another task"),
                (words[environment], _ALIKE, "is worded nearly as another task"),
            ):
                left = [number for number, place in enumerate(own) if verdicts[place] is None]
                for gone, kept in near_duplicates([compared[number] for number in left], threshold=threshold).items():
                    other = made[own[left[kept]]].unit.id
                    verdicts[own[left[gone]]] = Rejected("duplicates", reason, {"of": other})
        return verdicts


def grounded(
    explore: int | None = None,
    cache: str = "",
    threshold: float = 0.70,
    allow_destructive: bool = False,
    knobs: Mapping[str, Any] | None = None,
) -> Grounded:
    """The factory. ``knobs`` is a table of shares and counts, ``{"distractors": 0.4, …}``.

    Raises :class:`callwright.UsageError` for a knob that is none, or a value out of its range.
    """
    return Grounded(Knobs.from_json(knobs or {}), explore, cache, threshold, allow_destructive)


def _calls(blueprint: Blueprint) -> list[Call]:
    """The calls that are due."""
    made_up = [{one.call for one in stage.failing if one.recovery != "give up"} for stage in blueprint.stages]
    return [
        call
        for stage, gone in zip(blueprint.stages, made_up, strict=True)
        for call in stage.calls
        if call.id not in gone
    ]


def _asked(blueprint: Blueprint) -> list[dict[str, Any]]:
    return [
        {"tool": one["tool"], "arguments": one["arguments"]}
        for stage in blueprint.stages
        for one in stage.asked.to_json()["calls"]
    ]
