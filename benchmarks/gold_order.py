"""What the order of reference programs does to a reward that reads them, all else equal (docs/reproduction.md).

    python benchmarks/gold_order.py --output runs/gold-order               # the pairs below; killed, it goes on
    python benchmarks/gold_order.py --output runs/gold-order --pairs 733-4242 --steps 20
    python benchmarks/gold_order.py --plans 1500                           # no training: what right programs are paid

Reference programs of the small world stand in a random valid order; its demonstrations, and so the policies that begin
with them, write calls in the order of the query. A pair is a warm start and a training seed. From each, two trainings
are made as in the study, under the reward that the study ran: with the reference programs as they are, and with the
same programs in the order of the query. Tasks, queries, contexts, answers, weights and seeds are the same. With
``--plans``, the program in the order of the query is scored against the reference program as it is.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from reproduce import FOLDER, figures_of, read_rows, versions  # beside this file
from reproduction_tables import markdown

import callwright as cw
from callwright.training.run_folder import append_jsonl
from callwright.walk import Progress
from callwright_plugins.toolworld.corpus import ToolWorldCorpus
from callwright_plugins.toolworld.families import FAMILIES

CORPUS: Final = "toolworld-mini-v1"
FAMILY: Final = {family.name: family for family in FAMILIES}
#: Warm start and training seed of each pair, and the orders that are compared.
PAIRS: Final = "733-4242,9001-4243,733-777"
ORDERS: Final = ("random", "query")


def in_query_order(task: cw.Task) -> cw.Task:
    """The task with its reference program in the order of the query; everything else is as it was."""
    plan = FAMILY[task.facts["family"]].build(task.facts["values"])
    return attrs.evolve(task, program=cw.Program(plan.calls, task.program.returns if task.program else plan.returns))


class QueryOrder(ToolWorldCorpus):
    """The small world with reference programs in the order of the query."""

    def _train_task(self, number: int) -> cw.Task:
        return in_query_order(super()._train_task(number))

    def _evaluation_task(self, number: int) -> cw.Task:
        return in_query_order(super()._evaluation_task(number))

    def __reduce__(self) -> Any:
        return QueryOrder, self._options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("runs/gold-order"))
    parser.add_argument("--pairs", default=PAIRS, help="warm start and training seed of each pair, such as 733-4242")
    parser.add_argument("--reward", default="toolrl-guarded")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--plans", type=int, help="train nothing; score this many right programs")
    arguments = parser.parse_args()
    if arguments.plans:
        print(paid(arguments.plans, ("toolrl", "toolrl-guarded", "tier")))
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        for row in trainings(arguments.output, read_pairs(arguments.pairs), arguments.reward, arguments.steps):
            print(f"{row['key']}: composition {composition(row):.1f}, {row['cpu_seconds']:.0f} s", flush=True)
    except KeyboardInterrupt:
        raise SystemExit("\nstopped; the same command goes on") from None
    print(table(read_rows(arguments.output)))


def read_pairs(text: str) -> list[tuple[int, int]]:
    """The pairs of the command line."""
    found = []
    for pair in text.split(","):
        warm, _, seed = pair.partition("-")
        if not (warm.isdecimal() and seed.isdecimal()):
            raise SystemExit(f"{pair!r} is not a warm start and a training seed, such as 733-4242")
        found.append((int(warm), int(seed)))
    return found


def trainings(output: Path, pairs: Sequence[tuple[int, int]], reward: str, steps: int) -> Iterator[dict[str, Any]]:
    """Make what has no row yet, and give the row of each training."""
    output.mkdir(parents=True, exist_ok=True)
    corpora = {"random": cw.corpus(CORPUS), "query": QueryOrder()}
    done = {row["key"]: row for row in read_rows(output)}
    for warm, seed in pairs:
        start = output / "warm" / str(warm)
        if not (start / "checkpoints" / "final").is_dir():
            cw.train(FOLDER / "warm_start.toml", output=start, overrides=[f"seed={warm}"], corpus=corpora["random"])
        for order in ORDERS:
            key = f"{reward}/{steps}/{warm}-{seed}/{order}"
            if key not in done:
                overrides = [f"seed={seed}", f"reward.name={reward}", f"trainer.steps={steps}"]
                overrides += [f"model.path={start / 'checkpoints' / 'final'}", "trainer.evaluate_every=20"]
                cpu = time.process_time()
                run = cw.train(
                    FOLDER / "training.toml", output=output / key, overrides=overrides, corpus=corpora[order]
                )
                facts = {"key": key, "reward": reward, "warm_seed": warm, "training_seed": seed, "order": order}
                spent = {"cpu_seconds": round(time.process_time() - cpu, 1), "versions": versions()}
                done[key] = {**facts, **figures_of(run), **spent}
                append_jsonl(output / "rows.jsonl", [done[key]])
            yield done[key]


def composition(row: dict[str, Any], step: str | None = None) -> float:
    """Mean accuracy at depths 2 to 6 in %, at a step, else at the end."""
    by_depth = row["accuracy"][step if step is not None else list(row["accuracy"])[-1]]
    return 100 * sum(by_depth[str(depth)] for depth in range(2, 7)) / 5


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Composition over the steps of each training, and accuracy at depths 5 and 6 at the end."""
    steps = sorted({int(step) for row in rows for step in row["accuracy"]})
    lines = []
    for row in rows:
        last = row["accuracy"][list(row["accuracy"])[-1]]
        shown = [f"{composition(row, str(step)):.0f}" if str(step) in row["accuracy"] else "" for step in steps]
        deepest = f"{100 * last['5']:.0f}/{100 * last['6']:.0f}"
        lines.append(
            [f"`{row['reward']}`", f"{row['warm_seed']}, {row['training_seed']}", row["order"], *shown, deepest]
        )
    return markdown(["reward", "warm start, seed", "order", *(f"step {step}" for step in steps), "depth 5/6"], lines)


def paid(count: int, rewards: Sequence[str]) -> str:
    """What rewards give the right program in the order of the query, by the number of calls."""
    corpus, parser = cw.corpus(CORPUS), cw.parser("json")
    recipes = {name: cw.reward(name) for name in rewards}
    totals: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(count):
        task = corpus["train"][number]
        if task.depth > 1:
            attempt = cw.Attempt(
                task, parser.render(in_query_order(task).program), parser, cw.Conditions(progress=Progress(0, 1))
            )
            for name, recipe in recipes.items():
                totals[task.depth][name].append(recipe.score_attempt(attempt).total / recipe.high)
    lines = []
    for depth, found in sorted(totals.items()):
        cells: list[object] = []
        for name, recipe in recipes.items():
            below = sum(total < 1 - 1e-9 for total in found[name]) / len(found[name])
            mean = recipe.high * sum(found[name]) / len(found[name])
            cells += [f"{100 * below:.0f}%", f"{mean:.2f} of {recipe.high:g}"]
        lines.append([depth, len(found[rewards[0]]), *cells])
    heads = [head for name in rewards for head in (f"`{name}`: below full marks", "mean")]
    return markdown(["calls", "tasks", *heads], lines)


if __name__ == "__main__":
    main()
