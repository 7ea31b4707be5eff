"""TIER's Tables 1 and 2 and Appendix F in the small world: the same policy under several rewards and algorithms.

    python benchmarks/reproduce.py --output runs/reproduction              # everything; killed, it goes on
    python benchmarks/reproduce.py --output runs/reproduction --workers 2 --parts rewards,algorithms
    python benchmarks/reproduce.py --output runs/reproduction --tables     # only the tables of what is there
    python benchmarks/reproduce.py --output runs/reproduction --tables --page docs/reproduction.md

What is compared, and how it is judged, is in ``reproduction/study.toml`` beside this file. Every warm start is made
once; all trainings of its seed begin with its weights. A run is what ``callwright run
benchmarks/reproduction/training.toml`` does with the overrides that its row names. ``rows.jsonl`` in the output folder
has one row for each run that is finished, and a run that has a row is not made again; one that was stopped goes on from
its checkpoint. ``tables.md`` and ``curves.svg`` there are written anew after each run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from callwright.training.run_folder import append_jsonl, read_jsonl

HERE: Final = Path(__file__).resolve().parent
FOLDER: Final = HERE / "reproduction"
ROWS: Final = "rows.jsonl"
MARKS: Final = ("<!-- results -->", "<!-- end of results -->")
#: Steps of training over which a row averages the metrics of a run.
WINDOW: Final = 10


@frozen
class Job:
    """One warm start, one look at it, or one training."""

    key: str
    recipe: str
    folder: str
    overrides: tuple[str, ...]
    facts: Mapping[str, Any]
    lab: tuple[str, ...] = ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--workers", type=int, default=1, help="runs at a time; each takes one core")
    parser.add_argument("--parts", help="only these parts of the study, such as rewards,algorithms")
    parser.add_argument("--steps", type=int, help="other than the study's, to try the program; in a folder of its own")
    parser.add_argument("--tables", action="store_true", help="run nothing; write the tables of the rows so far")
    parser.add_argument("--page", type=Path, help="put the tables between the marks of this page, the curves beside it")
    parser.add_argument("--keep", action="store_true", help="keep the checkpoints of finished trainings")
    arguments = parser.parse_args()
    study = tomllib.loads((FOLDER / "study.toml").read_text(encoding="utf-8"))
    known = [part["name"] for part in study["parts"]]
    parts = arguments.parts.split(",") if arguments.parts else known
    if odd := [name for name in parts if name not in known]:
        raise SystemExit(f"the study has no part {odd[0]!r}; it has {', '.join(known)}")
    output: Path = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    if not arguments.tables:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        try:
            carry_out(study, parts, output, arguments.workers, arguments.steps, arguments.keep)
        except KeyboardInterrupt:
            raise SystemExit("\nstopped; the same command goes on") from None
    write_tables(study, output)
    text = (output / "tables.md").read_text(encoding="utf-8")
    if arguments.page:
        put_in(arguments.page, text)
        shutil.copyfile(output / "curves.svg", arguments.page.with_suffix(".svg"))
    else:
        print(text)


def put_in(page: Path, text: str) -> None:
    """Replace what stands between the two marks of a page."""
    head, mark, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, tail = rest.partition(MARKS[1])
    if not mark or not end:
        raise SystemExit(f"{page} has no place for the tables: {MARKS[0]} and {MARKS[1]}")
    page.write_text(f"{head}{mark}\n\n{text}\n{end}{tail}", encoding="utf-8")


def write_tables(study: Mapping[str, Any], output: Path) -> None:
    """``tables.md`` and ``curves.svg`` of the rows so far."""
    from reproduction_tables import curves, tables  # beside this file

    rows = read_rows(output)
    (output / "tables.md").write_text(tables(study, rows), encoding="utf-8")
    if drawn := curves(study, rows):
        (output / "curves.svg").write_text(drawn, encoding="utf-8")


# What there is to do


def warm_starts(study: Mapping[str, Any], parts: Sequence[str]) -> list[tuple[str, int]]:
    """The warm starts that the parts need, as (kind, seed), in the order of need."""
    kinds = dict.fromkeys(part["warm_start"] for part in study["parts"] if part["name"] in parts)
    return [(kind, seed) for kind in kinds for seed in study["warm_starts"][kind]["seeds"]]


def warm_start_job(study: Mapping[str, Any], output: Path, kind: str, seed: int) -> Job:
    overrides = (f"seed={seed}", *study["warm_starts"][kind]["set"])
    facts = {"part": "warm-starts", "cell": kind, "warm_start": kind, "warm_seed": seed}
    folder = str(output / "warm" / f"{kind}-{seed}")
    return Job(f"warm-starts/{kind}/{seed}", "warm_start.toml", folder, overrides, facts)


def look_job(study: Mapping[str, Any], output: Path, kind: str, seed: int) -> Job:
    look = study["look"]
    overrides = (f"seed={seed}", f"model.path={model(output, kind, seed)}", *look["set"])
    facts = {"part": "look", "cell": kind, "warm_start": kind, "warm_seed": seed}
    folder = str(output / "look" / f"{kind}-{seed}")
    return Job(f"look/{kind}/{seed}", "training.toml", folder, overrides, facts, tuple(look["recipes"]))


def training_jobs(study: Mapping[str, Any], output: Path, parts: Sequence[str], steps: int | None) -> Iterator[Job]:
    """The first training seed of every part, then the second; inside of a part all cells of one pair of seeds before
    the next, so that whatever there is compares."""
    chosen = [part for part in study["parts"] if part["name"] in parts]
    for training_seed in sorted({seed for part in chosen for seed in part["training_seeds"]}):
        for part in chosen:
            if training_seed not in part["training_seeds"]:
                continue
            for warm_seed in study["warm_starts"][part["warm_start"]]["seeds"]:
                for cell, overrides in part["cells"].items():
                    yield training_job(output, part, cell, overrides, warm_seed, training_seed, steps)


def training_job(
    output: Path, part: Mapping[str, Any], cell: str, overrides: Sequence[str], warm: int, seed: int, steps: int | None
) -> Job:
    kind = part["warm_start"]
    key = f"{part['name']}/{cell}/{warm}-{seed}"
    shorter = [f"trainer.steps={steps}"] if steps else []
    every = (f"seed={warm * 10 + seed}", f"model.path={model(output, kind, warm)}", *overrides, *shorter)
    facts = {"part": part["name"], "cell": cell, "warm_start": kind, "warm_seed": warm, "training_seed": seed}
    return Job(key, "training.toml", str(output / "runs" / key), every, facts)


def model(output: Path, kind: str, seed: int) -> str:
    return str(output / "warm" / f"{kind}-{seed}" / "checkpoints" / "final")


def read_rows(output: Path) -> list[dict[str, Any]]:
    path = output / ROWS
    rows = read_jsonl(path, torn_tail=True) if path.exists() else ()
    return list({row["key"]: row for row in rows}.values())


# Doing it


def carry_out(
    study: Mapping[str, Any], parts: Sequence[str], output: Path, workers: int, steps: int | None, keep: bool
) -> None:
    """Warm starts, then looks, then trainings; as many at a time as there are workers."""
    needed = warm_starts(study, parts)
    stages = [
        [warm_start_job(study, output, kind, seed) for kind, seed in needed],
        [*(look_job(study, output, kind, seed) for kind, seed in needed), *training_jobs(study, output, parts, steps)],
    ]
    keys = {job.key for stage in stages for job in stage}
    done = {row["key"] for row in read_rows(output)} & keys
    for job in stages[0]:  # rows may come from elsewhere; trainings need the weights themselves
        if not (Path(job.folder) / "checkpoints" / "final").is_dir():
            done.discard(job.key)
    total = len(keys)
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
    )
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(workers, mp_context=context, initializer=end_with_parent) as pool,
        bars if bars.console.is_terminal else Progress(disable=True) as shown,
    ):
        bar = shown.add_task("runs", total=total, completed=len(done), left="")
        seconds: list[float] = []
        for stage in stages:
            waiting = [job for job in stage if job.key not in done]
            running: set[Future[dict[str, Any]]] = set()
            while waiting or running:
                while waiting and len(running) < workers:
                    running.add(pool.submit(perform, waiting.pop(0), keep))
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    row = future.result()
                    append_jsonl(output / ROWS, [row])
                    done.add(row["key"])
                    seconds.append(row["wall_seconds"])
                    minutes = (total - len(done)) * sum(seconds) / len(seconds) / workers / 60
                    left = f"about {minutes:.0f} min left"
                    shown.update(bar, completed=len(done), left=left)
                    say = shown.console.print if bars.console.is_terminal else print
                    say(f"{len(done)}/{total}  {brief(row)}  {row['cpu_seconds']:.0f} s; {left}")
                    write_tables(study, output)


def brief(row: Mapping[str, Any]) -> str:
    """A finished run in a few words."""
    if not row.get("accuracy"):
        return str(row["key"])
    steps = list(row["accuracy"])
    ends = [steps[0], steps[-1]] if len(steps) > 1 else steps
    figures = " -> ".join("/".join(f"{100 * value:.0f}" for value in row["accuracy"][step].values()) for step in ends)
    return f"{row['key']}  {figures}" + (f"  alarm at {row['alarms'][0]}" if row.get("alarms") else "")


def end_with_parent() -> None:
    """A worker ends when the program that started it is gone: two of them must never write one folder."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        wait_for([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_corpora: dict[str, Any] = {}


