"""``callwright synthesize difficulty``: how difficult tasks are for a solver, and harder ones for those too easy."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName, Finite
from callwright.commands.safe_text import say
from callwright.errors import DataError, UnknownName, UsageError

if TYPE_CHECKING:
    from callwright.environments.protocol import Environment
    from callwright.measuring.difficulty import Difficulty
    from callwright.walk.task_rows.reading import TaskFile
    from callwright.walk.tasks import Task
    from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
    from callwright_plugins.synthesis.hardening.rounds import Hardened

TASKS: Final = "tasks.jsonl"
_REJECTED: Final = "rejected.jsonl"
_MANIFEST: Final = "manifest.json"
_SETTINGS: Final = "settings.json"
_FIRST: Final = "evaluation"
_BINS: Final = 10


@click.command("difficulty")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Where all goes.")
@click.option(
    "--evaluation",
    "evaluations",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Take the attempts of callwright evaluate --samples -o DIR. Repeatable.",
)
@click.option("--sampler", type=ComponentName("sampler"), metavar="NAME", help="Have this solver attempt the tasks.")
@click.option("--sampler-option", "given", multiple=True, metavar="K=V", help="An option of the solver.")
@click.option("--samples", type=click.IntRange(min=1), default=8, show_default=True, metavar="N", help="Attempts each.")
@click.option("--temperature", type=Finite(min=0), default=1.0, show_default=True, help="Of its sampling.")
@options.ir_option
@click.option("--reward", type=ComponentName("reward recipe"), metavar="NAME", help="Keep this reward's spread, too.")
@click.option("--split", metavar="NAME", help="Which tasks it attempts. Default: train, or the only split.")
@options.seed_option
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that attempt.")
@click.option("--max-cost", type=Finite(min=0, min_open=True), metavar="COST", help="Of each evaluation.")
@click.option("--harden", "rounds", type=click.IntRange(min=0), default=0, metavar="N", help="Up to N changes to each.")
@click.option("--too-easy", default=0.9, show_default=True, metavar="SHARE", help="From which pass@1 on.")
@click.option("--calls", type=click.IntRange(min=1), metavar="N", help="For each seed that is explored to harden.")
@click.option("--cache", type=click.Path(path_type=Path), metavar="DIR", help="Where what is explored is kept.")
@click.option("--any-version", is_flag=True, help="Environments of other versions with equal tools do.")
@click.option("--trust", is_flag=True, help="The file's environments may start programs and send secrets.")
@options.json_option
@click.pass_context
def difficulty_(
    ctx: click.Context,
    file: Path,
    output: Path,
    evaluations: tuple[Path, ...],
    sampler: str | None,
    given: tuple[str, ...],
    samples: int,
    temperature: float,
    ir: str,
    reward: str | None,
    split: str | None,
    seed: int,
    workers: int,
    max_cost: float | None,
    rounds: int,
    too_easy: float,
    calls: int | None,
    cache: Path | None,
    any_version: bool,
    trust: bool,
    as_json: bool,
) -> None:
    """Give each task of FILE how often a solver solves it (pass@1, pass@N, the spread of rewards), in DIR/tasks.jsonl.

    The attempts are those of an evaluation that is there (--evaluation), or are made now by --sampler. With --harden
    tasks that are too easy get a step, a parameter that is not said at first, tools that can be confused, or a
    constraint. What is made so passes all gates again, and is dropped where the same solver finds it easier than
    before. The corpus 'tasks' then takes a band: pass_from=0.1, pass_to=0.9.

    The same command goes on where it was stopped: attempts are those of callwright evaluate, which loses none.
    """
    from callwright.walk.task_rows.reading import read_tasks
    from callwright_plugins.synthesis.report.folders import task_file

    app = ctx.ensure_object(App)
    if (sampler is None) == (not evaluations):
        raise UsageError("name whose attempts count: either --evaluation DIR or --sampler NAME")
    if sampler is None and (given or rounds):
        raise UsageError("--harden needs a solver that attempts the harder tasks, too: name it with --sampler")
    path = task_file(file)
    tasks = read_tasks(path, any_version=any_version, trust=trust, registry=app.registry)
    if not tasks:
        raise DataError(f"{path} holds no tasks")
    if (output / TASKS).resolve() == path.resolve():
        raise UsageError(f"{output} holds FILE itself; choose another folder (-o)")
    rows = [tasks.row(place) for place in range(len(tasks))]
    output.mkdir(parents=True, exist_ok=True)
    _settle(output, path, {**ctx.params, "file": None, "output": None, "workers": None, "max_cost": None})
    if sampler is None:
        measured, hardened = _joined(evaluations, rows), None
    else:
        chosen = split or ("train" if "train" in tasks.splits else next(iter(tasks.splits)))
        if chosen not in tasks.splits:
            raise UnknownName(f"split of {path.name}", chosen, tasks.splits)
        words = [
            *("--sampler", sampler, "--samples", str(samples), "--temperature", str(temperature), "--ir", ir),
            *(part for one in given for part in ("--sampler-option", one)),
            *("--split", chosen, "--seed", str(seed), "--workers", str(workers)),
            *(() if reward is None else ("--reward", reward)),
            *(() if max_cost is None else ("--max-cost", str(max_cost))),
            *(("--corpus-option", "any_version=true") if any_version else ()),
            *(("--corpus-option", "trust=true") if trust else ()),
        ]
        measured = _attempted(ctx, path, output / _FIRST, words)
        hardened = None
        if rounds:
            hardened = _hardened(
                ctx,
                tasks,
                chosen,
                measured,
                rounds,
                output,
                words,
                too_easy,
                seed,
                _knowing(app, calls, cache or output),
            )
    told = _write(app, tasks, rows, measured, hardened, output)
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    for line in _lines(told):
        click.echo(line)
    click.echo(f"{told['tasks']:,} tasks in {output / TASKS}")


# Attempts -------------------------------------------------------------------------------------------------------------


def _joined(evaluations: Sequence[Path], rows: Sequence[Mapping[str, Any]]) -> dict[str, Difficulty]:
    from callwright.measuring.difficulty import difficulties_in
    from callwright.measuring.folders import read_evaluated

    found: dict[str, Difficulty] = {}
    for path in evaluations:
        for task, one in difficulties_in(read_evaluated(path), rows).items():
            if task in found:
                raise UsageError(f"two evaluations hold attempts at {task!r:.80}; whose count? Name one of them")
            found[task] = one
    return found


def _attempted(ctx: click.Context, file: Path, folder: Path, words: Sequence[str]) -> dict[str, Difficulty]:
    """Have the solver attempt a file, or go on with that, by ``callwright evaluate``."""
    from callwright.commands.jsonl import own_stdout
    from callwright.measuring.difficulty import difficulties_in
    from callwright.measuring.folders import read_evaluated
    from callwright.walk.task_rows.reading import read_rows

    root = ctx.find_root().command
    line = ["evaluate", "--corpus", "tasks", "--corpus-option", f"file={file.absolute()}", *words, "-o", str(folder)]
    with own_stdout(), root.make_context("callwright", line, obj=ctx.obj) as inner:
        root.invoke(inner)
    return difficulties_in(read_evaluated(folder), read_rows(file)[1])


# Hardening ------------------------------------------------------------------------------------------------------------


def _knowing(app: App, calls: int | None, folder: Path) -> Callable[[Environment], Knowledge]:
    from callwright_plugins.synthesis.blueprints.knowledge import known

    def knowledge(environment: Environment) -> Knowledge:
        say(f"exploring {environment.name}, unless that is kept")
        return known(environment, registry=app.registry, calls=calls, cache=folder / "knowledge")

    return knowledge


def _hardened(
    ctx: click.Context,
    tasks: TaskFile,
    split: str,
    measured: Mapping[str, Difficulty],
    rounds: int,
    output: Path,
    words: Sequence[str],
    too_easy: float,
    seed: int,
    knowledge: Callable[[Environment], Knowledge],
) -> Hardened:
    from callwright.walk.task_rows.writing import write_tasks
    from callwright_plugins.synthesis.hardening.rounds import Hardening

    registry = ctx.ensure_object(App).registry

    def measure(number: int, made: Sequence[Task]) -> Mapping[str, Difficulty]:
        say(f"round {number}: {len(made):,} harder tasks passed the gates, and are attempted")
        folder = output / f"round-{number}"
        folder.mkdir(exist_ok=True)
        write_tasks(folder / TASKS, made, limits=tasks.head.limits, registry=registry)
        return _attempted(ctx, folder / TASKS, folder / _FIRST, words)

    every = [task for name in tasks.splits for task in tasks.splits[name]]
    learnt = {task.id for task in tasks.splits[split]}
    known = {name: one for name, one in measured.items() if name in learnt}
    return Hardening(registry, knowledge, too_easy, seed).run(every, known, rounds, measure)


# What is written ------------------------------------------------------------------------------------------------------


def _settle(folder: Path, path: Path, params: Mapping[str, Any]) -> None:
    """Refuse a folder of anything else; write down what this one is of."""
    from callwright.errors import FolderTaken
    from callwright.training.run_folder import Run, write_atomically

    stated = {name: value for name, value in params.items() if value not in (None, (), False)}
    stated = {"tasks": _digest(path), **json.loads(json.dumps(stated, default=str))}
    before = Run(folder).read_json(_SETTINGS)
    if before is None and any(folder.iterdir()):
        raise FolderTaken(f"{folder} is not empty and holds no measured tasks; choose another folder (-o)")
    if before is not None and before != stated:
        differing = sorted(key for key in {*before, *stated} if before.get(key) != stated.get(key))
        raise FolderTaken(f"{folder} was made with other settings ({', '.join(differing)}); choose another folder (-o)")
    write_atomically(folder / _SETTINGS, json.dumps(stated, indent=2, sort_keys=True) + "\n")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _write(
    app: App,
    tasks: TaskFile,
    rows: Sequence[Mapping[str, Any]],
    measured: Mapping[str, Difficulty],
    hardened: Hardened | None,
    output: Path,
) -> dict[str, Any]:
    """Write the tasks with their difficulty, what came to nothing, and the manifest that pages and viewers read."""
    from callwright.language.long_numbers import json_line
    from callwright.measuring.difficulty import with_difficulty
    from callwright.training.run_folder import write_atomically
    from callwright.training.synthesis.synthesizer import Materials
    from callwright.walk.task_rows.writing import write_rows

    known = dict(measured) if hardened is None else dict(hardened.measured)
    harder = {} if hardened is None else hardened.tasks
    written: list[Mapping[str, Any]] = []
    for row in rows:
        made = harder.get(row["id"])
        now = row if made is None else Materials(made.environment, registry=app.registry).row(made)
        written.append(with_difficulty(now, known[now["id"]]) if now["id"] in known else now)
    write_rows(
        output / TASKS, written, limits=tasks.head.limits, about=tasks.head.about, trust=True, registry=app.registry
    )
    refused = () if hardened is None else hardened.refused
    lines = b"".join(
        json_line({"unit": f"{one.task}+{one.change}" if one.change else one.task, **one.rejected.to_json()})
        for one in refused
    )
    write_atomically(output / _REJECTED, lines)
    told = _told(written, known, harder, refused)
    files = {name: _digest(output / name) for name in (TASKS, _REJECTED)}
    yields = {
        "planned": len(rows) + len(refused),
        "accepted": len(rows),
        "kept": len(written),
        "rejected": told["rejected"],
    }
    manifest = {"name": output.name, "yields": yields, "files": files, "difficulty": told}
    write_atomically(output / _MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    return told


def _told(
    rows: Sequence[Mapping[str, Any]],
    known: Mapping[str, Difficulty],
    harder: Mapping[str, Task],
    refused: Sequence[Any],
) -> dict[str, Any]:
    bins = Counter(min(_BINS - 1, int(_BINS * known[row["id"]].solved)) for row in rows if row["id"] in known)
    rejected: dict[str, Counter[str]] = {}
    for one in refused:
        rejected.setdefault(one.rejected.stage, Counter())[one.rejected.reason] += 1
    pairs = [(known[origin].solved, known[task.id].solved) for origin, task in harder.items()]
    return {
        "tasks": len(rows),
        "measured": sum(row["id"] in known for row in rows),
        "solved": [bins[one] for one in range(_BINS)],
        "hardened": dict(sorted(Counter(str(task.facts["hardened"]) for task in harder.values()).items())),
        "before": sum(one for one, _ in pairs) / len(pairs) if pairs else None,
        "after": sum(one for _, one in pairs) / len(pairs) if pairs else None,
        "rejected": {stage: dict(sorted(counts.items())) for stage, counts in sorted(rejected.items())},
    }


def _lines(told: Mapping[str, Any]) -> list[str]:
    lines = [f"{told['measured']:,} of {told['tasks']:,} tasks were attempted; by pass@1:"]
    for number, count in enumerate(told["solved"]):
        if count:
            lines.append(f"  {number / _BINS:.1f} to {(number + 1) / _BINS:.1f}: {count:,}")
    if told["hardened"]:
        count = sum(told["hardened"].values())
        lines.append(f"{count:,} hardened: pass@1 {told['before']:.3f} before, {told['after']:.3f} after")
        lines += [f"  {name}: {count:,}" for name, count in told["hardened"].items()]
    for stage, reasons in told["rejected"].items():
        lines += [f"  not made harder: {stage}: {reason}: {count:,}" for reason, count in reasons.items()]
    return lines
