"""Grounded synthesis: knowledge, blueprints, conversations, gates, one after the other (Prove, section 3.2)."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import structlog
from attrs import evolve

from callwright.capability import has
from callwright.environments.protocol import Environment, TellsGoalState
from callwright.errors import UsageError
from callwright.plugins import Registry
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Accepted, Made, Rejected, Unit
from callwright.walk.limits import TurnLimits
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, already_known, known
from callwright_plugins.synthesis.blueprints.planning import plan_blueprints
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.dialogue.words import SCRIPTED
from callwright_plugins.synthesis.exploration.explored import TELLING, WAYS_OUT
from callwright_plugins.synthesis.gates import gate
from callwright_plugins.synthesis.gates.gate import GATES, Gate
from callwright_plugins.synthesis.gates.naming import BackTranslated
from callwright_plugins.synthesis.spares import ASKED, OF_KIND, SPARE, compare_with_spares, spare_places, spares_for
from callwright_plugins.synthesis.splitting import Split

#: The longest reference has three queries, each with a question, and a turn for each call and each answer.
LIMITS: Final = TurnLimits(assistant_turns=30, user_turns=8)
#: The share of spares: of the worst environment one conversation in twenty does not pass the gates.
SPARES: Final = 0.05
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")

log = structlog.get_logger()


class Grounded:
    """The synthesizer ``grounded``: conversations about what an environment can do, with references that were executed.

    ``knobs`` are those of :class:`.blueprints.knobs.Knobs`, by name. ``cache`` is a folder for what exploring came to;
    ``scenario``, ``seeds`` and ``calls`` (for each seed) are what is explored. Tools of a server that destroy something
    are called with ``allow_destructive`` alone. With ``gates`` every conversation has to pass them, and ``spares`` (a
    share of what is asked for) are planned beside, which take the place of those that do not. ``split`` is
    what to hold out (:class:`.splitting.Split`), as a table; without it all tasks are to learn from.

    The recipe's teacher has the words; ``words = "scripted"`` leaves these to the grammar. With ``back_translated`` it
    reads, in the role ``judge`` and without the plan, what users say: what it reads as something else is rejected.

    Raises :class:`callwright.UsageError` for options that are something else.
    """

    name: ClassVar[str] = "grounded"
    limits: ClassVar[TurnLimits] = LIMITS

    def __init__(
        self,
        cache: str | None = None,
        gates: bool = True,
        scenario: str = "",
        seeds: Sequence[int] = (0, 1),
        calls: int | None = None,
        allow_destructive: bool = False,
        split: Mapping[str, Any] | None = None,
        words: str = "",
        back_translated: bool = False,
        spares: float = SPARES,
        **knobs: Any,
    ) -> None:
        for option, value in (
            ("gates", gates),
            ("allow_destructive", allow_destructive),
            ("back_translated", back_translated),
        ):
            if not isinstance(value, bool):
                raise UsageError(f"the option {option!r} of the synthesizer 'grounded' is true or false, not {value!r}")
        for option, text in (("scenario", scenario), ("cache", cache or "")):
            if not isinstance(text, str):
                raise UsageError(f"the option {option!r} of the synthesizer 'grounded' is a text, not {text!r:.60}")
        if isinstance(seeds, str) or len(set(seeds)) < 2 or not all(type(one) is int for one in seeds):
            raise UsageError(f"the option 'seeds' of the synthesizer 'grounded' is two worlds or more, not {seeds!r}")
        if calls is not None and (type(calls) is not int or calls < 1):
            raise UsageError(f"the option 'calls' of the synthesizer 'grounded' is a number from 1, not {calls!r}")
        if words not in ("", SCRIPTED):
            raise UsageError(
                f"the option 'words' of the synthesizer 'grounded' is {SCRIPTED!r} or left out, not {words!r:.60}"
            )
        if back_translated and not gates:
            raise UsageError("the option 'back_translated' of the synthesizer 'grounded' is a gate, and gates = false")
        self.scripted, self.back_translated = words == SCRIPTED, back_translated
        if isinstance(spares, bool) or not isinstance(spares, int | float) or not 0 <= spares <= 1:
            raise UsageError(f"the option 'spares' of the synthesizer 'grounded' is a share in [0, 1], not {spares!r}")
        self.cache = Path(cache) if cache else None
        self.gates, self.scenario, self.seeds, self.calls = gates, scenario, tuple(seeds), calls
        self.allow_destructive, self.spares = allow_destructive, spares
        self.split = None if split is None else Split.from_json(split)
        self.knobs = Knobs.from_json(knobs)

    def plan(self, materials: Materials) -> list[Unit]:
        """A unit for each blueprint: its payload, with what is to be known where spares take the place of others."""
        environment = materials.environment
        told, reporter = self._explored(), materials.reporter
        self._check_cache(environment, materials.registry)
        knowledge = known(environment, registry=materials.registry, cache=self.cache, reporter=reporter, **told)
        if knowledge.explored.forbidden:
            left_out = ", ".join(knowledge.explored.forbidden)
            log.warning(
                "tools that may destroy something are not called",
                environment=environment.name,
                left_out=left_out,
                ways_out=WAYS_OUT,
            )
        if knowledge.explored.untold:
            untold = ", ".join(knowledge.explored.untold)
            log.warning(
                "tools that never executed, or never found anything",
                environment=environment.name,
                tools=untold,
                ways_out=TELLING,
            )
        name = _NO_WORD.sub("-", environment.name).strip("-")
        asked = materials.count
        more = spares_for(asked, self.spares) if self.gates else 0
        knobs = self.knobs
        if knobs.failing and not _tells_its_end(environment, self.scenario, materials.seed):
            knobs = evolve(knobs, failing=0.0)  # nothing could say that somebody rightly did nothing
        blueprints = plan_blueprints(evolve(materials, count=asked + more), knowledge, knobs, self.cache)
        spare = spare_places([one.kind for one in blueprints], asked)
        kinds = Counter(one.kind for place, one in enumerate(blueprints) if place not in spare)
        seed = materials.seed * 1_000_003
        return [
            Unit(
                f"{name}-{place:05}",
                place,
                seed + 10 * place,
                {**one.to_json(), SPARE: place in spare, ASKED: asked, OF_KIND: kinds[one.kind]},
            )
            for place, one in enumerate(blueprints)
        ]

    def already_known(self, environment: Environment, registry: Registry) -> Knowledge | None:
        """What planning goes by, where the cache holds it; ``None`` where it would have to be found out."""
        return already_known(environment, registry=registry, cache=self.cache, **self._explored())

    def _check_cache(self, environment: Environment, registry: Registry) -> None:
        """Raise :class:`callwright.UsageError` where what exploring comes to could not be kept: it takes minutes."""
        if self.cache is None:
            return
        place = next(one for one in (self.cache.absolute(), *self.cache.absolute().parents) if one.exists())
        try:
            with tempfile.TemporaryDirectory(dir=place):  # of its own: others may look at the same time
                return
        except OSError as error:
            if self.already_known(environment, registry) is not None:  # nothing is to be written
                return
            raise UsageError(
                f"the cache {self.cache} of the synthesizer 'grounded' cannot be made or written ({error.strerror}); "
                "name another folder (synthesis.synthesizer.cache), or none"
            ) from error

    def _explored(self) -> dict[str, Any]:
        """What is asked of exploring."""
        return {
            "scenario": self.scenario,
            "seeds": self.seeds,
            "calls": self.calls,
            "allow_destructive": self.allow_destructive,
        }

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        """The conversation of a blueprint, if the gates let it pass."""
        blueprint = Blueprint.from_json(unit.payload)
        silent = evolve(materials, teacher=None) if self.scripted else materials
        task = converse(blueprint, silent, unit.seed, unit.id)
        if isinstance(task, Rejected):
            return task
        passed: Sequence[str] = ()
        if self.gates:
            gated = gate(task, blueprint=blueprint, registry=materials.registry, gates=self._gates(materials))
            if gated.rejected is not None:
                return gated.rejected
            passed = gated.passed
        facts = {name: task.facts[name] for name in ("kind", "information", "family", "chain_tools", "recovers")}
        facts |= {name: unit.payload[name] for name in (SPARE, ASKED, OF_KIND) if name in unit.payload}
        return Accepted(materials.row(task), {**facts, "gates": list(passed)})

    def _gates(self, materials: Materials) -> Sequence[Gate]:
        if not self.back_translated:
            return GATES
        if materials.teacher is None:
            raise UsageError(
                "the option 'back_translated' of the synthesizer 'grounded' needs somebody who reads: name a "
                "teacher in the table [synthesis]"
            )
        return (*GATES, BackTranslated(materials.teacher))

    def compare(self, made: Sequence[Made]) -> Sequence[Rejected | None]:
        """Near-duplicates, and spares that nothing is missing for."""
        if not self.gates:
            return [None] * len(made)
        return compare_with_spares(made)

    @property
    def splits(self) -> Callable[[Iterable[Mapping[str, Any]], int], Sequence[str | Rejected]] | None:
        """What is held out; ``None`` where nothing is, so that nobody reads all rows to hear that."""
        return None if self.split is None else self.split.of


def _tells_its_end(environment: Environment, scenario: str, seed: int) -> bool:
    """Whether sessions tell what they have come to, as those of a server without a workspace do not."""
    session = environment.open(scenario, seed)
    try:
        return has(session, TellsGoalState)
    finally:
        session.close()
