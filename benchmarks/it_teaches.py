"""Does training on synthesised tasks teach? Held-out accuracy before and after, with the gates, without, and spoiled.

    OMP_NUM_THREADS=1 python benchmarks/it_teaches.py [--seeds 1-5] [--output runs/it-teaches] [--only-files]

``callwright synthesize`` makes tasks of the village (seven tools), in other worlds for each purpose: to show, to train
on, to hold out. One policy is warm-started on the shown conversations. From where it ended three are trained for each
seed by the recipe ``synthesised-cpu``, on the same number of tasks:

- ``gated``: tasks that passed the gates;
- ``ungated``: the same plans without the gates;
- ``spoiled``: the gated ones, of which ``--share`` are spoiled in four ways, as another teacher's errors would be.

Printed is how many held-out tasks reach their goal (greedily), with two intervals: one takes what the seeds make of one
task as a cluster, the other one what one seed makes of all tasks. What is finished already is not made again;
``it_teaches.json`` holds every verdict.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import click

import callwright as cw
from callwright.environments.sessions import open_session
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.statistics.intervals import mean_interval
from callwright.statistics.paired import bootstrap_difference
from callwright.training.evaluation import evaluate
from callwright.training.run_folder import write_atomically
from callwright_plugins.synthesis.gates import gate
from callwright_plugins.task_files.habits import ENOUGH

RECIPE: Final = "synthesised-cpu"
ARMS: Final = ("gated", "ungated", "spoiled")
ENVIRONMENT: Final = "village-bakery+village-purse"
#: What tasks are like: one request of one or two calls; in many of them something is held back.
KNOBS: Final[Mapping[str, Any]] = {
    "calls": 1500,
    "distractors": 0.0,
    "stripped": 0.0,
    "longest": 2,
    "parallel": 0.0,
    "two_goals": 0.0,
    "chains": 0.65,
    "several_servers": 0.0,
    "recoveries": 0.0,
    "failing": 0.0,
    "irrelevance": 0.0,
    "missing": 0.5,
    "minimal": 0.0,
    "least_turns": 1,
    "most_turns": 1,
    "refreshed": 3,
    "clarifications": 0.0,
    "abstentions": 0.06,
}
#: Name, seed, how many plans are asked for, whether the gates are there. With one seed the village has little more than
#: two hundred short conversations to give of which no two are nearly the same.
SYNTHESES: Final = (
    ("gated", 0, 400, True),
    ("ungated", 0, 400, False),
    ("held-out", 2, 260, True),
    *((f"shown-{seed}", seed, 240, False) for seed in range(3, 6)),
    *((f"shown-{seed}", seed, 120, False) for seed in range(6, 10)),
)
#: Its result is longer than everything else that is said in a task.
LISTING: Final = "list_cakes"
#: Worlds are drawn from seeds below this. Other ones, in which conversations are only shown, begin here.
WORLDS: Final = 1_000_000
#: In how many other worlds each shown conversation is shown, too.
OTHER_WORLDS: Final = 6
CAKES: Final = ("honey", "poppy", "lemon", "carrot", "walnut", "cherry", "apple")

Row = dict[str, Any]


# Files ----------------------------------------------------------------------------------------------------------------


def synthesised(output: Path, name: str, seed: int, count: int, gates: bool) -> tuple[str, list[Row]]:
    """The head and the rows of one synthesis; made by the command, which goes on where it was stopped."""
    folder = output / "synthesis" / name
    tasks = folder / "tasks.jsonl"
    if not tasks.is_file():
        options = {**KNOBS, "gates": gates, "cache": str((output / "knowledge").absolute())}
        recipe = output / "synthesis" / f"{name}.toml"
        recipe.parent.mkdir(parents=True, exist_ok=True)
        lines = [f'name = "{name}"', "", "[synthesis]", f'environments = ["{ENVIRONMENT}"]']
        lines += [f"count = {count}", f"seed = {seed}", "", "[synthesis.synthesizer]", 'name = "grounded"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in options.items()]
        recipe.write_text("\n".join(lines) + "\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "callwright", "synthesize", recipe, "-o", folder], check=True)
    head, *rows = tasks.read_text(encoding="utf-8").splitlines()
    return head, [json.loads(row) for row in rows]


def short(row: Row) -> bool:
    """What a tiny policy can read: one or two calls, a query of a few words, no listing, no tool that appears later."""
    calls = [call["name"] for step in row["facts"]["steps"] for call in step["calls"]]
    return len(calls) <= 2 and len(row["query"].split()) <= 45 and not row.get("appear") and LISTING not in calls


def as_split(rows: Iterable[Row], split: str, prefix: str) -> list[Row]:
    """Short tasks with a split and ids of their own."""
    some = [row for row in rows if short(row)]
    return [{**row, "split": split, "id": f"{prefix}-{number:05}"} for number, row in enumerate(some)]


def demonstrated(rows: Iterable[Row]) -> list[Row]:
    """What the warm start is shown: each conversation in its own world and in others, with curt last words."""
    rng = Random("shown")
    some = [curt(row) for row in rows if short(row)]
    return as_split(
        (one for row in some for one in (row, *(moved(row, rng) for _ in range(OTHER_WORLDS)))), "train", "shown"
    )


def curt(row: Row) -> Row:
    """Says that all is done after the last result, and not what that was: less to sample."""
    gold = row["facts"]["gold"]
    if not gold[-2:-1] or not gold[-2].get("calls"):
        return row
    return {**row, "facts": {**row["facts"], "gold": [*gold[:-1], {"say": ENOUGH}]}}


def moved(row: Row, rng: Random) -> Row:
    """The same conversation in another world, with its password and other cakes: what tools return is found there anew
    when the reference is executed. What the row says of results is not true any more, and nobody asks for it.
    """
    seed = rng.randrange(WORLDS, 2 * WORLDS)
    others = {**dict(zip(CAKES, rng.sample(CAKES, len(CAKES)), strict=True)), password(row["seed"]): password(seed)}
    spoken = json.dumps([row["query"], row["user"], row["facts"]])
    query, user, facts = json.loads(re.sub("|".join(others), lambda found: others[found.group()], spoken))
    return {**row, "seed": seed, "query": query, "user": user, "facts": facts}


def password(seed: int) -> str:
    """What the owner of the purse knows in a world."""
    session: Any = open_session(cw.environment(ENVIRONMENT), "", seed)
    try:
        return str(session.knowledge("me")["password"])
    finally:
        session.close()


def write(path: Path, head: str, rows: Sequence[Row]) -> None:
    write_atomically(path, "\n".join([head, *(json.dumps(row) for row in rows)]) + "\n")


def make_files(output: Path, share: float) -> dict[str, Any]:
    """The files of the arms, the shown conversations, and what is to be said of them."""
    made = {name: synthesised(output, name, seed, count, gates) for name, seed, count, gates in SYNTHESES}
    head = made["gated"][0]
    shown = demonstrated(row for name in made if name.startswith("shown") for row in made[name][1])
    held = as_split(made["held-out"][1], "evaluation", "held-out")
    gated = as_split(made["gated"][1], "train", "task")
    ungated = as_split(made["ungated"][1], "train", "task")
    count = min(len(gated), len(ungated))
    gated, ungated = gated[:count], ungated[:count]
    spoiled, kinds = spoil(gated, share)
    for arm, rows in zip(ARMS, (gated, ungated, spoiled), strict=True):
        write(output / f"{arm}.jsonl", head, [*rows, *held])
    write(output / "shown.jsonl", head, shown)
    worlds = {
        name: {row["seed"] for row in rows} for name, rows in (("shown", shown), ("held", held), ("gated", gated))
    }
    queries = {row["query"] for rows in (shown, gated) for row in rows}
    return {
        "tasks": count,
        "accepted by the gates": len(made["gated"][1]),
        "of plans": len(made["ungated"][1]),
        "shown": len(shown),
        "held out": len(held),
        "held-out worlds also trained in or shown": len(worlds["held"] & (worlds["shown"] | worlds["gated"])),
        "held-out queries also trained on or shown": sum(row["query"] in queries for row in held),
        "tasks of both gated and ungated": len(words_of(gated) & words_of(ungated)),
        "spoiled": dict(kinds),
        "spoiled and rejected by the gates": dict(rejected(output / "spoiled.jsonl", kinds)),
    }


def words_of(rows: Sequence[Row]) -> set[str]:
    return {json.dumps([row["query"], row["seed"], row["facts"]["steps"]]) for row in rows}


# Spoiling -------------------------------------------------------------------------------------------------------------


def spoil(rows: Sequence[Row], share: float) -> tuple[list[Row], Counter[str]]:
    """The same tasks, ``share`` of them spoiled; the kinds take turns, and where one cannot be it is the next one's."""
    rng = Random("spoiled")
    able = [place for place, row in enumerate(rows) if row["facts"]["kind"] == "task" and row["facts"]["steps"]]
    chosen = set(rng.sample(able, min(len(able), round(share * len(rows)))))
    found, kinds = [], Counter[str]()
    for number, row in enumerate(rows):
        bad = None
        if number in chosen:
            for place in range(len(SPOILING)):
                kind = list(SPOILING)[(kinds.total() + place) % len(SPOILING)]
                bad = SPOILING[kind](json.loads(json.dumps(row)), rng)
                if bad is not None:
                    kinds[kind] += 1
                    bad["id"] = f"{kind.replace(' ', '-')}-{number:05}"
                    break
        found.append(bad or row)
    return found, kinds


