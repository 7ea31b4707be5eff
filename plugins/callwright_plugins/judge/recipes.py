"""Recipes with a judge in them. Options that are not named here are those of the component ``judge``."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from callwright.plugins import Registry
from callwright.walk.reward import RewardComponent, RewardRecipe, Term


def judge(registry: Registry, **options: Any) -> RewardRecipe:
    """The judge and nothing else: for measuring a judge. A policy that trains on it learns what pleases the judge."""
    made: RewardComponent = registry.create("reward component", "judge", **options)
    return RewardRecipe("judge", (Term(made, 1, name="judge"),), summary="a judge's verdict alone", floor=0.0)


def tier_judged(registry: Registry, weight: float = 2.0, **options: Any) -> RewardRecipe:
    """The full reward of ``tier`` (its weights sum to 10) and a judge of ``weight`` beside it.

    The judge is asked only where the format holds and every call executed: what can be verified is not a matter of
    opinion, a request that is not made costs nothing, and no verdict makes up for a failed call.
    """
    tier: RewardRecipe = registry.create("reward recipe", "tier")
    made: RewardComponent = registry.create("reward component", "judge", **options)
    return evolve(
        tier,
        name="tier-judged",
        terms=(*tier.terms, Term(made, weight, requires=("format", "execution"), name="judge")),
        summary="tier, and a judge where every call executed",
    )
