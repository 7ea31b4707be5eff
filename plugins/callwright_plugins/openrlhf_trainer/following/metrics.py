"""What OpenRLHF logs, as rows of ``metrics.jsonl``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from callwright.training.alarms import not_finite
from callwright.walk.reward import TRUNCATED
from callwright_plugins.openrlhf_trainer.agent import PREFIX
from callwright_plugins.openrlhf_trainer.following.events import Scalar

#: What the tags of its logger begin with.
_TRAINING: Final = "train"
_EVALUATION: Final = "eval"
#: The figures that it logs last: of a step, of one with dynamic filtering, and of an evaluation.
_LAST: Final = "timing/step_total"
_LAST_WHEN_FILTERED: Final = "dynamic_filtering_pass_rate"
_LAST_OF_EVALUATION: Final = "eval_num_samples"

#: Our names of OpenRLHF's figures.
_NAMES: Final[Mapping[str, str]] = {
    "rollout/reward_mean": "reward",
    "rollout/reward_std": "reward_std",
    "rollout/truncated_rate": "truncated",
    "policy_loss": "loss",
    "actor_grad_norm": "gradient_norm",
    "actor_lr": "learning_rate",
    "kl": "kl",
    "entropy_loss": "entropy",
    "ppo_clip_ratio": "clip_fraction",
    "critic_loss": "value_loss",
    "values": "value_mean",
}
#: Those that say that a step was not finite, if they are not.
_MUST_BE_FINITE: Final = ("policy_loss", "actor_grad_norm")
#: Our figures of which a mean over masked episodes would say too little.
_SHARES: Final = ("parsed", "executed", "answered", "calls")


@frozen
class Finished:
    """A step, or an evaluation, that is over, with its figures; ``None`` for each that is not finite."""

    step: int
    figures: Mapping[str, float | None]
    evaluation: bool = False


class Steps:
    """Scalars in the order in which OpenRLHF logs them, put together to steps and evaluations.

    Nothing in the file ends a step. It is over once its last figure is there (OpenRLHF logs them in a fixed order), or
    another step or an evaluation begins. ``filtered``: with dynamic filtering, which adds one more figure.
    """

    def __init__(self, *, filtered: bool = False) -> None:
        self._last = {_TRAINING: _LAST_WHEN_FILTERED if filtered else _LAST, _EVALUATION: _LAST_OF_EVALUATION}
        self._begun, self._over = ("", 0), ("", 0)
        self._figures: dict[str, float | None] = {}

    def over(self, scalars: Iterable[Scalar]) -> Iterator[Finished]:
        """What these scalars end."""
        for one in scalars:
            kind, _, name = one.tag.partition("/")
            if kind not in self._last or (kind, one.step) == self._over:
                continue
            if (kind, one.step) != self._begun:
                yield from self.rest()
                self._begun = kind, one.step
            self._figures[name] = one.value if math.isfinite(one.value) else None
            if name == self._last[kind]:
                yield from self.rest()

    def rest(self) -> Iterator[Finished]:
        """What has begun, as it is: after an end in good order, no more of it comes."""
        if self._figures:
            figures, self._figures, self._over = self._figures, {}, self._begun
            kind, step = self._begun
            yield Finished(step, figures, kind == _EVALUATION)


def metrics_row(finished: Finished) -> dict[str, Any]:
    """A step as a row of ours; what OpenRLHF calls otherwise, or we do not have, is under ``openrlhf``."""
    figures = finished.figures
    ours = {key.removeprefix(PREFIX): value for key, value in figures.items() if key.startswith(PREFIX)}
    rest = {key: value for key, value in figures.items() if not key.startswith(PREFIX) and value is not None}
    row: dict[str, Any] = {"step": finished.step, "reward": None}
    for name, our_name in _NAMES.items():
        value = rest.pop(name, None)
        if value is not None:
            row[our_name] = value
    faults = [name for name in _MUST_BE_FINITE if name in figures and figures[name] is None]
    if faults:
        row |= {_NAMES[name]: None for name in faults}
        row["not_finite"] = not_finite(1, 1, [], [f"{_NAMES[name].replace('_', ' ')} nan" for name in faults])
    count = rest.get("rollout/num_samples")
    masked = ours.get("masked") or 0.0
    known = 1.0 - masked
    row["scores"] = {
        name.removeprefix("scores/"): value / known if known > 0 and value is not None else None
        for name, value in ours.items()
        if name.startswith("scores/") and (value or name != f"scores/{TRUNCATED}")  # it is there only where it took any
    }
    for name in _SHARES:
        value = ours.get(name)
        if value is not None and known > 0:
            row[name] = min(1.0, value / known) if name != "calls" else value / known
    words, thoughts = ours.get("thought_words"), ours.get("thoughts")
    if words is not None and thoughts:
        row["thought_words"] = words / thoughts  # both are means over all episodes: of those with a thought is asked
    for name, our_name in (
        ("tokens", "length"),
        ("turns", "turns"),
        ("environment_tokens", "environment_length"),
        ("truncated", "truncated"),
    ):
        if ours.get(name) is not None:
            row[our_name] = ours[name]
    if count is not None:
        row["rollouts"] = round(count)
        row["masked"] = round(count * masked)
        if ours.get("masked_cut"):
            row["masked_cut"] = round(count * (ours["masked_cut"] or 0.0))
        if ours.get("tokens") is not None:
            row["tokens"] = round(count * (ours["tokens"] or 0.0))
        row["retried"] = round(count * (ours.get("retried") or 0.0))
    row["openrlhf"] = rest
    return row
