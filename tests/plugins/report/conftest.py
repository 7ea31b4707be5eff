"""A maker of run folders that look like those of the local trainer, from nothing but a seed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from callwright.training.evaluation import wilson

RECIPE = """name = "tier-mini"
description = "A small policy from scratch on the CPU: warm start, then GRPO with the full TIER reward."
seed = 0
ir = "json"
reward = "tier"

[corpus]
name = "toolworld-mini-v1"

[algorithm]
name = "bn-grpo"
kl_weight = 0.2

[trainer]
name = "local"
steps = {steps}
"""
COMPONENTS = ("format", "names", "parameters", "types", "execution", "answer")


def result(accuracies: list[float], n: int, rng: Random) -> dict[str, Any]:
    """One evaluation: ``n`` tasks a depth."""
    by_depth = {}
    for depth, accuracy in enumerate(accuracies):
        right = sum(rng.random() < accuracy for _ in range(n))
        low, high = wilson(right, n)
        by_depth[str(depth)] = {"accuracy": right / n, "n": n, "low": low, "high": high, "valid_accuracy": right / n}
    overall = sum(cell["accuracy"] for cell in by_depth.values()) / len(by_depth)
    return {
        "overall": overall,
        "valid_overall": overall,
        "n": n * len(accuracies),
        "masked": 0,
        "by_depth": by_depth,
        "by_structure": {"linear": by_depth["2"], "funnel": by_depth["3"]},
        "failures": {"2": {"schema:unexpected_parameter": 11, "answer:wrong": 3}},
    }


def metrics_row(step: int, progress: float, rng: Random, alarm: str | None = None) -> dict[str, Any]:
    """One step; ``progress`` in [0, 1] is how much has been learned."""
    noise = rng.gauss(0, 0.05)
    answered = min(1.0, max(0.0, 0.15 + 0.6 * progress + noise))
    executed = min(1.0, answered + 0.15)
    scores = {name: min(1.0, max(0.0, 0.9 + noise)) for name in COMPONENTS}
    scores |= {"parameters": min(1.0, 0.3 + 0.65 * progress), "execution": executed, "answer": answered}
    shares = {"parsed": 0.95, "executed": executed, "answered": answered, "calls": 2.4 + progress, "calls_due": 3.4}
    return {
        "step": step,
        "reward": 0.1 * sum(scores[name] for name in COMPONENTS[:5]) + 0.5 * answered,
        "reward_std": 0.3,
        "scores": scores,
        **shares,
        "multi_call": shares,
        "thought_words": 9 + 3 * progress,
        "length": 26 + 6 * progress + rng.gauss(0, 1),
        "truncated": 0.0,
        "tokens": 2500,
        "rollouts": 96,
        "masked": 0,
        "groups": 6,
        "zero_variance": max(0.0, 0.2 + 0.2 * progress + noise),
        "resampling_rounds": 0,
        "ratio_mean": 1.0,
        "ratio_max": 1.0,
        "clip_fraction_low": 0.0,
        "clip_fraction_high": 0.0,
        "clip_fraction": 0.0,
        "kl": 0.3 * progress + abs(noise) / 20,
        "entropy": 0.25 - 0.1 * progress + noise / 10,
        "loss": noise,
        "gradient_norm": 0.6 + abs(noise) * 4,
        "learning_rate": 3e-4,
        "alarm": alarm,
    }


def rollout_row(step: int, depth: int, total: float, **more: Any) -> dict[str, Any]:
    """One rollout; what is lost is lost in the answer, then in the parameters."""
    values = dict.fromkeys(COMPONENTS, 1.0)
    evidence: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPONENTS}
    stage = "done"
    if total < 1:
        stage, values["answer"] = "answer", 0.0
        evidence["answer"] = [{"code": "wrong", "reason": "returned 4, expected 5", "expected": "5", "found": "4"}]
    if total < 0.5:
        stage, values["parameters"], values["execution"] = "parse", 0.5, 0.0
        evidence["parameters"] = [
            {"code": "unexpected", "reason": "call 1 Filter.score: expected no parameter of this name", "call": 1}
        ]
        evidence["execution"] = [{"code": "gate_closed", "reason": "not looked at"}]
    weights = dict.fromkeys(COMPONENTS, 0.1) | {"answer": 0.5}
    return {
        "step": step,
        "task": f"train-{step}",
        "depth": depth,
        "structure": ("none", "single", "linear", "funnel", "mixed", "mixed", "mixed")[depth],
        "query": f"restaurants near me rated above {step % 5}",
        "prompt": "<|begin|>GetLocation() FindRestaurants(location:str) Q restaurants A",
        "completion": '<think>\n</think>\n<tool_call return="one">\n{"0": {"GetLocation": {}}}\n</tool_call>',
        "truncated": False,
        "advantage": 0.5,
        "answered": total >= 1,
        "failure": "" if total >= 1 else "answer:wrong",
        "total": sum(weights[name] * values[name] for name in COMPONENTS),
        "scores": {
            name: {"value": values[name], "low": 0.0, "high": 1.0, "weight": weights[name], "evidence": evidence[name]}
            for name in COMPONENTS
        },
        "stage": stage,
        **more,
    }


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_run(path: Path, *, steps: int = 100, planned: int | None = None, seed: int = 0, gain: float = 0.7) -> Path:
    """A whole run folder in which accuracy grows by ``gain`` (of 1) at depths 2 and beyond."""
    rng = Random(seed)
    path.mkdir(parents=True, exist_ok=True)
    (path / "checkpoints").mkdir(exist_ok=True)
    (path / "recipe.toml").write_text(RECIPE.format(steps=planned or steps), encoding="utf-8")
    manifest = {
        "python": "3.11.7",
        "platform": "linux x86_64",
        "versions": {"callwright": "0.1.0", "torch": "2.13.0"},
        "plugins": [
            {"name": "json-ir", "distribution": "callwright", "version": "0.1.0"},
            {"name": "weather", "distribution": "acme-weather", "version": "2.0"},
        ],
        "command": "callwright run tier-mini --set seed=0",
        "seed": 0,
        "started": "2026-01-02T03:04:05+00:00",
    }
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    before, after = [0.95, 0.7, 0.1, 0.05, 0.02, 0.0, 0.0], [0.95, 0.9, *([0.1 + gain] * 3), 0.4 * gain, 0.05]
    evaluation: dict[str, Any] = {"before": result(before, 40, rng), "during": [], "after": None}
    if planned is None or steps >= planned:
        middle = [(first + last) / 2 for first, last in zip(before, after, strict=True)]
        evaluation["during"] = [{"step": steps // 2, **result(middle, 40, rng)}]
        evaluation["after"] = result(after, 40, rng)
    (path / "evaluation.json").write_text(json.dumps(evaluation), encoding="utf-8")
    grown = [1 / (1 + math.exp(-8 * (step / steps - 0.4))) for step in range(steps)]
    write_rows(path / "metrics.jsonl", [metrics_row(step + 1, grown[step], rng) for step in range(steps)])
    rollouts = [
        rollout_row(step + 1, rng.randrange(7), rng.choice([0.2, 0.5, 1.0]) if rng.random() > grown[step] / 2 else 1.0)
        for step in range(steps)
        for _ in range(4)
    ]
    write_rows(path / "rollouts.jsonl", rollouts)
    write_rows(path / "warm_start.jsonl", [{"step": step + 1, "loss": 4 / (1 + step / 10)} for step in range(200)])
    return path


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Writes run folders: ``make_run(steps=…)``."""

    def make(name: str = "run", **options: Any) -> Path:
        return write_run(tmp_path / name, **options)

    return make
