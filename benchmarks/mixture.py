"""The whole mixture, from blueprints to a file of tasks that every gate has let pass: time, counts, shares, coverage.

    python benchmarks/mixture.py [--count 13517] [--workers 2] [--cache FOLDER] [--check 500]

Exploring and proving come first, are kept in --cache, and are not counted. The synthesis itself is planning,
conversations, gates, near-duplicates and the files, by ``callwright synthesize`` with processes. Printed are the wall
and the processor seconds of all processes; how many units were accepted, and the rejected ones by stage and reason; the
knobs with what was asked for beside what came of it; and the coverage of tools, edges and failures by accepted
conversations. ``--check`` draws so many of the tasks (0: none, -1: all) and runs ``callwright synthesize check`` on
them, which replays each in a fresh process and runs all gates again.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

import callwright as cw
from callwright.plugins import default_registry
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, pairs_of
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, cache_folder, known

RECIPE = """name = "mixture"

[synthesis]
environments = [{environments}]
count = {count}
seed = {seed}
executor = "{executor}"
workers = {workers}

[synthesis.synthesizer]
name = "grounded"
cache = "{cache}"
"""


def seconds() -> float:
    """Processor seconds of this process and of all that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Callwright."""
    return subprocess.run([sys.executable, "-m", "callwright", *words], capture_output=True, text=True)


def rows(file: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of tasks in a file."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if "query" in row:
                yield row


def shares(blueprints: Sequence[Blueprint]) -> Iterator[tuple[str, float, float]]:
    """What the knobs ask shares of: the name, the share that was asked for, and what came of it, in per cent."""
    knobs, counts = Knobs(), Counter[str]()
    for one in blueprints:
        talk = one.kind in ("task", "failing")
        counts.update(
            {
                "all": 1,
                one.kind: 1,
                "distractors": bool(one.distractors),
                "stripped": bool(one.stripped),
                "talks": talk,
                "irrelevance": talk and bool(one.stages[-1].elsewhere),
                "several servers": "+" in one.environment,
            }
        )
        for stage in one.stages:
            if talk and stage.calls:
                counts.update(("turns", stage.information))
    complete = 1 - knobs.missing - knobs.minimal
    for name, asked, of in (
        ("clarification", knobs.clarifications, "all"),
        ("abstention", knobs.abstentions, "all"),
        ("distractors", knobs.distractors, "all"),
        ("stripped", knobs.stripped, "all"),
        ("irrelevance", knobs.irrelevance, "talks"),
        ("several servers", knobs.several_servers, "talks"),
        ("complete", complete, "turns"),
        ("missing", knobs.missing, "turns"),
        ("minimal", knobs.minimal, "turns"),
    ):
        yield name, 100 * asked, 100 * counts[name] / max(1, counts[of])


def coverage(blueprints: Sequence[Blueprint], knowledge: Mapping[str, Knowledge]) -> Iterator[str]:
    """How many tools, edges and failures of each environment accepted conversations hold, in words."""
    tools: Counter[tuple[str, str]] = Counter()
    pairs: set[tuple[str, str, str]] = set()
    cells: set[tuple[str, str, str]] = set()
    for one in blueprints:
        if "+" in one.environment:
            continue
        tools.update((one.environment, tool) for tool in {call.tool for stage in one.stages for call in stage.calls})
        pairs |= {(one.environment, *pair) for pair in pairs_of(one.stages)}
        if one.recovers[0]:
            cells.add((one.environment, *one.recovers))
    there = [(name, tool) for name, found in knowledge.items() for tool in found.explored.witnesses]
    edges = {(name, *pair) for name, found in knowledge.items() for pair in found.graph.pairs()}
    codes = {
        (name, tool, code)
        for name, found in knowledge.items()
        for tool, failures in found.explored.failures.items()
        for code in failures
    }
    least = min(there, key=lambda one: tools[one])
    yield f"tools in 20 conversations or more: {sum(tools[one] >= 20 for one in there)} of {len(there)}"
    yield f"least called: {least[1]} of {least[0]}, in {tools[least]}"
    yield f"edges: {len(pairs & edges):,} of {len(edges):,} ({100 * len(pairs & edges) / max(1, len(edges)):.1f}%)"
    yield f"failures: {len(cells & codes)} of {len(codes)} ({100 * len(cells & codes) / max(1, len(codes)):.1f}%)"


@click.command()
@click.argument("environments", nargs=-1)
@click.option("--count", default=13_517, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--workers", default=2, show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), default=cache_folder)
@click.option("--check", "checked", default=500, show_default=True, help="How many tasks are checked again.")
@click.option("-o", "kept", type=click.Path(path_type=Path), help="Where the synthesis is kept.")
def main(
    environments: tuple[str, ...], count: int, seed: int, workers: int, cache: Path, checked: int, kept: Path | None
) -> None:
    """Make the mixture of these environments (default: all twenty), and print what it came to."""
    names = list(environments or TOOLS)
    knowledge = {name: known(cw.environment(name), registry=default_registry(), cache=cache) for name in names}
    with TemporaryDirectory() as folder:
        recipe, out = Path(folder) / "mixture.toml", kept or Path(folder) / "mixture"
        named = ", ".join(map(json.dumps, names))
        executor = "process" if workers > 1 else "serial"
        recipe.write_text(
            RECIPE.format(
                environments=named, count=count, seed=seed, executor=executor, workers=workers, cache=cache.resolve()
            )
        )
        began, used = time.perf_counter(), seconds()
        done = command("synthesize", str(recipe), "-o", str(out))
        took, used = time.perf_counter() - began, seconds() - used
        if done.returncode:
            raise SystemExit(done.stderr)
        yields = json.loads((out / "manifest.json").read_text())["yields"]
        print(f"{took:.0f} s, {used:.0f} s of CPU, {1000 * used / max(1, yields['planned']):.1f} ms of it a unit")
        print(
            f"{count:,} asked for, {yields['planned']:,} planned, {yields['accepted']:,} accepted, "
            f"{yields['kept']:,} kept"
        )
        for stage, reasons in yields["rejected"].items():
            for reason, number in reasons.items():
                print(f"  {stage}: {reason}: {number:,}")
        tasks = list(rows(out / "tasks.jsonl"))
        made = [Blueprint.from_json(row["facts"]["blueprint"]) for row in tasks]
        own = Counter(row["id"].rpartition("-")[0] for row in tasks)
        for place, name in enumerate(names):
            wanted = count // len(names) + (place < count % len(names))
            if own[name.replace("_", "-")] != wanted:
                print(f"{name}: {own[name.replace('_', '-')]} of {wanted}")
        for name, share, found in shares(made):
            print(f"{name}: {share:.1f}% asked for, {found:.1f}%{'' if abs(share - found) <= 1 else '  OFF'}")
        for line in coverage(made, knowledge):
            print(line)
        if checked:
            check(out / "tasks.jsonl", Path(folder) / "some.jsonl", checked)


def check(file: Path, some: Path, number: int) -> None:
    """All gates again, in fresh processes, on some of the tasks."""
    with file.open(encoding="utf-8") as lines:
        texts = list(lines)
    head = [text for text in texts if "query" not in json.loads(text)]
    tasks = [text for text in texts if "query" in json.loads(text)]
    drawn = tasks if number < 0 else random.Random(0).sample(tasks, min(number, len(tasks)))
    some.write_text("".join([*head, *drawn]), encoding="utf-8")
    began = seconds()
    done = command("synthesize", "check", str(some), "--against", "none")
    print(done.stdout.strip() or done.stderr.strip())
    print(f"checked {len(drawn):,} tasks again in {seconds() - began:.0f} s of CPU: exit status {done.returncode}")


if __name__ == "__main__":
    main()
