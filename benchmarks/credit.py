"""Whether it helps that a penalty lands on the tokens of the call that failed, in the small world.

    OMP_NUM_THREADS=1 python benchmarks/credit.py [--seeds 6] [--steps 30] [--warm 900] [--shares 0.5 1]
        [--folder FOLDER]

Each seed trains the recipe ``tier-mini`` for ``--steps`` steps from one and the same warm start, once for each share
of the penalty that lands on the blamed tokens, 0 among them. A seed draws tasks and samples, so that arms are compared
in pairs. What is printed: the mean greedy accuracy at depths 2 to 4 (held-out compositions) before and after, the mean
over the steps of the share of sampled answers that are right, and the differences from share 0 over the seeds with
their 95% intervals by Student's t. Runs in ``--folder`` are gone on with, so that it may be stopped.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.statistics.intervals import MeanInterval, mean_interval, paired_difference
from callwright.training.recipe_run import run_pipeline

DEPTHS: Final = ("2", "3", "4")
MEASURES: Final = ("accuracy after, depths 2 to 4", "right answers while training")


def run(folder: Path, *overrides: str) -> Path:
    """A run of the recipe, or what is left of it to do."""
    loaded = load_recipe("tier-mini", overrides)
    return run_pipeline(build_pipeline(loaded), output=folder).path


def accuracy(evaluation: Mapping[str, Any]) -> float:
    """The mean greedy accuracy at the depths, in percent."""
    return 100 * sum(float(evaluation["by_depth"][depth]["accuracy"]) for depth in DEPTHS) / len(DEPTHS)


def measured(folder: Path) -> tuple[float, float, float]:
    """Accuracy before and after, and the mean share of right answers among all that were sampled, in percent."""
    evaluation = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    sampled = 100 * sum(row["answered"] for row in rows) / len(rows)
    return accuracy(evaluation["before"]), accuracy(evaluation["after"]), sampled


def shown(interval: MeanInterval) -> str:
    """A mean with its interval."""
    if interval.low is None or interval.high is None:
        return f"{interval.mean:+.1f}"
    return f"{interval.mean:+.1f} [{interval.low:+.1f}, {interval.high:+.1f}]"


def compare(folder: Path, seeds: int, steps: int, warmed: int, shares: list[float]) -> None:
    """Train, and print the table."""
    warm = run(folder / "warm", "trainer.steps=0", f"trainer.warm_start.steps={warmed}")
    given = [
        f"model={json.dumps(str(warm / 'checkpoints' / 'final'))}",
        "trainer.warm_start.steps=0",
        f"trainer.steps={steps}",
        "trainer.evaluate_every=0",
    ]
    found: dict[float, dict[int, tuple[float, float, float]]] = {share: {} for share in (0.0, *shares)}
    for seed in range(1, seeds + 1):
        for share, known in found.items():
            options = (*given, f"seed={seed}", f"algorithm.credit_share={share:g}")
            known[seed] = measured(run(folder / f"seed-{seed}-share-{share:g}", *options))
            print(f"seed {seed}, share {share:g}: " + ", ".join(f"{value:.1f}" for value in known[seed]), flush=True)
    before = next(iter(found[0.0].values()))[0]
    print(f"\n{seeds} seeds, {steps} steps; accuracy before {before:.1f}\n")
    print("| share | " + " | ".join(f"{measure} | less share 0" for measure in MEASURES) + " |")
    print("|---|---|---|---|---|")
    for share, known in found.items():
        cells = []
        for place in (1, 2):
            values = {seed: one[place] for seed, one in known.items()}
            plain = {seed: one[place] for seed, one in found[0.0].items()}
            cells += [f"{mean_interval(list(values.values())).mean:.1f}"]
            cells += [shown(paired_difference(plain, values)) if share else ""]
        print(f"| {share:g} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--warm", type=int, default=900, help="steps of the warm start")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5, 1.0])
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.folder is not None:
        compare(given.folder, given.seeds, given.steps, given.warm, given.shares)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), given.seeds, given.steps, given.warm, given.shares)


if __name__ == "__main__":
    main()
