"""How fast completions are parsed, validated, executed and scored, on one core, on the official completions.

    python benchmarks/scoring_speed.py --data DIR [--form json] [--recipe tier] [--repeat 5] [--without-command]

The walk is that of one process that holds tasks and texts (``recipe.scoring``, which is what commands and trainers ask;
``one by one`` is ``recipe.score_attempt``); the command is ``callwright score`` from a file of these
completions to a file of rewards, six times over, in a process of its own, less the CPU time that it takes for one row
(loading). Beside them stands the figure of the released TIER code: 746 rollouts/s of CPU time, 84% of it in its tools
(measured on the same data in its own process; its tools filter data frames, while here the recorded results are looked
up, so the stages other than execution are the fair part of the comparison; both are printed).
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import callwright as cw
from callwright.tools.validation import validate
from callwright.walk.execution import execute

RELEASED = 746.0
RELEASED_SHARE_OF_TOOLS = 0.84
#: How often the command is given the completions, so that what it does per row outweighs what it does once.
TIMES = 6


def official_rows(data: Path) -> list[dict[str, str]]:
    spec = importlib.util.spec_from_file_location("official_scores", Path(__file__).with_name("official_scores.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.official_rows(data))


def command_cost(pairs: list[tuple[cw.Task, str]], data: Path, form: str, recipe: str, repeat: int) -> list[float]:
    """Microseconds of CPU per row of ``callwright score``, with what it takes to start left out."""

    def seconds(source: Path, target: Path) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        asked = [
            "score",
            str(source),
            "--corpus",
            "depthbench-official",
            "--data",
            str(data),
            "-o",
            str(target),
            "--overwrite",
        ]
        asked += ["--ir", form, "--recipe", recipe]
        done = subprocess.run([sys.executable, "-m", "callwright", *asked], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"error: callwright score ended with {done.returncode}: {done.stderr[-400:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    rows = [
        json.dumps({"id": number, "task": task.id, "completion": text}) for number, (task, text) in enumerate(pairs)
    ]
    with tempfile.TemporaryDirectory() as folder:
        one, many, target = Path(folder, "one.jsonl"), Path(folder, "many.jsonl"), Path(folder, "out.jsonl")
        one.write_text(rows[0] + "\n", encoding="utf-8")
        many.write_text(("\n".join(rows) + "\n") * TIMES, encoding="utf-8")
        count = len(rows) * TIMES - 1
        return [(seconds(many, target) - seconds(one, target)) / count * 1e6 for _ in range(repeat)]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--form", default="json")
    arguments.add_argument("--recipe", default="tier")
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--without-command", action="store_true")
    options = arguments.parse_args()
    corpus = cw.corpus("depthbench-official", data=str(options.data))
    parser, recipe = cw.parser(options.form), cw.reward(options.recipe)
    pairs = [
        (corpus.task(row["qid"]), row["completion"]) for row in official_rows(options.data) if row["ir"] == options.form
    ]
    count = len(pairs)
    gc.collect()
    gc.freeze()  # as `callwright score` does: what was loaded is never garbage, so it is not searched for any

    def cost(work: Callable[[], object]) -> list[float]:
        work()  # once unmeasured: schemas compile, caches fill
        found = []
        for _ in range(options.repeat):
            start = time.process_time()
            work()
            found.append((time.process_time() - start) / count * 1e6)
        return found

    attempts = [cw.Attempt(task, text, parser) for task, text in pairs]
    programs = [(attempt.task, attempt.program) for attempt in attempts if attempt.program is not None]

    def one_by_one() -> None:
        for task, text in pairs:
            recipe.score_attempt(cw.Attempt(task, text, parser))

    def together() -> None:
        for _ in recipe.scoring(cw.Attempt(task, text, parser) for task, text in pairs):
            pass

    def score_only() -> None:
        for attempt in attempts:
            recipe.score_attempt(attempt)

    score_only()  # parses, validates and executes each attempt, which keeps what came of it
    stages = {
        "parse": cost(lambda: [parser.parse(text) for _, text in pairs]),
        "validate": cost(lambda: [validate(program, task.tools) for task, program in programs]),
        "execute": cost(
            lambda: [
                execute(program, task.environment, task.tools, scenario=task.scenario) for task, program in programs
            ]
        ),
        "score": cost(score_only),
        "one by one": cost(one_by_one),
        "all of it": cost(together),
    }
    print(f"{count} completions, form {options.form}, recipe {options.recipe}; microseconds of CPU per rollout")
    for name, figures in stages.items():
        print(f"  {name:10} {median(figures):7.1f}   ({min(figures):.1f} to {max(figures):.1f})")
    whole = median(stages["all of it"])
    execution = median(stages["execute"])
    released = 1e6 / RELEASED
    print(f"\nthe released code {RELEASED:8,.0f} rollouts/s")
    print(f"the walk          {1e6 / whole:8,.0f} rollouts/s: {released / whole:.1f} times as fast")
    if not options.without_command:
        costs = command_cost(pairs, options.data, options.form, options.recipe, options.repeat)
        row = median(costs)
        print(
            f"callwright score  {1e6 / row:8,.0f} rows/s: {released / row:.1f} times as fast, {whole / row:.2f} of the "
            f"walk; {row:.1f} microseconds of CPU per row ({min(costs):.1f} to {max(costs):.1f})"
        )
    fair = released * (1 - RELEASED_SHARE_OF_TOOLS) / (whole - execution)
    print(f"the walk without the tools' own time on both sides: {fair:.1f} times as fast")


if __name__ == "__main__":
    main()
