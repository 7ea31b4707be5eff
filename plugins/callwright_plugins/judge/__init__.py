"""A judge: a model that scores attempts by a rubric, as a reward component, with what tells whether to trust it."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.judge"
_REACHES = f"{_HERE}.component:reaches"


@hookimpl
def callwright_reward_components() -> Iterable[Lazy]:
    """Register the component; no server is asked before an attempt is judged."""
    yield Lazy(
        "judge",
        f"{_HERE}.component:Judge",
        summary="a model's verdict by a rubric: votes, reasons as evidence, failures masked",
        reaches=_REACHES,
        stand_in=f"{_HERE}.stand_in:judge",
        takes=f"{_HERE}.options:JudgeOptions",
    )


@hookimpl
def callwright_reward_recipes() -> Iterable[Lazy]:
    """Register the judge alone, and behind what can be verified."""
    yield Lazy(
        "judge",
        f"{_HERE}.recipes:judge",
        summary="the judge alone: a ceiling for comparison, no reward to train on",
        reaches=_REACHES,
        stand_in=f"{_HERE}.stand_in:judge_recipe",
        takes=f"{_HERE}.options:JudgeOptions",
    )
    yield Lazy(
        "tier-judged",
        f"{_HERE}.recipes:tier_judged",
        summary="tier, and a judge that is asked only where every call executed",
        reaches=_REACHES,
        stand_in=f"{_HERE}.stand_in:tier_judged_recipe",
        takes=f"{_HERE}.options:TierJudgedOptions",
    )


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright judge-probe``."""
    yield Lazy("judge-probe", f"{_HERE}.command:judge_probe", "is a judge swayed by order, length or claims?")
