"""Does a tiny policy learn in the village? Before and after, every seed.

    OMP_NUM_THREADS=1 python benchmarks/village_learns.py [--seeds 3] [--output runs/village] [--steps 60]

For each seed two runs of the recipe ``village-cpu``: the warm start alone, and reinforcement learning from where it
ended. Both policies then do the held-out errands, greedily; printed is the share of them that reach their goal, by
kind, beside how often the policy guessed a password, and the mean reward of the first and the last ten steps. The
commands that it stands for are printed first. What is finished already is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.pipeline import Pipeline, build_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.evaluation import Verdict, evaluate

RECIPE = "village-cpu"


def share(right: int, count: int) -> str:
    return f"{100 * right / count:5.1f}%"


def measured(pipeline: Pipeline, run: Path) -> tuple[dict[str, list[int]], Counter[str]]:
    """By kind of errand: right and all; and what else was counted."""
    reached: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    seen: Counter[str] = Counter()

    def keep(attempt: cw.Attempt, verdict: Verdict) -> None:
        total = pipeline.reward.score_attempt(attempt).total
        for key in (attempt.task.facts["kind"], "all"):
            reached[key][0] += total == 1
            reached[key][1] += 1
        records = [record for turn in attempt.turns if turn.trace is not None for record in turn.trace.records]
        seen["guessed"] += any(record.outcome.code == "BAD_PASSWORD" for record in records)
        seen["asked"] += any("password?" in turn.completion.text for turn in attempt.turns if not turn.calls)
        seen["too early"] += any(record.outcome.code == "NOT_BAKED" for record in records)

    sampler: Any = cw.sampler("local-model", model=str(run), max_new_tokens=40)
    evaluate(pipeline, pipeline.tasks("evaluation"), sampler, keep=keep)
    return reached, seen


def rewards(run: Path) -> list[float]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["reward"] for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=None, help="of reinforcement learning; the recipe's if left out")
    parser.add_argument("--output", type=Path, default=Path("runs/village"))
    chosen = parser.parse_args()
    for seed in range(chosen.seeds):
        pipeline = build_pipeline(load_recipe(RECIPE, [f"seed={seed}"]))
        base, after = chosen.output / f"base-{seed}", chosen.output / f"after-{seed}"
        first = [f"seed={seed}", "trainer.steps=0"]
        second = [f"seed={seed}", f"model={base}", "trainer.warm_start=0"]
        if chosen.steps is not None:
            second.append(f"trainer.steps={chosen.steps}")
        seconds = []
        for run, overrides in ((base, first), (after, second)):
            print("callwright run", RECIPE, "--output", run, *(f"--set {one}" for one in overrides), flush=True)
            began = time.process_time()
            cw.train(RECIPE, output=run, overrides=overrides)
            seconds.append(time.process_time() - began)
        made = rewards(after)
        ten = min(10, len(made))
        print(
            f"seed {seed}: warm start {seconds[0]:.0f} s, {len(made)} steps {seconds[1]:.0f} s of CPU; reward of the "
            f"first {ten} steps {sum(made[:ten]) / ten:.2f}, of the last {ten} {sum(made[-ten:]) / ten:.2f}"
        )
        for name, run in (("before", base), ("after", after)):
            reached, seen = measured(pipeline, run)
            cells = "  ".join(
                f"{kind} {share(*reached[kind])}" for kind in sorted(reached, key=lambda one: one == "all")
            )
            count = reached["all"][1]
            others = ", ".join(f"{what} {seen[what]}" for what in ("guessed", "asked", "too early"))
            print(f"  {name:6}  {cells}   (of {count}: {others})", flush=True)


if __name__ == "__main__":
    main()