def unsolvable(row: Row, rng: Random) -> Row | None:
    """A tool that is due is not offered."""
    if not row["facts"]["steps"]:
        return None
    gone = row["facts"]["steps"][-1]["calls"][-1]["name"]
    return {**row, "tools": [tool for tool in row["tools"] if tool != gone]}


def already_solved(row: Row, rng: Random) -> Row | None:
    """The reference does nothing about what is asked for, and the goal agrees with it."""
    if not row["facts"]["steps"] or row["facts"].get("changes_nothing"):
        return None
    empty = {"state": {"form": "parts", "parts": {}}}
    facts = {**row["facts"], "steps": [], "goal": empty, "gold": [{"say": "It is done."}]}
    row["user"]["options"]["satisfied"] = empty
    row.pop("program", None)
    return {**row, "facts": facts}


def foreign(row: Row, rng: Random) -> Row | None:
    """The user speaks of another cake or number than the reference takes."""
    said = json.dumps([row["query"], row["user"]])
    for call in (call for step in row["facts"]["steps"] for call in step["calls"]):
        for value in call["arguments"].values():
            if isinstance(value, str) and value in CAKES and value in said:
                other = rng.choice([cake for cake in CAKES if cake != value])
            elif type(value) is int and f" {value}" in row["query"]:
                other = f" {value + rng.randint(1, 5)}"
                value = f" {value}"
            else:
                continue
            spoken = json.dumps({key: one for key, one in row["user"]["options"].items() if key != "satisfied"})
            options = {**row["user"]["options"], **json.loads(spoken.replace(value, other))}
            return {
                **row,
                "query": row["query"].replace(value, other),
                "user": {**row["user"], "options": options},
            }
    return None


