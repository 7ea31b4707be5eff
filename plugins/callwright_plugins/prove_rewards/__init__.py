"""Prove's rewards (arXiv 2606.03892, section 3.3), the ablations of Table 5, and what composes with other recipes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.prove_rewards"

_ABLATIONS: Final = {
    "no-validity": "prove without validity",
    "no-coverage": "prove without coverage",
    "no-efficiency": "prove without the efficiency penalty",
    "no-name": "prove without the tool-name reward",
    "no-argument": "prove without argument values",
    "flat-budget": "prove with beta = 0: the budget is the number of true calls",
}


@hookimpl
def callwright_reward_components() -> Iterator[Lazy]:
    """What Prove checks, one component each, and the final state."""
    yield Lazy(
        "prove-validity", f"{_HERE}.components:Validity", "name, required parameters, execution: thirds of a call"
    )
    yield Lazy(
        "prove-coverage",
        f"{_HERE}.components:Coverage",
        "true steps covered in dependency order (equation 1)",
        takes=f"{_HERE}.options:MatchingOptions",
    )
    yield Lazy(
        "efficiency",
        f"{_HERE}.components:Efficiency",
        "a penalty for calls beyond a budget (equation 2)",
        takes=f"{_HERE}.options:EfficiencyOptions",
    )
    yield Lazy("prove-name", f"{_HERE}.components:NameBonus", "share of calls whose tool is a true one (equation 3)")
    yield Lazy(
        "prove-argument",
        f"{_HERE}.components:ArgumentValues",
        "agreeing argument values (equation 4)",
        takes=f"{_HERE}.options:MatchingOptions",
    )
    yield Lazy("prove-abstention", f"{_HERE}.components:Abstention", "calls nothing where nothing is due")
    yield Lazy(
        "final-state",
        f"{_HERE}.final_state:FinalState",
        "the state is the one that the reference program leaves",
        takes=f"{_HERE}.options:FinalStateOptions",
    )


@hookimpl
def callwright_reward_recipes() -> Iterator[Lazy]:
    """Prove, Table 5, and compositions."""
    yield Lazy(
        "prove",
        f"{_HERE}.recipes:prove",
        "validity .5, coverage .5, efficiency .15, names .2, arguments .1",
        takes=f"{_HERE}.options:ProveOptions",
    )
    for change, summary in _ABLATIONS.items():
        yield Lazy(
            f"prove-{change}",
            f"{_HERE}.recipes:ablation",
            summary,
            options={"change": change},
            takes=f"{_HERE}.options:AblationOptions",
        )
    yield Lazy(
        "prove-state",
        f"{_HERE}.recipes:prove_state",
        "prove and the final state",
        takes=f"{_HERE}.options:ProveStateOptions",
    )
    yield Lazy(
        "tier-efficiency",
        f"{_HERE}.recipes:with_efficiency",
        "tier and Prove's efficiency penalty",
        takes=f"{_HERE}.options:WithEfficiencyOptions",
    )
    yield Lazy("state", f"{_HERE}.recipes:state", "the final state alone", takes=f"{_HERE}.options:FinalStateOptions")
