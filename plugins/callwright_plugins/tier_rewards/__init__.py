"""TIER's rewards (arXiv 2605.16790): components, the full recipe, its ablations, and the released code's variant."""

from __future__ import annotations

from collections.abc import Iterator

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.tier_rewards"


@hookimpl
def callwright_reward_components() -> Iterator[Lazy]:
    """The properties that TIER checks, one component each."""
    yield Lazy("format", f"{_HERE}.components:Format", "the program is well formed (section 2.2, R_format)")
    yield Lazy("names", f"{_HERE}.components:Names", "every tool is an offered one (R_name)")
    yield Lazy(
        "parameters",
        f"{_HERE}.components:Parameters",
        "no parameter is missing or unexpected (R_param)",
        takes=f"{_HERE}.options:PenaltyOptions",
    )
    yield Lazy(
        "types",
        f"{_HERE}.components:Types",
        "every value has its parameter's type (R_dtype)",
        takes=f"{_HERE}.options:PenaltyOptions",
    )
    yield Lazy("execution", f"{_HERE}.components:Execution", "every call executes (R_exec)")
    yield Lazy("answer", f"{_HERE}.components:RightAnswer", "the returned values are the expected ones (R_answer)")
    yield Lazy(
        "strict-format", f"{_HERE}.components:StrictFormat", "well formed, nothing around the blocks, nothing dangling"
    )
    yield Lazy("abstention", f"{_HERE}.components:Abstention", "calls nothing only where that is right")


@hookimpl
def callwright_reward_recipes() -> Iterator[Lazy]:
    """The full reward, Table 2's ablations, and what the released code computes."""
    yield Lazy(
        "tier",
        f"{_HERE}.recipes:tier",
        "format 1, parse 3, execution 1, answer 5, over 10 (section 2.2)",
        takes=f"{_HERE}.options:PenaltyOptions",
    )
    yield Lazy(
        "tier-strict",
        f"{_HERE}.recipes:tier_strict",
        "tier, and nothing around the blocks, nothing dangling",
        takes=f"{_HERE}.options:PenaltyOptions",
    )
    yield Lazy(
        "tier-guarded",
        f"{_HERE}.recipes:tier_guarded",
        "tier with format credit only for a wrong abstention",
        takes=f"{_HERE}.options:PenaltyOptions",
    )
    yield Lazy("tier-released", f"{_HERE}.recipes:tier_released", "what the released code computes, defects included")
    yield Lazy("simple", f"{_HERE}.recipes:simple", "format and answer (Table 2, first row)")
    yield Lazy("tier-no-parse", f"{_HERE}.recipes:tier_no_parse", "format, execution, answer (Table 2, second row)")
    yield Lazy(
        "tier-no-execution",
        f"{_HERE}.recipes:tier_no_execution",
        "format, parse, answer (Table 2, third row)",
        takes=f"{_HERE}.options:PenaltyOptions",
    )
