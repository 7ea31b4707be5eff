"""Completions that a limit of tokens cut off: what they earned in a run, and when they are too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from callwright.walk.reward import RewardRecipe

#: Steps over which the share of cut-off samples is averaged …
WINDOW: Final = 5
#: … and the share above which something is wrong: the limit is too short, or the policy does not learn to stop.
CUT: Final = 0.1


def alarm_of_truncation(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The alarm of the newest of the metrics ``rows`` (oldest first), or ``None``.

    Raised when the mean of ``truncated`` over the last :data:`WINDOW` rows is above :data:`CUT`. Rows that do not know
    the share are not counted, and fewer rows than that raise nothing.
    """
    shares = [row.get("truncated") for row in rows[-WINDOW:]]
    known = [share for share in shares if share is not None]
    if len(known) < WINDOW:
        return None
    mean = sum(known) / WINDOW
    if mean <= CUT:
        return None
    return (
        f"{mean:.0%} of the samples of the last {WINDOW} steps were cut off by a limit of tokens, more than {CUT:.0%}: "
        "raise the limit if good completions need more, or let the reward punish what does not end "
        '(truncated = "floor" in [reward])'
    )


def cut_off_in_words(result: Mapping[str, Any], remedy: str = "raise the sampler's limit of tokens") -> list[str]:
    """What is to be said of a result (:func:`callwright.training.summary.summarise`) with many answers cut off.

    Up to a share of :data:`CUT` nothing is. ``remedy`` says how the limit of tokens is raised.
    """
    cut, n = result.get("cut_off"), result.get("n")
    if not isinstance(cut, Mapping) or type(n) is not int or n < 1:
        return []
    whole, prompts, context, tokens = (
        value if type(value) is int else 0 for value in map(cut.get, ("n", "prompts", "context", "tokens"))
    )
    said = []
    if prompts > CUT * n:
        said.append(
            f"{prompts:,} of {n:,} prompts left no room in the model's context, so that nothing was written: offer "
            "fewer tools or examples, or take a model with a longer context. Their failures say nothing of the form"
        )
    if context > CUT * n:
        said.append(
            f"{context:,} of {n:,} answers were cut off at the end of the model's context, whatever limits of tokens "
            "say: take a model with a longer one or, of several turns, allow fewer"
        )
    if (limited := whole - prompts - context) > CUT * n:
        at = f" at {tokens:,} tokens" if tokens else " by a limit of tokens"
        said.append(f"{limited:,} of {n:,} answers were cut off{at}: {remedy}. Their failures say little of the form")
    return said


def cut_off_terms(reward: RewardRecipe) -> dict[str, Any]:
    """What a cut-off completion earns in a run, as the manifest keeps it: the policy, and the floor if that is it."""
    policy = reward.truncation
    return {"truncated": policy, **({"floor": reward.floor} if policy == "floor" else {})}


def as_in_run(reward: RewardRecipe, manifest: Mapping[str, Any]) -> RewardRecipe:
    """The reward with what a cut-off completion earned in the run of a manifest.

    Runs from before there was a choice paid what the text was worth.
    """
    kept = manifest.get("reward")
    terms = kept if isinstance(kept, Mapping) else {}
    floor = terms.get("floor")
    return evolve(reward, truncated=terms.get("truncated", "as_is"), floor=reward.floor if floor is None else floor)
