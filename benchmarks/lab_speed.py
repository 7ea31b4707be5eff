"""How fast the reward lab scores attempts under several recipes, on one core.

    python benchmarks/lab_speed.py [--attempts 100000] [--corpus toolworld-mini-v1] [--recipes a,b,c,d,e] [--json]
    python benchmarks/lab_speed.py --attempts 2000 --write rows.jsonl     # only write the attempts, for callwright lab

The attempts are made first and not timed: for each task a group of 16, drawn from the probes of its reference program
(right in several ways, wrong in several ways) and from texts that were cut off. What is timed is everything that
``callwright lab`` does with its rows: parsing, executing, scoring under each recipe, the statistics and the probes.
Beside it stands the time of scoring the same attempts with one fresh attempt a recipe, on a tenth of them.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import callwright as cw
from callwright.commands.pipelines import make_pipeline
from callwright.plugins import default_registry
from callwright.walk.tasks import Corpus
from callwright_plugins.lab.figures import figures
from callwright_plugins.lab.ledger import open_ledger
from callwright_plugins.lab.probes import Pool, variants
from callwright_plugins.lab.probing import probe_tasks, spread
from callwright_plugins.lab.reading import Sample

GROUP = 16
RECIPES = "tier,tier-guarded,toolrl,prove,simple"


def made_attempts(corpus: Corpus, count: int) -> Iterator[tuple[cw.Task, str]]:
    """``count`` completions, as texts of the form ``json``."""
    parser, rng = cw.parser("json"), random.Random(0)
    tasks = corpus[next(iter(corpus.splits))]
    wanted = min(len(tasks), -(-count // GROUP))
    known = [tasks[index] for index in range(wanted)]
    pool = Pool.of([task.program for task in known if task.program is not None])
    size, left = -(-count // wanted), count
    for task in known:
        texts = [parser.render(program) for _, program in variants(task, pool)]
        for _ in range(min(size, left)):
            text = rng.choice(texts)
            yield task, text[: rng.randrange(len(text))] if rng.random() < 0.1 else text
        left -= min(size, left)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--attempts", type=int, default=100_000)
    arguments.add_argument("--corpus", default="toolworld-mini-v1")
    arguments.add_argument("--recipes", default=RECIPES)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--write", type=Path, help="write the attempts here, and measure nothing")
    options = arguments.parse_args()
    names = options.recipes.split(",")
    pipeline = make_pipeline(default_registry(), options.corpus, {})
    rows = list(made_attempts(pipeline.corpus, options.attempts))
    if options.write is not None:
        with options.write.open("w", encoding="utf-8") as file:
            for number, (task, text) in enumerate(rows):
                file.write(json.dumps({"id": number, "task": task.id, "completion": text}) + "\n")
        return

    ledger = open_ledger(pipeline.registry, names)
    start = time.process_time()
    for number, (task, text) in enumerate(rows):
        ledger.enter(Sample(number, pipeline.attempt(task, text), task.id, {}))
    scored = time.process_time()
    probing = probe_tasks(pipeline, ledger, spread(list(ledger.tasks.values()), 200))
    probed = time.process_time()
    found = figures(ledger, probing)
    end = time.process_time()

    some = rows[:: max(1, len(rows) // 10_000)]
    recipes = [account.recipe for account in ledger.accounts]
    apart = time.process_time()
    for recipe in recipes:
        for task, text in some:
            recipe.score_attempt(pipeline.attempt(task, text))
    apart = (time.process_time() - apart) / len(some) * len(rows)

    whole = end - start
    result = {
        "attempts": len(rows),
        "tasks": found["tasks"],
        "recipes": [account.name for account in ledger.accounts],
        "skipped": ledger.skipped,
        "seconds": {
            "parse, execute, score": round(scored - start, 2),
            "probes": round(probed - scored, 2),
            "statistics": round(end - probed, 2),
            "all": round(whole, 2),
        },
        "attempts_per_second": round(len(rows) / whole),
        "scores_per_second": round(len(rows) * len(recipes) / (scored - start)),
        "seconds_with_an_attempt_a_recipe": round(apart, 2),
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"{len(rows):,} attempts at {found['tasks']:,} tasks of {options.corpus} under {', '.join(result['recipes'])}"
    )
    for name, seconds in result["seconds"].items():
        print(f"  {name:22} {seconds:7.2f} s of CPU")
    print(
        f"{result['attempts_per_second']:,} attempts/s in all, {result['scores_per_second']:,} scores/s while scoring"
    )
    print(f"scored with an attempt of its own for each recipe: {apart:.1f} s instead of {scored - start:.1f} s")
    for name, reason in ledger.skipped.items():
        print(f"left out: {name}: {reason}")


if __name__ == "__main__":
    main()