def wrong_gold(row: Row, rng: Random) -> Row | None:
    """The reference ends a call too early."""
    steps, gold = row["facts"]["steps"], row["facts"]["gold"]
    last = max((place for place, turn in enumerate(gold) if turn.get("calls")), default=None)
    if len(steps) < 2 or last is None or len(steps[-1]["calls"]) > 1:
        return None
    gold[last]["calls"].pop()
    kept = [turn for turn in gold if turn.get("calls") != []]
    row.pop("program", None)
    return {**row, "facts": {**row["facts"], "steps": steps[:-1], "gold": kept}}


SPOILING: Final = {
    "unsolvable": unsolvable,
    "already solved": already_solved,
    "foreign entity": foreign,
    "wrong gold": wrong_gold,
}


def rejected(file: Path, kinds: Mapping[str, int]) -> Counter[str]:
    """How many of the spoiled tasks the gates reject, by kind."""
    found: Counter[str] = Counter()
    for task in cw.read_tasks(file).splits["train"]:
        kind = task.id.rpartition("-")[0].replace("-", " ")
        if kind in kinds:
            found[kind] += gate(task).rejected is not None
    return found


# Runs -----------------------------------------------------------------------------------------------------------------


def trained(output: Path, seed: int, start: int, arms: Sequence[str], settings: Sequence[str]) -> dict[str, Any]:
    """Everything of one seed: the warm start, the arms, and what each makes of the held-out tasks."""
    base = output / f"start-{start}"
    always = [f"corpus.shown={output / 'shown.jsonl'}", "trainer.evaluation_tasks=1"]
    found: dict[str, Any] = {}
    first = [f"seed={start}", f"corpus.file={output / 'gated.jsonl'}", "trainer.steps=0"]
    found["before"] = run_once(base, [*always, *first])
    for arm in arms:
        overrides = [*always, f"seed={seed}", f"corpus.file={output / f'{arm}.jsonl'}", f"model={base}"]
        found[arm] = run_once(base / f"{arm}-{seed}", [*overrides, "trainer.warm_start=0", *settings])
    return found


