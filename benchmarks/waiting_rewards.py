"""What rewards that wait cost: a command's rows, a step of training, and how long a service's event loop stands still.

    python benchmarks/waiting_rewards.py [rows] [step] [loop] [--seconds 1.0] [--prompts 64] [--group 8]
                                          [--concurrency 16 --concurrency 64]

``rows``: ``callwright score`` over 40 rows whose reward waits 0.1 s each, less what the same command takes for a reward
that does not. ``step``: the seconds that scoring takes in a step of the local trainer (a tiny model, so that little
else does), with a component that waits ``--seconds`` for each of ``--prompts`` times ``--group`` samples, and with
``--concurrency`` of them at once. ``loop``: the longest gap between two turns of an event loop while 2,000 right
completions are scored by ``await recipe.ascore(…)`` in it, and by ``recipe.score_attempt`` for comparison; beside it
the longest collection of garbage, which stops every thread of a process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import callwright as cw
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.recipe_run import run_pipeline

PARTS = ("rows", "step", "loop")
ROWS = 40


class Waits(cw.AsyncRewardComponent):
    """A judge that thinks for a while."""

    name = "waits"

    def __init__(self, seconds: float = 0.1, concurrency: int = 64) -> None:
        self.seconds, self.concurrency = seconds, concurrency

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        await asyncio.sleep(self.seconds)
        return cw.Score(1.0)


class Sleeps(cw.RewardComponent):
    """The same in ordinary code."""

    name = "sleeps"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        time.sleep(0.1)
        return cw.Score(1.0)


class AtOnce(cw.RewardComponent):
    """Nothing to wait for."""

    name = "at-once"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return cw.Score(1.0)


def waits() -> cw.RewardRecipe:
    return cw.RewardRecipe("waits", (cw.Term(Waits()),))


def sleeps() -> cw.RewardRecipe:
    return cw.RewardRecipe("sleeps", (cw.Term(Sleeps()),))


def at_once() -> cw.RewardRecipe:
    return cw.RewardRecipe("at-once", (cw.Term(AtOnce()),))


@cw.hookimpl
def callwright_reward_recipes() -> Iterator[cw.Lazy]:
    yield cw.Lazy("waits", waits, "asynchronous")
    yield cw.Lazy("sleeps", sleeps, "ordinary")
    yield cw.Lazy("at-once", at_once, "nothing to wait for")


def rows() -> None:
    corpus, parser = cw.corpus("toolworld-mini-v1"), cw.parser("json")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.jsonl")
        with source.open("w", encoding="utf-8") as file:
            for number, task in enumerate(corpus["train"][:ROWS]):
                assert task.program is not None
                row = {"id": number, "task": task.id, "completion": parser.render(task.program)}
                file.write(json.dumps(row) + "\n")

        def seconds(recipe: str, *more: str) -> float:
            plugin = [sys.executable, "-m", "callwright", "-p", Path(__file__).stem]
            asked = ["score", str(source), "--corpus", corpus.name, "--recipe", recipe, "--overwrite", *more]
            place = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
            took = []
            for _ in range(3):
                began = time.perf_counter()
                target = str(Path(folder, "out.jsonl"))
                subprocess.run([*plugin, *asked, "-o", target], env=place, check=True, capture_output=True)
                took.append(time.perf_counter() - began)
            return min(took)

        threads = ("--workers", "8", "--executor", "thread")
        print(f"{ROWS} rows that wait 0.1 s each; seconds beyond those of a reward that does not wait")
        for name, recipe, more in (
            ("async, alone", "waits", ()),
            ("async, 8 threads", "waits", threads),
            ("ordinary, alone", "sleeps", ()),
            ("ordinary, 8 threads", "sleeps", threads),
        ):
            print(f"  {name:<20} {seconds(recipe, *more) - seconds('at-once', *more):6.2f}")


def step(seconds: float, prompts: int, group: int, concurrency: int) -> None:
    recipe = {
        "name": "waiting",
        "corpus": "toolworld-mini-v1",
        "algorithm": {"name": "grpo"},
        "model": {"tiny": {"width": 16, "layers": 1, "heads": 2, "ffn": 16}},
        "trainer": {
            "name": "local",
            "steps": 1,
            "prompts": prompts,
            "group": group,
            "max_new_tokens": 8,
            "warm_start": {"steps": 0},
            "evaluate_every": 0,
        },
    }
    pipeline = build_pipeline(load_recipe(recipe), extra_rewards=[Waits(seconds, concurrency)])
    with tempfile.TemporaryDirectory() as folder:
        run = run_pipeline(pipeline, output=Path(folder, "run"))
        timings = [json.loads(line) for line in (run.path / "timings.jsonl").read_text().splitlines()]
    print(f"a step of {prompts} x {group} samples with a component that waits {seconds:g} s, {concurrency} at once")
    for row in timings:
        print("  " + ", ".join(f"{key} {value:.2f}" for key, value in row.items() if isinstance(value, float)))


def loop() -> None:
    corpus, parser, recipe = cw.corpus("toolworld-mini-v1"), cw.parser("json"), cw.reward("tier")
    tasks = [task for task in corpus["train"] if task.program is not None]
    pairs = [(task, parser.render(task.program)) for task in (tasks * (2000 // len(tasks) + 1))[:2000] if task.program]

    async def gap(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
        longest, over = 0.0, False

        async def tick() -> None:
            nonlocal longest
            last = time.perf_counter()
            while not over:
                await asyncio.sleep(0.001)
                now = time.perf_counter()
                longest, last = max(longest, now - last), now

        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.01)
        began = time.perf_counter()
        await work()
        took = time.perf_counter() - began
        await asyncio.sleep(0)
        over = True
        await ticking
        return longest, took

    async def awaited() -> None:
        await asyncio.gather(*(recipe.ascore(cw.Attempt(task, text, parser)) for task, text in pairs))

    async def in_place() -> None:
        for task, text in pairs:
            recipe.score_attempt(cw.Attempt(task, text, parser))

    begun, collections = 0.0, [0.0]

    def collecting(phase: str, _: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.perf_counter()
        else:
            collections.append(time.perf_counter() - begun)

    gc.callbacks.append(collecting)
    print(f"{len(pairs)} right completions scored in a running event loop: longest gaps of five times, in ms")
    for name, work in (("score_attempt", in_place), ("await ascore", awaited), ("the same, frozen", awaited)):
        asyncio.run(gap(work))  # once unmeasured: schemas compile
        if name.endswith("frozen"):  # the garbage collector does not look through what was loaded so far again
            gc.collect()
            gc.freeze()
        collections[:] = [0.0]
        found = [asyncio.run(gap(work)) for _ in range(5)]
        gaps = ", ".join(f"{1000 * longest:.0f}" for longest, _ in sorted(found))
        print(f"  {name:<16} {gaps}; the longest garbage collection {1000 * max(collections):.0f} ms;", end="")
        print(f" all of it {min(took for _, took in found):.2f} s")
    gc.callbacks.remove(collecting)
    gc.unfreeze()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without")
    arguments.add_argument("--seconds", type=float, default=1.0)
    arguments.add_argument("--prompts", type=int, default=64)
    arguments.add_argument("--group", type=int, default=8)
    arguments.add_argument("--concurrency", type=int, action="append")
    options = arguments.parse_args()
    for part in options.parts or PARTS:
        if part not in PARTS:
            arguments.error(f"there is no part {part!r}")
        if part == "step":
            for concurrency in options.concurrency or (cw.AsyncRewardComponent.concurrency, 64):
                step(options.seconds, options.prompts, options.group, concurrency)
        else:
            {"rows": rows, "loop": loop}[part]()


if __name__ == "__main__":
    main()
