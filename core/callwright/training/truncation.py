"""Completions that a limit of tokens cut off, in a run: what they earned there, and when they are too many."""

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
