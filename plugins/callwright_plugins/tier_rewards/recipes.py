"""TIER's recipes. R_total = R_format + R_parse + R_exec + R_answer over its maximum (section 2.2), here per term.

The maxima are 1, 3 (names, parameters and types with 1 each), 1 and 5. An ablation drops terms and is renormalised over
those that are left, whether the answer is right or not (section 4.3, Table 2). ``penalty`` is lambda_p, what one
mismatch costs of the parameters or of the types; the paper sets 0.25.
"""

from __future__ import annotations

from typing import Final

from callwright.walk.reward import RewardRecipe, Term
from callwright_plugins.tier_rewards import released
from callwright_plugins.tier_rewards.components import (
    PENALTY,
    Abstention,
    Execution,
    Format,
    Names,
    Parameters,
    RightAnswer,
    StrictFormat,
    Types,
)

#: What a cut-off completion earns at most. The paper does not say; the least total there is.
FLOOR: Final = 0.0


def tier(penalty: float = PENALTY) -> RewardRecipe:
    """The full reward. A failed format closes everything; one unknown name makes R_parse 0; R_answer needs R_exec."""
    return RewardRecipe(
        "tier",
        (
            Term(Format(), 1),
            Term(Names(), 1, requires=("format",)),
            Term(Parameters(penalty), 1, requires=("format", "names")),
            Term(Types(penalty), 1, requires=("format", "names")),
            Term(Execution(), 1, requires=("format",)),
            Term(RightAnswer(), 5, requires=("format", "execution")),
        ),
        summary="format 1, parse 3, execution 1, answer 5, over 10",
        floor=FLOOR,
    )


def tier_strict(penalty: float = PENALTY) -> RewardRecipe:
    """The full reward, whose format also takes nothing around the two blocks and references only to earlier calls."""
    terms = tuple(Term(StrictFormat(), 1) if term.name == "format" else term for term in tier(penalty).terms)
    summary = "tier with nothing around the blocks and no dangling reference"
    return RewardRecipe("tier-strict", terms, summary=summary, floor=FLOOR)


def tier_guarded(penalty: float = PENALTY) -> RewardRecipe:
    """The full reward, except that calling nothing where something was due earns the format's tenth and no more."""
    return RewardRecipe(
        "tier-guarded",
        (
            Term(Format(), 1),
            Term(Abstention(), 0, requires=("format",)),
            Term(Names(), 1, requires=("format", "abstention")),
            Term(Parameters(penalty), 1, requires=("format", "abstention", "names")),
            Term(Types(penalty), 1, requires=("format", "abstention", "names")),
            Term(Execution(), 1, requires=("format", "abstention")),
            Term(RightAnswer(), 5, requires=("format", "abstention", "execution")),
        ),
        summary="tier with format credit only for a wrong abstention",
        floor=FLOOR,
    )


def simple() -> RewardRecipe:
    """Format and answer only: the outcome-based baseline."""
    return RewardRecipe(
        "simple",
        (Term(Format(), 1), Term(RightAnswer(), 5, requires=("format",))),
        summary="format 1, answer 5, over 6",
        floor=FLOOR,
    )


def tier_no_parse() -> RewardRecipe:
    """Format, execution and answer."""
    return RewardRecipe(
        "tier-no-parse",
        (
            Term(Format(), 1),
            Term(Execution(), 1, requires=("format",)),
            Term(RightAnswer(), 5, requires=("format", "execution")),
        ),
        summary="format 1, execution 1, answer 5, over 7",
        floor=FLOOR,
    )


def tier_no_execution(penalty: float = PENALTY) -> RewardRecipe:
    """Format, parse and answer. The program is still executed to see its answer, but executing earns nothing."""
    return RewardRecipe(
        "tier-no-execution",
        (
            Term(Format(), 1),
            Term(Names(), 1, requires=("format",)),
            Term(Parameters(penalty), 1, requires=("format", "names")),
            Term(Types(penalty), 1, requires=("format", "names")),
            Term(RightAnswer(), 5, requires=("format",)),
        ),
        summary="format 1, parse 3, answer 5, over 9",
        floor=FLOOR,
    )


def tier_released() -> RewardRecipe:
    """What the released code computes on a parsed program; ``docs/divergences.md`` has the differences to the paper."""
    return RewardRecipe(
        "tier-released",
        (
            Term(released.Format(), 1),
            Term(released.Names(), 1, requires=("format",)),
            Term(released.Parameters(), 1, requires=("format",)),
            Term(released.Types(), 1, requires=("format",)),
            Term(released.Execution(), 1, requires=("format",)),
            Term(released.Answer(), 5, requires=("format", "execution")),
        ),
        summary="the released code's reward, with bare references resolved",
        truncated="as_is",
    )
