"""ToolRL's recipes: what the paper prints, the same guarded, section 5, and the 16 variants of the released code."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from callwright.errors import UnknownName, UsageError
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


#: What options of these recipes may be.
_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "matching": ("optimal", "greedy"),
    "pairs": ("any", "same-name"),
    "names": ("multiset", "set"),
    "extra_calls": ("free", "counted"),
}


def _check_options(**options: object) -> None:
    """Raise :class:`callwright.UsageError` for a value that an option does not take."""
    for name, value in options.items():
        if value not in _CHOICES[name]:
            known = " or ".join(repr(choice) for choice in _CHOICES[name])
            raise UsageError(f"option {name!r} of a reward of ToolRL is {known}, not {value!r}")


def released(
    variant: str = "default",
    matching: Literal["greedy", "optimal"] = "greedy",
    pairs: Literal["same-name", "any"] = "same-name",
    names: Literal["multiset", "set"] = "multiset",
    first_step: int = 0,
) -> ToolRLRecipe:
    """What the released code computes under the switches of a variant.

    ``first_step`` >= 0 is what its schedules call the first step of a training: 1 in the released trainer. Callwright's
    trainers count from 0, so this number is added to their step; 0 takes steps as they are given, as rows have them.
    """
    flags = VARIANTS.get(variant)
    if flags is None:
        raise UnknownName("released variant", variant, VARIANTS)
    _check_options(matching=matching, pairs=pairs, names=names)
    if type(first_step) is not int or first_step < 0:
        raise UsageError(f"option 'first_step' of toolrl-released-{variant} is a step, 0 or more, not {first_step!r}")
    format_scale = scales.released_format(two_stage=flags.two_stage, schedule=flags.schedule, first_step=first_step)
    correct_scale = scales.released_correct(
        largest=1.0 if flags.equal_max else 3.0,
        two_stage=flags.two_stage,
        schedule=flags.schedule,
        first_step=first_step,
    )
    components: list[RewardComponent] = [
        theirs.ReleasedFormat(format_scale),
        theirs.ReleasedCorrectness(correct_scale, flags.granularity, matching, pairs, names),
    ]
    if flags.length:
        moving = scales.released_dynamic_length(first_step)
        components.append(theirs.ReleasedLength(moving if flags.dynamic_length else scales.RELEASED_LENGTH))
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
    extra_calls: Literal["free", "counted"],
    *,
    granularity: ours.Granularity = "full",
    format_scale: Scale = scales.FORMAT,
    correct_scale: Scale = scales.CORRECT,
    target: Target | None = None,
) -> ToolRLRecipe:
    _check_options(matching=matching, pairs=pairs, extra_calls=extra_calls)
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
    matching: Literal["optimal", "greedy"] = "optimal", pairs: Literal["any", "same-name"] = "any"
) -> ToolRLRecipe:
    """Section 3.3 as printed: format in {0, 1} and correctness in [-3, 3]; extra calls cost nothing but their names."""
    return _paper("toolrl", "format {0, 1} and correctness [-3, 3]", matching, pairs, "free")


def guarded(
    matching: Literal["optimal", "greedy"] = "optimal", pairs: Literal["any", "same-name"] = "any"
) -> ToolRLRecipe:
    """``toolrl`` with a maximum that grows with calls beyond those that are due. Not in the paper."""
    return _paper("toolrl-guarded", "toolrl, extra calls counted", matching, pairs, "counted")


def ablation(
    change: str,
    matching: Literal["optimal", "greedy"] = "optimal",
    pairs: Literal["any", "same-name"] = "any",
    extra_calls: Literal["free", "counted"] = "free",
    switch: int = 30,
) -> ToolRLRecipe:
    """One change of section 5 to ``toolrl``, as printed.

    ``extra_calls="counted"`` makes the same change to ``toolrl-guarded``; ``coarse`` takes no such option, since one
    call too many loses everything there. ``switch`` is s of the two stages: how many steps the first one has.
    """
    name, options = f"toolrl-{change}", (matching, pairs, extra_calls)
    if change == "length":
        return _paper(name, "toolrl + min(words / 512, 1)", *options, target=scales.LENGTH)
    if change == "dynamic-length":
        return _paper(name, "toolrl + min(words / 512 (1 + p), 1)", *options, target=scales.DYNAMIC_LENGTH)
    if change == "equal-max":
        return _paper(name, "correctness in [-1, 1]", *options, correct_scale=scales.EQUAL_CORRECT)
    if change == "two-stage":
        if type(switch) is not int or switch < 0:
            raise UsageError(f"option 'switch' of {name} is a number of steps, 0 or more, not {switch!r}")
        first, second = scales.two_stage(switch)
        return _paper(name, f"other scales after {switch} steps", *options, format_scale=first, correct_scale=second)
    if change == "dynamic-scale":
        first, second = scales.DYNAMIC_FORMAT, scales.DYNAMIC_CORRECT
        return _paper(name, "scales that move with training", *options, format_scale=first, correct_scale=second)
    if change == "coarse" and extra_calls != "free":
        raise UsageError(f"{name} has no extra_calls={extra_calls!r}: one call too many loses everything there")
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
