"""How many pairs of completion and ground truth the ToolRL recipes score in a second of CPU time, on one core.

    python benchmarks/toolrl_speed.py --data DIR [--repeat 9]       # the folder with reference_scores.jsonl.gz
    python benchmarks/toolrl_speed.py --assignment                  # which way of assigning is quicker, by size

Beside it stands the figure of the released scorer: 48,000 pairs/s of CPU time on short completions (greedy matching, no
evidence; measured elsewhere, so compare orders of size and not percents). "On demand" leaves the evidence unread, as
training does; "read" asks for all of it. Ground truths are read once, before the clock starts. Rows whose ground truth
is refused are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import Any

import callwright as cw
from callwright.walk import Progress

RELEASED = 48_000.0
LIMIT = 512  # characters of a short completion


def usable(data: Path) -> list[tuple[str, str, Progress]]:
    with gzip.open(data / "reference_scores.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        (row["completion"], row["ground_truth"], Progress(row["step"], row["total_steps"]))
        for row in rows
        if "error" not in row["scores"]["default"]
    ]


def rate(work: Callable[[], object], count: int, repeat: int) -> tuple[float, float, float]:
    """Pairs per second of CPU time: median, slowest and quickest of the repeats."""
    work()
    found = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        found.append(count / (time.process_time() - start))
    return median(found), min(found), max(found)


def speeds(pairs: list[tuple[str, str, Progress]], repeat: int) -> None:
    for title, name, evidence in (
        ("released default, on demand", "toolrl-released-default", False),
        ("released default, read", "toolrl-released-default", True),
        ("paper, on demand", "toolrl", False),
        ("paper, read", "toolrl", True),
        ("guarded, on demand", "toolrl-guarded", False),
        ("paper, finegrained, on demand", "toolrl-finegrained", False),
    ):
        recipe: Any = cw.reward(name)

        def work(recipe: Any = recipe, evidence: bool = evidence) -> None:
            for completion, truth, progress in pairs:
                reward = recipe.score_pair(completion, truth, progress)
                if evidence:
                    for weighted in reward.scores.values():
                        _ = weighted.score.evidence

        middle, slowest, quickest = rate(work, len(pairs), repeat)
        print(
            f"  {title:32} {middle:9,.0f} pairs/s ({slowest:,.0f} to {quickest:,.0f}), "
            f"{middle / RELEASED:.2f} times the released scorer's figure"
        )


def assignment() -> None:
    from callwright_plugins.toolrl_rewards.assignment import _augmented, assign

    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        linear_sum_assignment = None

    def all_orders(weights: list[list[float]]) -> float:
        columns = range(len(weights[0]))
        return max(sum(row[at] for row, at in zip(weights, order, strict=True)) for order in permutations(columns))

    rng = random.Random(0)
    print("microseconds per assignment of n true calls to n predicted ones (weights 0 to 4 in halves)")
    for size in range(1, 8):
        cases = [[[rng.randint(0, 8) / 2 for _ in range(size)] for _ in range(size)] for _ in range(200)]
        parts = []
        ways: list[tuple[str, Callable[..., object]]] = [
            ("as used", assign),
            ("augmenting paths", _augmented),
            ("all orders", all_orders),
        ]
        if linear_sum_assignment is not None:
            ways.append(("scipy", lambda weights: linear_sum_assignment(weights, maximize=True)))
        for title, solve in ways:
            if title == "all orders" and size > 6:
                continue
            middle, _, _ = rate(lambda solve=solve, cases=cases: [solve(case) for case in cases], len(cases), 5)
            parts.append(f"{title} {1e6 / middle:8.1f}")
        print(f"  n = {size}: " + ", ".join(parts))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--data", type=Path)
    arguments.add_argument("--repeat", type=int, default=9)
    arguments.add_argument("--assignment", action="store_true")
    options = arguments.parse_args()
    if options.assignment:
        assignment()
    if options.data is None:
        if not options.assignment:
            arguments.error("--data or --assignment is needed")
        return
    pairs = usable(options.data)
    short = [pair for pair in pairs if len(pair[0]) <= LIMIT]
    for title, some in ((f"all {len(pairs)} pairs", pairs), (f"the {len(short)} up to {LIMIT} characters", short)):
        length = sum(len(pair[0]) for pair in some) / len(some)
        print(f"{title}, {length:.0f} characters on average")
        speeds(some, options.repeat)


if __name__ == "__main__":
    main()
