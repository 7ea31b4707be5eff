"""Rollouts a second, end to end on one core, and the share of each stage: parse, validate, execute, score.

    python benchmarks/depthbench_speed.py [--repeat 5] [--json]

The rollouts are the reference programs of ``depthbench-v1`` in the JSON form and, for each, one perturbed program (a
changed value, a dropped call, another tool …), scored with the recipe ``tier``. Beside it stands what was measured for
the released benchmark's code on its own corpus: a median of 746 rollouts/s (CPU time, one core; 846/746/621).
The time of a rollout is the best of ``--repeat`` passes over all of them, as for any micro-benchmark.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from typing import Any

RELEASED = 746


def rollouts(parser: Any, corpus: Any) -> list[tuple[Any, str]]:
    from callwright_plugins.depthbench.proofs import mutations

    made = []
    for split in corpus.splits:
        for task in corpus[split]:
            made.append((task, parser.render(task.program)))
            wrong = list(mutations(task.program, task.tools))
            if wrong:
                made.append((task, parser.render(random.Random(task.id).choice(wrong).program)))
    return made


def measure(repeat: int) -> dict[str, Any]:
    import callwright as cw
    from callwright.walk.attempt import Attempt
    from callwright_plugins.depthbench.corpus import DepthBenchCorpus

    start = time.perf_counter()
    corpus: Any = DepthBenchCorpus()
    opened = time.perf_counter() - start
    decoding = time.perf_counter()
    for split in corpus.splits:
        list(corpus[split])
    decoded = time.perf_counter() - decoding
    parser, recipe = cw.parser("json"), cw.reward("tier")
    made = rollouts(parser, corpus)
    stages: dict[str, list[float]] = {"parse": [], "validate": [], "execute": [], "score": []}
    totals: list[float] = []
    for _ in range(repeat + 1):
        attempts = [Attempt(task, text, parser) for task, text in made]
        marks = [time.process_time()]
        for stage in ("parsed", "validation", "trace"):
            for attempt in attempts:
                getattr(attempt, stage)
            marks.append(time.process_time())
        for attempt in attempts:
            recipe.score_attempt(attempt)
        marks.append(time.process_time())
        for name, before, after in zip(stages, marks, marks[1:], strict=False):
            stages[name].append(after - before)
        begin = time.process_time()
        for task, text in made:
            recipe.score_attempt(Attempt(task, text, parser))
        totals.append(time.process_time() - begin)
    totals, stages = totals[1:], {name: values[1:] for name, values in stages.items()}  # the first pass warms up
    environment = corpus.environment
    scenarios = [task.scenario for split in corpus.splits for task in corpus[split]]
    begin = time.process_time()
    for _ in range(20):
        for scenario in scenarios:
            environment.open(scenario).close()
    opening = (time.process_time() - begin) / (20 * len(scenarios))
    staged = {name: min(values) for name, values in stages.items()}
    return {
        "rollouts": len(made),
        "calls": sum(len(task.program.calls) for task, _ in made),
        "rollouts_per_second": round(len(made) / min(totals)),
        "rollouts_per_second_median": round(len(made) / statistics.median(totals)),
        "released_rollouts_per_second": RELEASED,
        "microseconds_per_rollout": round(min(totals) / len(made) * 1e6, 1),
        "stage_share": {name: round(value / sum(staged.values()), 3) for name, value in staged.items()},
        "corpus_load_seconds": round(opened, 3),
        "decode_all_tasks_seconds": round(decoded, 3),
        "session_open_microseconds": round(opening * 1e6, 2),
    }


def cold_load() -> float:
    """Seconds from ``import callwright`` to a loaded corpus with one decoded task, in a fresh process."""
    code = (
        "import time, callwright, callwright.walk.tasks, callwright.environments.protocol\n"
        "t = time.perf_counter(); from callwright_plugins.depthbench.corpus import DepthBenchCorpus\n"
        "DepthBenchCorpus()['train'][60]; print(time.perf_counter() - t)"
    )
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    found = measure(chosen.repeat)
    found["corpus_load_fresh_process_seconds"] = round(cold_load(), 3)
    if chosen.json:
        print(json.dumps(found))
        return
    shares = ", ".join(f"{name} {share:.0%}" for name, share in found["stage_share"].items())
    print(f"{found['rollouts']} rollouts with {found['calls']} reference calls")
    print(f"{found['rollouts_per_second']} rollouts/s best, {found['rollouts_per_second_median']} median ({shares})")
    print(f"released benchmark: {RELEASED} rollouts/s, so {found['rollouts_per_second'] / RELEASED:.0f} times as many")
    fresh = found["corpus_load_fresh_process_seconds"]
    print(f"corpus: loaded in {found['corpus_load_seconds']} s ({fresh} s in a fresh process, modules included),")
    print(f"all tasks decoded in {found['decode_all_tasks_seconds']} s")
    print(f"a session opens in {found['session_open_microseconds']} microseconds")


if __name__ == "__main__":
    main()
