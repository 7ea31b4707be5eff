"""OpenRLHF's log as rows of ``metrics.jsonl``."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from callwright.training.alarms import not_finite
from callwright.walk.reward import TRUNCATED
from callwright_plugins.openrlhf_trainer.agent import PREFIX

_STEP: Final = re.compile(r"Global step (\d+): (\{.*\})")
_EVALUATED: Final = re.compile(r"Evaluation completed in .*?, global_step (\d+), eval_metrics: (\{.*\})")
_WRAPPED: Final = re.compile(r"\b(?:np\.\w+|tensor)\(([^()]*?)(?:, dtype=[\w.]+)?\)")
_NOT_A_NUMBER: Final = re.compile(r"(?<![\w'\"])-?(?:nan|inf)(?![\w'\"])")

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
    """A step, or an evaluation, that OpenRLHF said was over, with its figures."""

    step: int
    figures: Mapping[str, float | None]
    evaluation: bool = False


def read_line(line: str) -> Finished | None:
    """What a line of the log says is over, if it says so. Lines of Ray's workers have words and colours before it."""
    for pattern, evaluation in ((_STEP, False), (_EVALUATED, True)):
        found = pattern.search(line)
        if found:
            figures = read_figures(found[2])
            return None if figures is None else Finished(int(found[1]), figures, evaluation)
    return None


def names_a_step(line: str) -> bool:
    """Whether a line seems to say that a step is over, whatever follows."""
    return "Global step " in line


def read_figures(text: str) -> dict[str, float | None] | None:
    """A printed dictionary of numbers; ``None`` for each that is not finite, and for a text that is none."""
    text = _NOT_A_NUMBER.sub("None", _WRAPPED.sub(r"\1", text))
    try:
        printed = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(printed, dict):
        return None
    return {str(key): _number(value) for key, value in printed.items()}


def _number(value: object) -> float | None:
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    return None


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
