"""ToolRL's recipes: what the paper prints, its ablations of section 5, and the 16 variants of the released code."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from callwright.errors import UnknownName
from callwright.walk.reward import RewardComponent, Term
from callwright_plugins.toolrl_rewards import components as ours
from callwright_plugins.toolrl_rewards import released as theirs
from callwright_plugins.toolrl_rewards import scales
from callwright_plugins.toolrl_rewards.recipe import ToolRLRecipe
from callwright_plugins.toolrl_rewards.released_text import TRUTHS as RELEASED_TRUTHS
from callwright_plugins.toolrl_rewards.scales import Scale, Target


class Flags(NamedTuple):
    """The released switches that a variant sets."""

    length: bool = False
    dynamic_length: bool = False
    equal_max: bool = False
    two_stage: bool = False
    schedule: bool = False
    granularity: theirs.Granularity = "default"


#: The names are those of the reference scores. ``schedulelength_only`` sets a switch that the released code does not
#: read unless the length reward is on, so it is the default.
VARIANTS: Final[dict[str, Flags]] = {
    "default": Flags(),
    "withlength": Flags(length=True),
    "schedulelength_only": Flags(),
    "withlength_dynamic": Flags(length=True, dynamic_length=True),
    "correctmax1": Flags(equal_max=True),
    "twostage": Flags(two_stage=True),
    "schedulereward": Flags(schedule=True),
    "refined": Flags(granularity="refined"),
    "intermediate": Flags(granularity="intermediate"),
    "coarse": Flags(granularity="coarse"),
    "refined_correctmax1": Flags(equal_max=True, granularity="refined"),
    "intermediate_refined": Flags(granularity="intermediate_refined"),
    "coarse_schedulereward": Flags(schedule=True, granularity="coarse"),
    "twostage_schedulereward": Flags(two_stage=True, schedule=True),
    "schedulereward_dynlength": Flags(schedule=True, length=True, dynamic_length=True),
    "correctmax1_schedulereward": Flags(equal_max=True, schedule=True),
}


def released(
    variant: str = "default",
    matching: Literal["greedy", "optimal"] = "greedy",
    pairs: Literal["same-name", "any"] = "same-name",
    names: Literal["multiset", "set"] = "multiset",
) -> ToolRLRecipe:
    """What the released code computes under the switches of a variant."""
    flags = VARIANTS.get(variant)
    if flags is None:
        raise UnknownName("released variant", variant, VARIANTS)
    format_scale = scales.released_format(two_stage=flags.two_stage, schedule=flags.schedule)
    correct_scale = scales.released_correct(
        largest=1.0 if flags.equal_max else 3.0, two_stage=flags.two_stage, schedule=flags.schedule
    )
    components: list[RewardComponent] = [
        theirs.ReleasedFormat(format_scale),
        theirs.ReleasedCorrectness(correct_scale, flags.granularity, matching, pairs, names),
    ]
    if flags.length:
        target = scales.RELEASED_DYNAMIC_LENGTH if flags.dynamic_length else scales.RELEASED_LENGTH
        components.append(theirs.ReleasedLength(target))
    return ToolRLRecipe(
        f"toolrl-released-{variant}",
        tuple(Term(component) for component in components),
        normalise=False,
        summary="what ToolRL's released scorer computes",
        truncated="as_is",
        truths=RELEASED_TRUTHS,
        scheduled=flags.two_stage or flags.schedule or flags.dynamic_length,
    )


def _paper(
    name: str,
    summary: str,
    matching: Literal["optimal", "greedy"],
    pairs: Literal["any", "same-name"],
    extra_calls: Literal["counted", "free"],
    *,
    granularity: ours.Granularity = "full",
    format_scale: Scale = scales.FORMAT,
    correct_scale: Scale = scales.CORRECT,
    target: Target | None = None,
) -> ToolRLRecipe:
    components: list[RewardComponent] = [
        ours.Format(format_scale),
        ours.Correctness(correct_scale, granularity, matching, pairs, extra_calls),
    ]
    if target is not None:
        components.append(ours.Length(target))
    moving = (format_scale.range_at, correct_scale.range_at, target.words_at if target is not None else None)
    return ToolRLRecipe(
        name,
        tuple(Term(component) for component in components),
        normalise=False,
        summary=summary,
        floor=correct_scale.low,  # what a cut-off completion earns at most: no call agrees, and nothing for its blocks
        truths=ours.TRUTHS,
        scheduled=any(part is not None for part in moving),
    )


def toolrl(
    matching: Literal["optimal", "greedy"] = "optimal",
    pairs: Literal["any", "same-name"] = "any",
    extra_calls: Literal["counted", "free"] = "counted",
) -> ToolRLRecipe:
    """Section 3.3: format in [0, 1] and correctness in [-3, 3]."""
    return _paper("toolrl", "format [0, 1] and correctness [-3, 3]", matching, pairs, extra_calls)


def toolrl_as_printed(
    matching: Literal["optimal", "greedy"] = "optimal", pairs: Literal["any", "same-name"] = "any"
) -> ToolRLRecipe:
    """Section 3.3 to the letter: extra calls cost nothing but their names."""
    return _paper("toolrl-as-printed", "toolrl, extra calls free", matching, pairs, "free")


def ablation(
    change: str,
    matching: Literal["optimal", "greedy"] = "optimal",
    pairs: Literal["any", "same-name"] = "any",
    extra_calls: Literal["counted", "free"] = "counted",
    switch: int = 30,
) -> ToolRLRecipe:
    """One change of section 5. ``switch`` is the step s of the two stages."""
    name, options = f"toolrl-{change}", (matching, pairs, extra_calls)
    if change == "length":
        return _paper(name, "toolrl + min(words / 512, 1)", *options, target=scales.LENGTH)
    if change == "dynamic-length":
        return _paper(name, "toolrl + min(words / 512 (1 + p), 1)", *options, target=scales.DYNAMIC_LENGTH)
    if change == "equal-max":
        return _paper(name, "correctness in [-1, 1]", *options, correct_scale=scales.EQUAL_CORRECT)
    if change == "two-stage":
        first, second = scales.two_stage(switch)
        return _paper(name, f"other scales from step {switch} on", *options, format_scale=first, correct_scale=second)
    if change == "dynamic-scale":
        first, second = scales.DYNAMIC_FORMAT, scales.DYNAMIC_CORRECT
        return _paper(name, "scales that move with training", *options, format_scale=first, correct_scale=second)
    if change in ("finegrained", "intermediate", "coarse"):
        return _paper(name, f"{change} correctness", *options, granularity=change)  # type: ignore[arg-type]
    raise UnknownName("ablation of ToolRL", change, ABLATIONS)


#: Section 5: 5.1 length, 5.2 scale, 5.3 granularity.
ABLATIONS: Final = (
    "length",
    "dynamic-length",
    "equal-max",
    "two-stage",
    "dynamic-scale",
    "finegrained",
    "intermediate",
    "coarse",
)
