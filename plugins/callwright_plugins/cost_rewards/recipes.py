"""Recipes: any registered one, and what its answer cost. Costs are looked at only where the answer is right."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from callwright.errors import UsageError
from callwright.plugins import Registry
from callwright.walk.reward import RewardRecipe, Term
from callwright_plugins.cost_rewards.components import Cost, Latency, RateLimits, Recovery
from callwright_plugins.cost_rewards.irreversible import Irreversible

#: Terms that say whether the task is solved, the first that a recipe has.
_ANSWERS: Final = ("answer", "final_state")


def with_costs(
    registry: Registry,
    base: str = "tier",
    cost: float = 0.5,
    latency: float = 0.5,
    irreversible: float = 1.0,
    rate_limits: float = 0.5,
    slack_cents: int = 0,
    slack_seconds: int = 0,
    penalty: float = 0.5,
) -> RewardRecipe:
    """A recipe and terms for costs behind its answer; weights are on the scale of the recipe's own, and 0 leaves out.

    Where it has a term ``execution``, that becomes :class:`.components.Recovery`: a call that a hazard hit and that was
    made again is no failure. Raises :class:`callwright.UsageError` for a recipe without an answer or a final state, and
    for weights below 0.
    """
    recipe: RewardRecipe = registry.create("reward recipe", base)
    names = [term.name for term in recipe.terms]
    gate = next((name for name in _ANSWERS if name in names), None)
    if gate is None:
        raise UsageError(
            f"reward recipe {base!r} has no term {' or '.join(map(repr, _ANSWERS))} behind which costs could stand; "
            "without one, doing nothing would be cheapest"
        )
    weights = {"cost": cost, "latency": latency, "irreversible": irreversible, "rate_limits": rate_limits}
    for name, weight in weights.items():
        if not weight >= 0:
            raise UsageError(f"{name} is {weight!r:.40}; a weight is a number from 0 on")
    terms = [evolve(term, component=Recovery()) if term.name == "execution" else term for term in recipe.terms]
    components = (Cost(slack_cents), Latency(slack_seconds), Irreversible(penalty), RateLimits())
    terms += [
        Term(component, weights[component.name], requires=(gate,))
        for component in components
        if weights[component.name]
    ]
    return evolve(recipe, name=f"{base}-costs", terms=tuple(terms), summary=f"{base}, and the costs of its answer")
