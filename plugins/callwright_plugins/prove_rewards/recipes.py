"""Prove's recipe (equation 5), the rows of Table 5, and compositions with other recipes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from attrs import evolve, frozen

from callwright.errors import Abstention as NotStated
from callwright.errors import UnknownName
from callwright.plugins import Registry
from callwright.walk.attempt import Attempt
from callwright.walk.reward import RewardComponent, RewardRecipe, Term
from callwright.walk.tasks import Task
from callwright_plugins.prove_rewards.alignment import Matching
from callwright_plugins.prove_rewards.components import (
    Abstention,
    ArgumentValues,
    Coverage,
    Efficiency,
    NameBonus,
    Validity,
)
from callwright_plugins.prove_rewards.final_state import FinalState
from callwright_plugins.prove_rewards.truth import TRUTHS, calls_due

#: What a cut-off completion earns at most. The paper does not say; totals below it (a penalty and no more) stay.
FLOOR: Final = 0.0
#: w of equation 5.
WEIGHTS: Final = {"validity": 0.5, "coverage": 0.5, "efficiency": 0.15, "name": 0.2, "argument": 0.1}
#: Table 5: what each row leaves out; the last keeps everything and flattens the budget.
ABLATIONS: Final = {
    "no-validity": "validity",
    "no-coverage": "coverage",
    "no-efficiency": "efficiency",
    "no-name": "name",
    "no-argument": "argument",
    "flat-budget": "",
}


@frozen(slots=False)
class ProveRecipe(RewardRecipe):
    """Weights as printed, not normalised. Terms and abstention exclude each other, so that they never add up."""

    @property
    def high(self) -> float:
        """The largest total: that of the weighted terms, or the 1 of a right abstention."""
        return max(1.0, super().high - 1.0)

    def check(self, tasks: Iterable[Task]) -> None:
        """Read the steps of every task, before training.

        Raises :class:`callwright.errors.DataError` for the first bad one.
        """
        for task in tasks:
            calls_due(task)

    def check_attempt(self, attempt: Attempt) -> None:
        """Raises :class:`callwright.errors.DataError` for a task without steps."""
        with suppress(NotStated):  # of a log without a truth, where the terms abstain
            TRUTHS.of(attempt.task)


def _prove(name: str, summary: str, matching: Matching, alpha: float, beta: float, without: str = "") -> ProveRecipe:
    components: dict[str, RewardComponent] = {
        "validity": Validity(),
        "coverage": Coverage(matching),
        "efficiency": Efficiency(alpha, beta),
        "name": NameBonus(),
        "argument": ArgumentValues(matching),
    }
    terms = [Term(component, WEIGHTS[key]) for key, component in components.items() if key != without]
    return ProveRecipe(name, (*terms, Term(Abstention(), 1.0)), normalise=False, summary=summary, floor=FLOOR)


def prove(matching: Matching = "first-unused", alpha: float = 0.5, beta: float = 0.5) -> ProveRecipe:
    """Equation 5 with the printed weights."""
    return _prove("prove", "validity, coverage, efficiency, names and arguments", matching, alpha, beta)


def ablation(change: str, matching: Matching = "first-unused", alpha: float = 0.5, beta: float = 0.5) -> ProveRecipe:
    """A row of Table 5: one term zeroed and the other weights as they are, or beta = 0."""
    if change not in ABLATIONS:
        raise UnknownName("ablation of Prove", change, ABLATIONS)
    beta = 0.0 if change == "flat-budget" else beta
    return _prove(f"prove-{change}", f"prove, {change}", matching, alpha, beta, ABLATIONS[change])


def prove_state(
    weight: float = 1.0, matching: Matching = "first-unused", exact: bool = False, partial: bool = False
) -> ProveRecipe:
    """Prove, and ``weight`` for leaving the right state; ``exact`` and ``partial`` as in :class:`FinalState`."""
    base = prove(matching)
    return evolve(base, name="prove-state", terms=(*base.terms, Term(FinalState(exact, partial), weight)))


def state(exact: bool = False, partial: bool = False) -> RewardRecipe:
    """1 for leaving the right state, else 0 (or, ``partial``, the share of rows that are right)."""
    return RewardRecipe("state", (Term(FinalState(exact, partial), 1.0),), summary="the final state alone", floor=FLOOR)


def with_efficiency(
    registry: Registry, base: str = "tier", weight: float = 0.15, alpha: float = 0.5, beta: float = 0.5
) -> RewardRecipe:
    """Any registered recipe with the efficiency penalty at this effective weight, on the scale of its totals."""
    recipe: RewardRecipe = registry.create("reward recipe", base)
    scale = 1.0
    for term in recipe.terms:
        if term.weight:
            scale = term.weight / recipe.weights[term.name]
            break
    return recipe.with_terms(Term(Efficiency(alpha, beta), weight * scale), name=f"{base}-efficiency")