def run_once(run: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """One run and its verdicts on the held-out tasks, read where they are there."""
    kept = run / "held_out.json"
    if kept.is_file():
        read: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return read
    began = time.process_time()
    print("callwright run", RECIPE, "--output", run, *(f"--set {one}" for one in overrides), flush=True)
    cw.train(RECIPE, output=run, overrides=list(overrides))
    took = time.process_time() - began
    pipeline = build_pipeline(load_recipe(RECIPE, list(overrides)))
    sampler: Any = cw.sampler("local-model", model=str(run), max_new_tokens=40, corpus=pipeline.corpus)
    tasks = pipeline.tasks("evaluation")
    verdicts = evaluate(pipeline, tasks, sampler)
    metrics = run / "metrics.jsonl"  # a warm start alone has none
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.is_file() else []
    rows = [json.loads(line) for line in lines]
    result = {
        "right": {one.task: bool(one.answer) for one in verdicts},
        "kind": {task.id: kind_of(task) for task in tasks},
        "reward": [row["reward"] for row in rows],
        "cpu seconds": round(took, 1),
    }
    write_atomically(kept, json.dumps(result) + "\n")
    return result


def kind_of(task: cw.Task) -> str:
    """One call, a chain, something to ask for, a rule that forbids, or nothing that fits."""
    kind = str(task.facts["kind"])
    if kind != "task":
        return kind
    if task.facts["information"] != "complete":
        return "asks"
    return "chain" if len(task.facts["steps"]) > 1 else "one call"


# Figures --------------------------------------------------------------------------------------------------------------


def accuracy(runs: Sequence[Mapping[str, Any]]) -> tuple[float, float, float]:
    """The share of right verdicts with its 95% interval; all verdicts on one task are a cluster."""
    names = list(runs[0]["right"])
    found = mean_interval([math.fsum(run["right"][name] for run in runs) / len(runs) for name in names])
    assert found.mean is not None
    assert found.low is not None
    assert found.high is not None
    return found.mean, max(0.0, found.low), min(1.0, found.high)


def difference(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> str:
    """The paired difference of two arms over the same seeds and tasks, by a bootstrap over tasks and one over seeds."""
    table = [
        [float(two["right"][name]) - float(one["right"][name]) for name in one["right"]]
        for one, two in zip(first, second, strict=True)
    ]
    over_tasks, over_seeds = bootstrap_difference(zip(*table, strict=True)), bootstrap_difference(table)
    assert over_tasks.difference is not None
    told = f"{100 * over_tasks.difference:+.1f}"
    for name, found in (("tasks", over_tasks), ("seeds", over_seeds)):
        if found.clusters > 1:
            assert found.low is not None
            assert found.high is not None
            told += f", over {name} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    return told


def mean(run: Mapping[str, Any]) -> float:
    right: Mapping[str, bool] = run["right"]
    return sum(right.values()) / len(right)


def called(task: cw.Task) -> str:
    """The tools that are due, and what the user holds back."""
    withheld = [one["argument"] for stage in task.facts["stages"] for one in stage["withheld"]]
    tools = " + ".join(call["name"] for step in task.facts["steps"] for call in step["calls"])
    return tools if not withheld else f"{tools}, {' and '.join(withheld)} held back"


def by_part(runs: Mapping[str, Sequence[Mapping[str, Any]]], parts: Mapping[str, str], title: str) -> None:
    """The share of right verdicts of each part of the tasks, over all seeds."""
    print(f"\n{title:>44} {'tasks':>6}" + "".join(f"{arm:>10}" for arm in runs))
    for part, size in sorted(Counter(parts.values()).items()):
        cells = {
            arm: [run["right"][name] for run in some for name in run["right"] if parts.get(name) == part]
            for arm, some in runs.items()
        }
        shares = "".join(f"{100 * sum(cell) / len(cell):>9.1f}%" for cell in cells.values())
        print(f"{part:>44} {size:>6}{shares}")


def report(found: Mapping[int, Mapping[str, Any]], held_out: Iterable[cw.Task]) -> None:
    """Print the tables."""
    seeds = sorted(found)
    arms = tuple(found[seeds[0]])
    print(f"\n{'seed':>8}  " + "".join(f"{arm:>10}" for arm in arms))
    for seed in seeds:
        print(f"{seed:>8}  " + "".join(f"{100 * mean(found[seed][arm]):>9.1f}%" for arm in arms))
    runs = {arm: [found[seed][arm] for seed in seeds] for arm in arms}
    for arm in arms:
        value, low, high = accuracy(runs[arm])
        print(f"{arm:>8}  {100 * value:.1f}% [{100 * low:.1f}, {100 * high:.1f}]", end="")
        if arm == "before":
            print()
            continue
        print(f"   gain {difference(runs['before'], runs[arm])}")
    for other in (arm for arm in arms if arm not in ("before", "gated") and "gated" in arms):
        print(f"gated against {other}: {difference(runs[other], runs['gated'])}")
    by_part(runs, found[seeds[0]]["before"]["kind"], "kind")
    by_part(runs, {task.id: called(task) for task in held_out if task.facts["kind"] == "task"}, "calls")
    for arm in arms[1:]:
        rewards = [run["reward"] for run in runs[arm]]
        told = " ".join(f"{sum(one[place] for one in rewards) / len(rewards):.2f}" for place in tenths(len(rewards[0])))
        print(f"reward {arm:>8}, every tenth of the way: {told}")


def tenths(steps: int) -> list[int]:
    return sorted({min(steps - 1, steps * tenth // 10) for tenth in range(11)})


@click.command()
@click.option("--seeds", default="1-5", show_default=True, help="The first and the last one.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("runs/it-teaches"), show_default=True)
@click.option("--share", default=0.3, show_default=True, help="Of the tasks of the arm 'spoiled', how many are.")
@click.option("--start", default=0, show_default=True, help="The seed of the warm start, which all runs share.")
@click.option("--arms", default=",".join(ARMS), show_default=True, help="Which, with commas between them.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Of the recipe, for the arms.")
@click.option("--only-files", is_flag=True, help="Make the files of tasks and no run.")
def main(
    seeds: str, output: Path, share: float, start: int, arms: str, settings: tuple[str, ...], only_files: bool
) -> None:
    """Train, measure, and print the tables."""
    output.mkdir(parents=True, exist_ok=True)
    about_path = output / "files.json"
    if about_path.is_file():
        about = json.loads(about_path.read_text(encoding="utf-8"))
    else:
        about = make_files(output, share)
        write_atomically(about_path, json.dumps(about, indent=2) + "\n")
    print(json.dumps(about, indent=2), flush=True)
    if only_files:
        return
    first, _, last = seeds.partition("-")
    found: dict[int, Any] = {}
    for seed in range(int(first), int(last or first) + 1):
        found[seed] = trained(output, seed, start, [arm for arm in arms.split(",") if arm], settings)
        write_atomically(output / "it_teaches.json", json.dumps({"files": about, "seeds": found}, indent=1) + "\n")
        print(f"seed {seed}: " + ", ".join(f"{arm} {100 * mean(one):.1f}%" for arm, one in found[seed].items()))
    report(found, cw.read_tasks(output / "gated.jsonl").splits["evaluation"])


if __name__ == "__main__":
    main()
