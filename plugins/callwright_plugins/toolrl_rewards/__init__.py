"""ToolRL's rewards (arXiv 2504.13958): as printed, guarded, section 5, and the released code's 16 variants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.toolrl_rewards"

_ABLATIONS: Final = {
    "length": "toolrl plus min(words of the thought / 512, 1) (section 5.1)",
    "dynamic-length": "toolrl plus a length reward whose target grows from 512 to 1,024 words (section 5.1)",
    "equal-max": "correctness in [-1, 1] (section 5.2)",
    "two-stage": "30 steps with format [0, 1] and correctness [-1, 1], then [0, 0.5] and [-3, 3] (section 5.2)",
    "dynamic-scale": "format within 2 - p, correctness within 2 + p (section 5.2)",
    "finegrained": "names and parameter names must agree exactly (section 5.3)",
    "intermediate": "a call's parameters agree as a whole or not at all (section 5.3)",
    "coarse": "all calls agree or nothing is earned (section 5.3)",
}
_VARIANTS: Final = (
    "default",
    "withlength",
    "schedulelength_only",
    "withlength_dynamic",
    "correctmax1",
    "twostage",
    "schedulereward",
    "refined",
    "intermediate",
    "coarse",
    "refined_correctmax1",
    "intermediate_refined",
    "coarse_schedulereward",
    "twostage_schedulereward",
    "schedulereward_dynlength",
    "correctmax1_schedulereward",
)


@hookimpl
def callwright_reward_components() -> Iterator[Lazy]:
    """ToolRL's rewards, one component each."""
    yield Lazy(
        "toolrl-format",
        f"{_HERE}.components:Format",
        "the blocks of the ground truth, in order (section 3.3)",
        takes=f"{_HERE}.options:FormatOptions",
    )
    yield Lazy(
        "toolrl-correctness",
        f"{_HERE}.components:Correctness",
        "agreement with the right calls (section 3.3)",
        takes=f"{_HERE}.options:CorrectnessOptions",
    )
    yield Lazy(
        "toolrl-length",
        f"{_HERE}.components:Length",
        "words of the thought over a target (section 5.1)",
        takes=f"{_HERE}.options:LengthOptions",
    )


@hookimpl
def callwright_reward_recipes() -> Iterator[Lazy]:
    """The paper's reward, its ablations, and what the released code computes."""
    yield Lazy(
        "toolrl",
        f"{_HERE}.recipes:toolrl",
        "format {0, 1} and correctness [-3, 3], optimal matching (section 3.3)",
        takes=f"{_HERE}.options:ToolRLOptions",
    )
    yield Lazy(
        "toolrl-guarded",
        f"{_HERE}.recipes:guarded",
        "toolrl with calls beyond those that are due counted",
        takes=f"{_HERE}.options:ToolRLOptions",
    )
    for change, summary in _ABLATIONS.items():
        yield Lazy(
            f"toolrl-{change}",
            f"{_HERE}.recipes:ablation",
            summary,
            options={"change": change},
            takes=f"{_HERE}.options:AblationOptions",
        )
    for variant in _VARIANTS:
        yield Lazy(
            f"toolrl-released-{variant}",
            f"{_HERE}.recipes:released",
            "what the released code computes, defects included",
            options={"variant": variant},
            takes=f"{_HERE}.options:ReleasedOptions",
        )
