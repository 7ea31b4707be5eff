"""How fast completions are parsed, validated, executed and scored, on one core, on the official completions.

    python benchmarks/scoring_speed.py --data DIR [--form json] [--recipe tier] [--repeat 5]

Beside it stands the figure of the released TIER code: 746 rollouts/s of CPU time, 84% of it in its tools (measured on
the same data in its own process; its tools filter data frames, while here the recorded results are looked up, so the
stages other than execution are the fair part of the comparison; both are printed).
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import callwright as cw
from callwright.tools.validation import validate
from callwright.walk.execution import execute

RELEASED = 746.0
RELEASED_SHARE_OF_TOOLS = 0.84


def official_rows(data: Path) -> list[dict[str, str]]:
    spec = importlib.util.spec_from_file_location("official_scores", Path(__file__).with_name("official_scores.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.official_rows(data))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--form", default="json")
    arguments.add_argument("--recipe", default="tier")
    arguments.add_argument("--repeat", type=int, default=5)
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

    def end_to_end() -> None:
        for task, text in pairs:
            recipe.score_attempt(cw.Attempt(task, text, parser))

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
        "all of it": cost(end_to_end),
    }
    print(f"{count} completions, form {options.form}, recipe {options.recipe}; microseconds of CPU per rollout")
    for name, figures in stages.items():
        print(f"  {name:10} {median(figures):7.1f}   ({min(figures):.1f} to {max(figures):.1f})")
    whole = median(stages["all of it"])
    execution = median(stages["execute"])
    released = 1e6 / RELEASED
    print(
        f"\n{1e6 / whole:,.0f} rollouts/s; the released code: {RELEASED:,.0f}/s -> {released / whole:.1f} times as fast"
    )
    fair = released * (1 - RELEASED_SHARE_OF_TOOLS) / (whole - execution)
    print(f"without the tools' own time on both sides: {fair:.1f} times as fast")


if __name__ == "__main__":
    main()
