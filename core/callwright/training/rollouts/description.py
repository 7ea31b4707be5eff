"""A step of training in figures: what is kept of each sampled episode, and the row of metrics that they make.

What is kept is small and plain, so that processes that sample together can send it to one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from callwright.walk.undeclared import ToolCalls

if TYPE_CHECKING:
    from callwright.training.verdicts import Verdict
    from callwright.walk.attempt import Attempt
    from callwright.walk.reward import Reward


@frozen(kw_only=True)
class Observed:
    """What a row of metrics says of one sampled episode.

    ``total`` is its reward, ``None`` where it is masked, and ``scores`` those of its components. ``length`` counts the
    tokens that the policy wrote. ``calls`` are those of its program, ``None`` where none parsed; ``depth`` is how many
    its task needs. ``tools`` is what :meth:`callwright.walk.undeclared.ToolCalls.to_row` says of what it executed.
    """

    total: float | None
    scores: Mapping[str, float]
    masked_cut: bool
    depth: int
    executed: bool
    answered: bool
    calls: int | None
    length: int
    truncated: bool
    thought_words: int | None
    tools: Mapping[str, Any] = field(factory=dict)


def observe(attempt: Attempt, reward: Reward, verdict: Verdict, *, length: int, truncated: bool) -> Observed:
    """What is kept of an attempt with its reward and verdict; ``length`` in tokens that the policy wrote."""
    counted = ToolCalls()
    counted.add(attempt)
    return Observed(
        total=reward.total,
        scores={name: weighted.score.value for name, weighted in reward.scores.items()},
        masked_cut=reward.masked_cut,
        depth=attempt.task.depth,
        executed=attempt.trace is not None and attempt.trace.executed,
        answered=verdict.answer,
        calls=None if attempt.program is None else len(attempt.program.calls),
        length=length,
        truncated=truncated,
        thought_words=verdict.thought_words,
        tools=counted.to_row(),
    )


def described(observed: Sequence[Observed]) -> dict[str, Any]:
    """The part of a metrics row that is about the rollouts. Masked ones are counted and left out of every mean."""
    known = [one for one in observed if one.total is not None]
    totals = [one.total or 0.0 for one in known]
    mean = _mean(totals)
    scores: dict[str, list[float]] = {}
    for one in known:
        for name, value in one.scores.items():
            scores.setdefault(name, []).append(value)
    cut = sum(one.masked_cut for one in observed)
    calls = ToolCalls()
    for one in observed:
        calls.add_row(one.tools)
    return {
        "reward": mean,
        "reward_std": _mean([(total - mean) ** 2 for total in totals]) ** 0.5 if mean is not None else None,
        # A rollout without an entry, as most have none for being cut off, lost nothing there.
        "scores": {name: sum(values) / len(known) for name, values in scores.items()},
        **_shares(known),
        "multi_call": _shares([one for one in known if one.depth > 1]),
        "length": _mean([one.length for one in observed]),
        "thought_words": _mean([one.thought_words for one in known if one.thought_words is not None]),
        "truncated": _mean([float(one.truncated) for one in observed]),
        "tokens": sum(one.length for one in observed),
        "rollouts": len(observed),
        "masked": len(observed) - len(known),
        **({"masked_cut": cut} if cut else {}),
        **({"undeclared": calls.to_json()} if calls.undeclared else {}),
    }


def zero_variance(rewards: Sequence[Sequence[float | None]]) -> float | None:
    """The share of groups whose known rewards are all equal (to 1e-6); ``None`` if none has a known one.

    ``rewards`` has a row for each group, with ``None`` for a masked rollout.
    """
    spreads = []
    for group in rewards:
        known = [reward for reward in group if reward is not None]
        if known:
            spreads.append(max(known) - min(known) <= 1e-6)
    return sum(spreads) / len(spreads) if spreads else None


def _shares(observed: Sequence[Observed]) -> dict[str, float | None]:
    programs = [one.calls for one in observed if one.calls is not None]
    return {
        "parsed": _mean([float(one.calls is not None) for one in observed]),
        "executed": _mean([float(one.executed) for one in observed]),
        "answered": _mean([float(one.answered) for one in observed]),
        "calls": _mean([float(calls) for calls in programs]),
        "calls_due": _mean([float(one.depth) for one in observed]),
    }


def _mean(values: Sequence[float]) -> Any:
    return sum(values) / len(values) if values else None
