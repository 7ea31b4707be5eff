"""Sound: what was asked for earns the reward and nothing else does, by the verdict of ``callwright evaluate``."""

from __future__ import annotations

from typing import Any, Final

from callwright.training.synthesis.units import Rejected
from callwright_plugins.synthesis.gates.attempts import comes_right, gold_attempt, is_right
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.mutants import Mutant, mutants, superfluous
from callwright_plugins.synthesis.gates.running import Run, shown_state

#: Mutants that have to miss.
LEAST: Final = 4
#: Mutants that are tried at most, until so many of them miss.
_TRIED: Final = 24


class Sound:
    """The gate ``sound``."""

    name: Final = "sound"

    def __call__(self, case: Case) -> Rejected | None:
        """A reference that misses, a task that is done before it begins, or a mutant that reaches the goal."""
        return self._reference(case) or self._nothing(case) or self._mutants(case) or self._reward(case)

    def _reference(self, case: Case) -> Rejected | None:
        gold = case.gold
        if is_right(case, case.turns):
            return None
        if gold.reached is not None and not gold.reached.equal:
            shown = [str(one) for one in gold.reached.differences[:4]]
            return Rejected(self.name, "the reference misses the goal", {"differences": shown})
        return Rejected(
            self.name,
            "the reference does not come to the answer",
            {"answer": _short(case.task.answer.values), "returned": _short(gold.values[-3:])},
        )

    def _nothing(self, case: Case) -> Rejected | None:
        earns = is_right(case, ())
        if case.abstains and not earns:
            return Rejected(self.name, "doing nothing is right, and earns nothing", {"kind": case.kind})
        if not case.abstains and earns:
            return Rejected(self.name, "doing nothing earns it", {"kind": case.kind})
        return None

    def _mutants(self, case: Case) -> Rejected | None:
        if case.abstains:
            one = superfluous(case)
            if one is not None and comes_right(case, one.turns):
                return Rejected(self.name, "a call too many earns it", {"mutant": one.what})
            return None
        missed, tried = 0, []
        for number, one in enumerate(mutants(case)):
            if missed >= LEAST or number >= _TRIED:
                break
            tried.append(one.what)
            if not comes_right(case, one.turns):
                missed += 1
            elif _matters(case, one, case.run(one.turns)):
                return Rejected(self.name, "a mutant earns it", {"kind": one.kind, "mutant": one.what})
        if missed < LEAST:
            return Rejected(self.name, "too few mutants miss", {"missed": missed, "tried": tried[:8]})
        return None

    def _reward(self, case: Case) -> Rejected | None:
        """The reference as an episode, with the task's user, under the recipe that fits. Calls that fail on purpose
        cost what failed calls cost, so that no more than the goal is asked of these.
        """
        recipe = recipe_of(case)
        if recipe is None:
            return None
        scored = case.registry.create("reward recipe", recipe).score_attempt(gold_attempt(case))
        if scored.masked is None and scored.total < 1.0 - 1e-9:
            evidence = {"total": scored.total, "why": scored.explain()[:400]}
            return Rejected(self.name, f"the reference does not earn all of {recipe!r}", evidence)
        return None


def _matters(case: Case, one: Mutant, found: Run) -> bool:
    """Whether a mutant that earns the reward should not: what came of it is something else than was asked for.

    Where the goal shows a state, or is that of the reference, the same state is the same. A goal that is stated may
    leave a value open, but not which thing it is, nor that something is done at all.
    """
    if case.asks:
        return one.kind == "entity" and one.last
    if not case.has_goal or shown_state(case.task.facts.get("goal")) is not None:
        return False
    return one.kind not in ("value", "tool") and not found.leaves_as(case.gold)


def recipe_of(case: Case) -> str | None:
    """The recipe that the reference has to earn all of; ``None`` where no recipe fits."""
    if not case.turns:
        return None
    if case.has_goal:
        return "state" if any(record.outcome.failed for record in case.gold.records) else "worlds"
    return "tier" if case.task.user is None and len(case.turns) == 1 else None


def _short(values: Any) -> list[str]:
    return [f"{value!r:.120}" for value in values]
