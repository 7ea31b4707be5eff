"""How often the interval of a paired difference holds the true difference, where tasks come in families.

    python benchmarks/paired_coverage.py --pairs 2000

Each pair of evaluations is simulated: families of one to eight tasks, of kinds that say how likely either policy has
them right, some hard for both, some gained, some lost; with a given chance a task does as its family does. So the true
difference is known. Exit status 1 if the share of intervals that hold it is not between 93 and 97%. Beside it stands
what a bootstrap over tasks alone would have claimed, which takes families for independent tasks.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence

from callwright.statistics.paired import bootstrap_difference

#: Of a family, how often the first and the second policy have its tasks right, and how common such families are.
KINDS = (((0.95, 0.97), 5), ((0.6, 0.8), 3), ((0.3, 0.35), 2), ((0.7, 0.5), 1), ((0.05, 0.1), 1))
WEIGHT = sum(weight for _, weight in KINDS)
TRUTH = sum((second - first) * weight for (first, second), weight in KINDS) / WEIGHT
#: Families, and how alike the tasks of one are.
SETTINGS = ((25, 0.6), (60, 0.6), (150, 0.6), (60, 1.0), (150, 0.0))


def simulated(rng: random.Random, families: int, likeness: float) -> list[list[float]]:
    """The differences of each family of a pair of evaluations."""
    made = []
    for _ in range(families):
        chances = rng.choices([chances for chances, _ in KINDS], [weight for _, weight in KINDS])[0]
        shared = [rng.random() < chance for chance in chances]
        tasks = []
        for _ in range(rng.randint(1, 8)):
            first, second = (
                own if rng.random() < likeness else rng.random() < chance
                for own, chance in zip(shared, chances, strict=True)
            )
            tasks.append(float(second) - float(first))
        made.append(tasks)
    return made


def holds(clusters: Sequence[Sequence[float]], draws: int, seed: int) -> bool:
    """Whether the interval of the simulated pair holds the truth."""
    found = bootstrap_difference(clusters, draws=draws, seed=seed)
    return found.low is not None and found.high is not None and found.low <= TRUTH <= found.high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="in all settings together")
    parser.add_argument("--draws", type=int, default=1000, help="of each bootstrap")
    parser.add_argument("--beside", type=int, default=40, help="pairs a setting that are also taken by task")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, each = random.Random(arguments.seed), arguments.pairs // len(SETTINGS)
    print(f"true difference {100 * TRUTH:.2f} points; {each} pairs a setting, {arguments.draws} draws")
    held, beside = 0, min(each, arguments.beside)
    for families, likeness in SETTINGS:
        here = naive = 0
        for number in range(each):
            clusters = simulated(rng, families, likeness)
            here += holds(clusters, arguments.draws, number)
            if number < beside:
                naive += holds([[value] for some in clusters for value in some], arguments.draws, number)
        print(
            f"{families:4} families, alike {likeness:.1f}: {100 * here / each:5.1f}%"
            f"  (over tasks alone, {beside} pairs: {100 * naive / max(beside, 1):.0f}%)"
        )
        held += here
    share = held / (each * len(SETTINGS))
    print(f"all {each * len(SETTINGS)} pairs: {100 * share:.1f}%")
    sys.exit(0 if 0.93 <= share <= 0.97 else 1)


if __name__ == "__main__":
    main()
