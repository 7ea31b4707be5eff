"""Rewards that read what calls cost: money, time, what cannot be undone, and room under a limit (TIER, section 7)."""

from __future__ import annotations

from collections.abc import Iterator

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.cost_rewards"


@hookimpl
def callwright_reward_components() -> Iterator[Lazy]:
    """One component for each kind of cost, and execution that does not pay for hazards."""
    yield Lazy(
        "cost",
        f"{_HERE}.components:Cost",
        "no more money than the task needs is spent on calls",
        takes=f"{_HERE}.options:CostOptions",
    )
    yield Lazy(
        "latency",
        f"{_HERE}.components:Latency",
        "no more seconds than the task needs are spent on calls",
        takes=f"{_HERE}.options:LatencyOptions",
    )
    yield Lazy(
        "irreversible",
        f"{_HERE}.irreversible:Irreversible",
        "nothing that cannot be undone is done without need",
        takes=f"{_HERE}.options:IrreversibleOptions",
    )
    yield Lazy("rate-limits", f"{_HERE}.components:RateLimits", "no room under a limit of rates is wasted")
    yield Lazy(
        "recovery", f"{_HERE}.components:Recovery", "every call executes, or is made again where a hazard hit it"
    )


@hookimpl
def callwright_reward_recipes() -> Iterator[Lazy]:
    """Any recipe with the costs behind its answer."""
    yield Lazy(
        "tier-costs",
        f"{_HERE}.recipes:with_costs",
        "tier, and the costs of a right answer",
        takes=f"{_HERE}.options:WithCostsOptions",
    )
    yield Lazy(
        "state-costs",
        f"{_HERE}.recipes:with_costs",
        "the final state, and its costs",
        options={"base": "state"},
        takes=f"{_HERE}.options:WithCostsOptions",
    )
