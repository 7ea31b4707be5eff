"""The blueprint of a conversation: plan before words (Prove, section 3.2, steps 2 to 4).

    Blueprint                     the world, what is offered, what kind of conversation it is
      Stage, one a user's turn    what the user asks for (a plan), the calls that it takes, how the turn ends

It is JSON, the payload of a unit (:class:`callwright.training.synthesis.units.Unit`): a conversation hangs on nothing
else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from attrs import asdict, frozen

from callwright.errors import DataError
from callwright.language.program import Call, plain, revive
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.styles import Information

#: ``task``: everything that is asked for can be done. ``failing``: something cannot, by a rule of the environment, and
#: the right end is to say so and to change nothing (else). ``clarification``: a tool is missing at first.
#: ``abstention``: no tool fits, now or later.
Kind = Literal["task", "failing", "clarification", "abstention"]
#: How a turn of the user ends: with what was found or done, with the reason why it was not, or with regrets.
Ending = Literal["answer", "failure", "refusal"]
#: How a call that failed is made up for: the same tool with other arguments, another tool (first), or not at all.
Recovery = Literal["parameters", "tool", "give up"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@frozen
class Failing:
    """A call of a stage that fails on purpose: its place, the code that it fails with, and what makes up for it."""

    call: int
    code: str
    recovery: Recovery


@frozen
class Stage:
    """A turn of the user.

    ``asked`` is what its words say: calls with literal arguments, or references within the stage. ``calls`` are what it
    takes, numbered from 0: those of ``asked`` and whatever else they need (finding an id, signing in), also calls that
    fail on the way (``failing``). Their arguments are literals, or references to earlier calls of the stage.
    ``after[i]`` are the calls of the stage that call ``i`` has to follow, beside those that it refers to; ``needs[i]``
    the calls, numbered over all stages, without which it would come to something else.
    ``information`` is how much the words tell at first (Prove: 60, 20 and 20 of a hundred). ``elsewhere`` names the
    environment whose tools ``asked`` is about, where it is another one: nothing that is offered can do that.
    """

    asked: Plan
    calls: tuple[Call, ...] = ()
    after: tuple[tuple[int, ...], ...] = ()
    failing: tuple[Failing, ...] = ()
    ending: Ending = "answer"
    code: str = ""
    information: Information = "complete"
    elsewhere: str = ""
    needs: tuple[tuple[int, ...], ...] = ()

    def __attrs_post_init__(self) -> None:
        Plan(self.calls)  # says what is wrong with ids and references
        for stated in (self.after, self.needs):
            if len(stated) not in (0, len(self.calls)):
                raise DataError(f"a stage of {len(self.calls)} calls says for {len(stated)} of them what they follow")
        for place, earlier in enumerate(self.after):
            if not all(0 <= one < place for one in earlier):
                raise DataError(
                    f"call {place} of a stage has to follow {list(earlier)}, which are no earlier calls of it"
                )
        if not all(0 <= one.call < len(self.calls) for one in self.failing):
            raise DataError("a stage says of a call that it fails, and has no such call")

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs (earlier, later) of calls of which the later one refers to the earlier one, or has to follow it."""
        stated = {(one, place) for place, earlier in enumerate(self.after) for one in earlier}
        return tuple(sorted(stated | {(one.call, call.id) for call in self.calls for _, one in call.located}))

    def needed(self, place: int, first: int) -> set[int]:
        """What a call refers to, or would come to something else without, numbered over all stages; ``first`` is the
        number of the first call of this one. In a plan that does not say so: what it has to follow.
        """
        told = {first + one.call for _, one in self.calls[place].located}
        if self.needs:
            return told.union(self.needs[place])
        return told.union(first + one for one in self.after[place]) if self.after else told

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "asked": self.asked.to_json(),
            "calls": [{"tool": one.tool, "arguments": plain(one.arguments)} for one in self.calls],
            "after": [list(one) for one in self.after],
            "failing": [asdict(one) for one in self.failing],
            "ending": self.ending,
            "code": self.code,
            "information": self.information,
            "elsewhere": self.elsewhere,
            "needs": [list(one) for one in self.needs],
        }

    @classmethod
    def from_json(cls, stated: Any) -> Stage:
        """What :meth:`to_json` wrote. Raises :class:`callwright.errors.DataError`."""
        try:
            return cls(
                Plan.from_json(stated["asked"]),
                tuple(
                    Call(place, one["tool"], revive(dict(one["arguments"])))
                    for place, one in enumerate(stated["calls"])
                ),
                tuple(tuple(one) for one in stated["after"]),
                tuple(Failing(**one) for one in stated["failing"]),
                stated["ending"],
                stated["code"],
                stated["information"],
                stated.get("elsewhere", ""),
                tuple(tuple(one) for one in stated.get("needs", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"no stage of a blueprint ({error}): {stated!r:.80}") from error


def edges_of(stages: Sequence[Stage]) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of calls, numbered over all stages, of which the later one needs the earlier one."""
    found: list[tuple[int, int]] = []
    first = 0
    for stage in stages:
        for place in range(len(stage.calls)):
            found += [(one, first + place) for one in sorted(stage.needed(place, first))]
        first += len(stage.calls)
    return found


def pairs_of(stages: Sequence[Stage]) -> set[tuple[str, str]]:
    """The tools of :func:`edges_of`."""
    tools = [call.tool for stage in stages for call in stage.calls]
    return {(tools[earlier], tools[later]) for earlier, later in edges_of(stages)}


def told_before(earlier: Sequence[Stage]) -> tuple[Call, ...]:
    """The calls that the user of some stages has asked for: what they were told of is known from then on."""
    return tuple(call for stage in earlier for call in stage.asked.calls)


@frozen
class Distractor:
    """A tool of another environment that is offered beside those of the task."""

    environment: str
    tool: str


@frozen
class Blueprint:
    """A conversation, but for its words.

    ``offered`` are the tools of the environment that are offered, in order; ``hidden`` those among them that are not
    there at first: they appear in the turn of the user that they are mapped to, numbered from 0, or never (-1).
    ``stripped`` are parameters (tool and name; also of distractors) whose enumerated values are taken out of the
    schemas. ``environment`` may be several as one (``email+calendar``).
    ``chain`` are the tools whose edges it was drawn for, ``structure`` as DepthBench has it (``single``, ``chain``,
    ``parallel``, ``fan-in``, …), ``goals`` how many goals its stages have. ``persona`` is the name of one of
    :data:`.wordlists.personas.PERSONAS`. ``recovers`` names the failure that it fills a cell for: tool and code.
    """

    environment: str
    scenario: str
    seed: int
    kind: Kind
    stages: tuple[Stage, ...]
    offered: tuple[str, ...]
    persona: str = ""
    chain: tuple[str, ...] = ()
    structure: str = "single"
    goals: int = 1
    distractors: tuple[Distractor, ...] = ()
    stripped: tuple[tuple[str, str], ...] = ()
    hidden: Mapping[str, int] = {}
    recovers: tuple[str, str] = ("", "")

    def __attrs_post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DataError(f"a blueprint is one of {', '.join(KINDS)}, not {self.kind!r:.40}")
        if not self.stages:
            raise DataError("a blueprint has a stage at least: what the user asks for first")
        if any(one < 0 or one >= later for one, later in edges_of(self.stages)):
            raise DataError("a blueprint has a call that has to follow one which is no earlier call of it")

    @property
    def depth(self) -> int:
        """How many calls it takes."""
        return sum(len(one.calls) for one in self.stages)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "environment": self.environment,
            "scenario": self.scenario,
            "seed": self.seed,
            "kind": self.kind,
            "stages": [one.to_json() for one in self.stages],
            "offered": list(self.offered),
            "persona": self.persona,
            "chain": list(self.chain),
            "structure": self.structure,
            "goals": self.goals,
            "distractors": [asdict(one) for one in self.distractors],
            "stripped": [list(one) for one in self.stripped],
            "hidden": dict(self.hidden),
            "recovers": list(self.recovers),
        }

    @classmethod
    def from_json(cls, stated: Any) -> Blueprint:
        """What :meth:`to_json` wrote. Raises :class:`callwright.errors.DataError`."""
        try:
            tool, code = stated["recovers"]
            return cls(
                stated["environment"],
                stated["scenario"],
                stated["seed"],
                stated["kind"],
                tuple(Stage.from_json(one) for one in stated["stages"]),
                tuple(stated["offered"]),
                stated["persona"],
                tuple(stated["chain"]),
                stated["structure"],
                stated["goals"],
                tuple(Distractor(**one) for one in stated["distractors"]),
                tuple((tool, name) for tool, name in stated["stripped"]),
                dict(stated["hidden"]),
                (tool, code),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"no blueprint ({error}): {stated!r:.80}") from error


def coverage_of(blueprints: Sequence[Blueprint]) -> Counter[str]:
    """In how many blueprints each tool is called."""
    return Counter(
        tool for one in blueprints for tool in sorted({call.tool for stage in one.stages for call in stage.calls})
    )