def perform(job: Job, keep: bool) -> dict[str, Any]:
    """Carry out one job in this process, and return its row."""
    import callwright as cw

    began, cpu = time.monotonic(), time.process_time()
    name = "toolworld-mini-v1"
    corpus = _corpora.setdefault(name, cw.corpus(name))  # making its tasks takes longer than anything else but training
    recipe = FOLDER / job.recipe
    Path(job.folder).parent.mkdir(parents=True, exist_ok=True)
    run = cw.train(recipe, output=job.folder, overrides=job.overrides, corpus=corpus)
    row = {"key": job.key, **job.facts, **figures_of(run)}
    if job.lab:
        row["lab"] = lab(job)
    shown = " ".join(f"--set {override}" for override in job.overrides)
    row["command"] = f"callwright run benchmarks/reproduction/{job.recipe} {shown}"
    row["cpu_seconds"] = round(time.process_time() - cpu, 1)
    row["wall_seconds"] = round(time.monotonic() - began, 1)
    row["versions"] = versions()
    if not keep and job.facts["part"] != "warm-starts":
        shutil.rmtree(run.checkpoints)
    return row


def figures_of(run: Any) -> dict[str, Any]:
    """What a row keeps of a run: accuracy by step and depth, and the metrics in windows of steps."""
    evaluation, metrics = run.read_json("evaluation.json"), run.rows("metrics.jsonl")
    shown = {"0": evaluation["before"]}
    shown |= {str(part["step"]): part for part in evaluation["during"]}
    if metrics:
        shown[str(len(metrics))] = evaluation["after"]
    accuracy = {
        step: {depth: round(cell["accuracy"], 6) for depth, cell in part["by_depth"].items()}
        for step, part in shown.items()
    }
    means = ("reward", "zero_variance", "kl", "entropy")
    course = []
    for start in range(0, len(metrics), WINDOW):
        window = metrics[start : start + WINDOW]
        several = [row["multi_call"] for row in window]
        course.append(
            {
                "step": window[-1]["step"],
                **{name: mean(row.get(name) for row in window) for name in means},
                **{name: mean(row[name] for row in several) for name in ("parsed", "executed", "answered")},
                "calls": mean(row["calls"] for row in several),
                "calls_due": mean(row["calls_due"] for row in several),
            }
        )
    return {
        "accuracy": accuracy,
        "tasks": {depth: cell["n"] for depth, cell in evaluation["before"]["by_depth"].items()},
        "course": course,
        "alarms": [row["step"] for row in metrics if row["alarm"]],
        "rollouts": sum(row["rollouts"] for row in metrics),
        "tokens": sum(row["tokens"] for row in metrics),
        "masked": sum(row["masked"] for row in metrics),
    }


def mean(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 6) if known else None


def lab(job: Job) -> Any:
    """What ``callwright lab`` says of the rollouts of a look, under the rewards of the study."""
    command = [sys.executable, "-m", "callwright", "lab", job.folder, "--recipes", ",".join(job.lab), "--json"]
    return kept(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def kept(found: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the lab's answer that the tables read."""
    return {
        **{name: found[name] for name in ("attempts", "tasks", "right", "stages")},
        "recipes": {name: {key: cell[key] for key in ("mean", "groups")} for name, cell in found["recipes"].items()},
        "agreement": [pair for pair in found["agreement"] if pair["recipes"][1] not in found["recipes"]],
        "probes": {"probes": found["probes"]["probes"]},
    }


def versions() -> dict[str, str]:
    import torch
    import transformers

    import callwright as cw

    return {
        "callwright": cw.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "machine": platform.machine(),
    }


if __name__ == "__main__":
    main()
