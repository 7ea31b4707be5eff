"""``callwright synthesize check``: all gates on a file of tasks, whoever made it; or the proofs of a graph again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import field, frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName
from callwright.errors import DataError, UsageError

if TYPE_CHECKING:
    from callwright.measuring.overlap.entries import Entry
    from callwright.training.synthesis.units import Rejected
    from callwright.walk.task_rows.reading import TaskFile
    from callwright.walk.tasks import Task
    from callwright_plugins.synthesis.gates.comparing import Compared
    from callwright_plugins.synthesis.gates.gate import Gate

#: What tasks are held against where nothing else is named.
AGAINST: Final = "depthbench-v1"
_NAMED: Final = 20
_BATCH: Final = 64


@frozen
class _Checked:
    """What the gates came to: how many tasks passed each, and what was found wrong, by the place of the task."""

    passed: Counter[str] = field(factory=Counter)
    rejected: Counter[str] = field(factory=Counter)
    wrong: dict[int, tuple[str, Rejected]] = field(factory=dict)

    def add(self, place: int, task: str, rejected: Rejected) -> None:
        self.wrong[place] = (task, rejected)
        self.rejected[rejected.stage] += 1


@click.command("check")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--against",
    "against",
    multiple=True,
    metavar="NAME",
    help=f"A benchmark, a corpus, a file of rows or a folder of them that no task may share with. Repeatable. "
    f"Default: {AGAINST}; 'none' for nothing.",
)
@click.option(
    "--held-out",
    type=click.Choice(["environment", "chain", "world"]),
    default="chain",
    show_default=True,
    help="What the other splits of the file may not share with its split 'train'.",
)
@click.option("--any-version", is_flag=True, help="Environments of other versions with equal tools do.")
@click.option("--trust", is_flag=True, help="The file's environments may start programs and send secrets.")
@click.option(
    "--teacher",
    type=ComponentName("teacher"),
    metavar="NAME",
    help="Have a teacher that has not seen the plan read what users say, too.",
)
@click.option("--teacher-option", "teacher_options", multiple=True, metavar="K=V", help="An option of the teacher.")
@click.option("--replies", metavar="FILE", help="Where replies of the teacher are kept, so that they are paid once.")
@options.json_option
@click.pass_context
def check_(
    ctx: click.Context,
    file: Path,
    against: tuple[str, ...],
    held_out: str,
    any_version: bool,
    trust: bool,
    teacher: str | None,
    teacher_options: tuple[str, ...],
    replies: str | None,
    as_json: bool,
) -> None:
    """Run all gates on the tasks of FILE, a file of tasks or the folder of a synthesis, whoever made it.

    Each task is replayed, here and in a fresh process; its reference has to earn the reward, while doing nothing and
    mutants of it may not; what comes to the same another way has to, too; its words have to mean what the reference
    does; no secret comes from nowhere. Then tasks are compared: near-duplicates, what the splits share, and what stands
    in benchmarks. With --teacher a model reads the words, too, and has to come to what the reference does. FILE may be
    a graph, too (callwright synthesize graph -o): the calls of its proofs are made again.

    Exit status 1 if something is found.
    """
    app = ctx.ensure_object(App)
    if teacher is None and (teacher_options or replies):
        raise UsageError("--teacher-option and --replies are for a --teacher")
    graph = _graph_of(file)
    if graph is not None:
        from callwright_plugins.synthesis.graph_command import check_graph_file

        check_graph_file(app.registry.create("environment", graph), file, as_json)
        return
    from callwright.walk.task_rows.reading import read_tasks
    from callwright_plugins.synthesis.report.folders import task_file

    path = task_file(file)
    tasks = read_tasks(path, any_version=any_version, trust=trust, registry=app.registry)
    if not tasks:  # nothing was checked, which is not to look as if everything passed
        raise DataError(f"{path} holds no tasks")
    gates = _gates(app, teacher, teacher_options, replies)
    checked = _checked(app, tasks, _sources(app, against), held_out, gates)
    if as_json:
        click.echo(json.dumps(_as_json(tasks, checked), indent=2, ensure_ascii=False))
    else:
        _draw(tasks, checked)
    if checked.wrong:
        ctx.exit(1)


def _graph_of(path: Path) -> str | None:
    """The environment of a file that holds a graph; ``None`` for any other file."""
    if path.suffix != ".json":
        return None
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_graph = isinstance(held, dict) and {"environment", "edges"} <= held.keys()
    return str(held["environment"]) if is_graph else None


def _sources(app: App, against: tuple[str, ...]) -> Iterator[tuple[str, list[Entry]]]:
    from callwright.commands.overlaps.entries import entries_named

    if "none" in against:
        if len(against) > 1:
            raise UsageError("--against none: nothing else can be named beside it")
        return
    for name in dict.fromkeys(against or (AGAINST,)):
        yield name, list(entries_named(app, name, {}, None))


def _gates(app: App, teacher: str | None, given: tuple[str, ...], replies: str | None) -> tuple[Gate, ...]:
    """The gates of one task; with a teacher also the one that has it read what users say."""
    from callwright_plugins.synthesis.gates.gate import GATES

    if teacher is None:
        return GATES
    from callwright.training import cached
    from callwright_plugins.synthesis.gates.naming import BackTranslated

    made = app.registry.create("teacher", teacher, **options.key_values(given, "--teacher-option"))
    return (*GATES, BackTranslated(made if replies is None else cached(made, replies)))


def _checked(
    app: App,
    tasks: TaskFile,
    sources: Iterator[tuple[str, list[Entry]]],
    held_out: str,
    gates: tuple[Gate, ...],
) -> _Checked:
    from callwright.commands.bars import reporter
    from callwright.training.synthesis.units import Rejected
    from callwright_plugins.synthesis.gates.comparing import Compared, compared, leaks
    from callwright_plugins.synthesis.gates.contamination import Decontaminated
    from callwright_plugins.synthesis.gates.gate import gate
    from callwright_plugins.synthesis.gates.replay import replayed_elsewhere

    found = _Checked()
    staying: dict[int, Compared] = {}
    with reporter() as bars:
        bars.start("gates", len(tasks))
        for place in range(len(tasks)):
            try:
                task = tasks[place]
            except DataError as error:
                found.add(place, "", Rejected("row", "no task", {"error": str(error)[:400]}))
            else:
                gated = gate(task, registry=app.registry, gates=gates)
                found.passed.update(gated.passed)
                if gated.rejected is not None:
                    found.add(place, task.id, gated.rejected)
                else:
                    staying[place] = Compared.of_task(task)
            bars.advance()
        bars.finish()

        def stage(name: str, verdicts: Callable[[list[int]], list[Rejected | None]]) -> None:
            places = list(staying)
            if not places:
                return
            for place, rejected in zip(places, verdicts(places), strict=True):
                if rejected is None:
                    found.passed[name] += 1
                else:
                    found.add(place, staying.pop(place).id, rejected)

        bars.start("fresh process", len(staying))
        stage("fresh process", lambda places: replayed_elsewhere(_Read(tasks, places), bars.advance))
        bars.finish()
        stage("duplicates", lambda places: compared([staying[place] for place in places]))
        if len(tasks.splits) > 1:
            stage("splits", lambda places: leaks([staying[place] for place in places], held_out))
        named = list(sources)
        if named:
            stage("decontaminated", lambda places: Decontaminated(named).of_tasks(tasks[place] for place in places))
    return found


class _Read:
    """Some tasks of a file, read when they are asked for."""

    def __init__(self, tasks: TaskFile, places: list[int]) -> None:
        self._tasks, self._places = tasks, places

    def __iter__(self) -> Iterator[Task]:
        return (self._tasks[place] for place in self._places)


def _as_json(tasks: TaskFile, checked: _Checked) -> dict[str, Any]:
    return {
        "tasks": len(tasks),
        "pass": len(tasks) - len(checked.wrong),
        "gates": {
            name: {"passed": checked.passed[name], "rejected": checked.rejected[name]} for name in _stages(checked)
        },
        "wrong": [
            {"place": tasks.where(place), "task": task, **rejected.to_json()}
            for place, (task, rejected) in sorted(checked.wrong.items())
        ],
    }


def _stages(checked: _Checked) -> list[str]:
    """The stages that said something, in their order."""
    from callwright_plugins.synthesis.gates.gate import GATES
    from callwright_plugins.synthesis.gates.naming import BackTranslated

    known = [one.name for one in GATES]
    order = ["row", *known, BackTranslated.name, "fresh process", "duplicates", "splits", "decontaminated"]
    return [name for name in order if checked.passed[name] or checked.rejected[name]]


def _draw(tasks: TaskFile, checked: _Checked) -> None:
    from callwright.commands.terminal import screen, table, text

    shown = table("gate", "passed", "rejected", right=(1, 2))
    for name in _stages(checked):
        shown.add_row(text(name), text(f"{checked.passed[name]:,}"), text(f"{checked.rejected[name]:,}"))
    console = screen()
    console.print(shown)
    for place, (task, rejected) in sorted(checked.wrong.items())[:_NAMED]:
        evidence = json.dumps(dict(rejected.evidence), ensure_ascii=False)
        console.print(text(f"{tasks.where(place)}: {task or 'no task'}: {rejected.stage}: {rejected.reason}"))
        console.print(text(f"    {evidence:.300}", "dim"))
    if len(checked.wrong) > _NAMED:
        console.print(text(f"… and {len(checked.wrong) - _NAMED:,} more"))
    console.print(text(f"{len(tasks) - len(checked.wrong):,} of {len(tasks):,} tasks pass"))
